"""Rows of nodes: their files, their precision, how they are scored."""
