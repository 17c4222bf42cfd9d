"""What kernels of Triton need: the device, and compiling without one."""
