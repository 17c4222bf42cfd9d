"""Twelve applications that are no graph work, as kernels whose every load is told."""
