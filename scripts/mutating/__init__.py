"""Mutants of graphsys's source, and whether the tests notice them."""
