"""Message passing: rows of entries, sums, softmax, on the CPU and on a device."""
