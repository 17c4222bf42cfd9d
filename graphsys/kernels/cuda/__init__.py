"""CUDA kernels by numba-cuda; nothing here is imported unless a device is asked for."""
