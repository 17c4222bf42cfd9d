"""graphsys.embedding."""
