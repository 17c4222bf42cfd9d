"""Triton kernels of the embedding trainer; importing them needs Triton."""
