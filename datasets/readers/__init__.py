"""Graphs in one file each, or one kind of file: a reader a format."""
