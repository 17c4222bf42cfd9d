"""Patterns: counted, listed, found often; see README.md."""
