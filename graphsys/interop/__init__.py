"""Other libraries' graphs in and out."""
