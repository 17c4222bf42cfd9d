"""The SIMT model: what a GPU would do with the rows that a run visited."""
