"""Stores that change: appending, compacting, and views of what was at a time."""
