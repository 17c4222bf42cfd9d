"""graphsys.kernels.cpu."""
