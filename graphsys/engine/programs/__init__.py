"""Vertex programs that come with graphsys, one per file: read them as examples."""
