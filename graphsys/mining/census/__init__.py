"""Counts of all motifs of a size, per graph, node and edge, by decomposition."""
