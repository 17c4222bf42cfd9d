"""Sampling neighbors, walks and negatives; caches of rows."""
