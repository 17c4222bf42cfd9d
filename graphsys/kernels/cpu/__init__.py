"""Kernels for the CPU, compiled by numba; what several wings call stands here."""
