"""graphsys."""
