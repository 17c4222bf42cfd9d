"""What CUDA kernels need: the device and its memory, and compiling without one."""
