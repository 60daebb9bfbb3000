"""Kernels in Triton, compiled on the GPU that runs them."""
