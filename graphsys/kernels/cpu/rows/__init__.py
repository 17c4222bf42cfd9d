"""Compressed rows: building, sorting, cutting and checking them."""
