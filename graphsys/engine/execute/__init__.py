"""Running a compiled program on the host.

Supersteps, frontiers, rows, budgets, checkpoints.
"""
