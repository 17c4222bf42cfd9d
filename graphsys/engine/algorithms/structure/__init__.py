"""What a graph is made of: orders and cycles, blocks and the cuts between them."""
