"""Algorithms that do not fit the vertex model, or are much faster outside of it."""
