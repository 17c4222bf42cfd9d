"""Embeddings trained on a cluster: buckets handed out, rows by files."""
