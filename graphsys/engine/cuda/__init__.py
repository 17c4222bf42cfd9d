"""Vertex programs on a CUDA device, from the same source as on the CPU."""
