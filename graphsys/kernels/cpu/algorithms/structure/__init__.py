"""Kernels of orders and cycles, of blocks and the cuts between them."""
