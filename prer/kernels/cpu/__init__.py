"""Kernels in C, built when the package is installed (`setup.py`)."""
