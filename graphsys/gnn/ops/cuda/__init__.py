"""Message passing on a device, by Triton."""
