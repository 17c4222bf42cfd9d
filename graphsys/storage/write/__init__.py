"""Files of a generation on their way to the disk.

Edges, their indexes, columns of nodes.
"""
