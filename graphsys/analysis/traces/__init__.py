"""Records of GPUs: traces, counters, clocks inside kernels."""
