"""Stores made on a cluster: files read, ids numbered and buckets written by tasks."""
