"""Our own kernels, in Triton and in C: the flow's blocks, and convolutions with a seed axis.

Only the code that needs a kernel imports or opens it. Without the C extension, on a GPU without Triton (it comes with
torch on Linux), and with `PRER_KERNELS=off`, torch computes everything; results then agree except for rounding.
"""
