"""Kernels of Leiden: rows of a level, moving, refining, folding."""
