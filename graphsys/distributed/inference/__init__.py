"""Runs asked on a cluster: each worker answers for the nodes that are its own."""
