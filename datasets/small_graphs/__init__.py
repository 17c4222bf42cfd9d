"""Readers of many small graphs, each with a label, into one store."""
