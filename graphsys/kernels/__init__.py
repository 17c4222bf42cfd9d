"""graphsys.kernels."""
