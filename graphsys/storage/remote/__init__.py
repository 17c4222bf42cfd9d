"""Graphs and runs on object stores: fetched file by file, published by one put."""
