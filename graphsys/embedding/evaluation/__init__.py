"""How good embeddings are: ranks of held-out edges, and what chance reaches."""
