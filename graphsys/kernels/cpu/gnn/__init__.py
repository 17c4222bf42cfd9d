"""Message passing on the CPU: sums, softmax within rows, learned rows in files."""
