"""Python that graphsys writes: modules of kernels made for one program or pattern."""
