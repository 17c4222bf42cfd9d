"""Loops over a graph that workers share: of native algorithms and counts of patterns."""
