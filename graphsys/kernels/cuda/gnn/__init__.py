"""Triton kernels of message passing; importing them needs Triton."""
