"""Places that are not on this machine: how they are written, and how they are shown."""
