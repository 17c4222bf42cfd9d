"""graphsys.graph."""
