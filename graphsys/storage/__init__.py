"""graphsys.storage."""
