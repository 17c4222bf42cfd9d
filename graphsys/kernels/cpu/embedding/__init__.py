"""A training step of embeddings and its evaluation, in parts."""
