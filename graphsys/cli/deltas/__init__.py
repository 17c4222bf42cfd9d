"""Verbs of graphs that change."""
