"""Kernels of Numba: what is passed to them, and where they are called."""
