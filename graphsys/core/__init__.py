"""graphsys.core."""
