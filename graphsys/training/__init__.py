"""What the trainers of embeddings and of graph neural networks share."""
