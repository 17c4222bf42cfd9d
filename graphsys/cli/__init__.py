"""graphsys.cli."""
