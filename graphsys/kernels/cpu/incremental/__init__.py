"""Kernels that bring a result up to date after edges came and went; single threads."""
