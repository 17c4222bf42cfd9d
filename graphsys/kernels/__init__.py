"""Kernels on arrays and scalars: compiled, linked and called; CPU and CUDA."""
