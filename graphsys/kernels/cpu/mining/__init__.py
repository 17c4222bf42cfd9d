"""Kernels that count small patterns."""
