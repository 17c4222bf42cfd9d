"""In-memory edge lists: sorting, merging."""
