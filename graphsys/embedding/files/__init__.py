"""Embeddings and questions as files."""
