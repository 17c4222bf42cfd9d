"""Text files, read ahead and parsed block by block."""
