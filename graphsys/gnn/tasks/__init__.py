"""What a network is trained for: seeds, losses, metrics; :mod:`factory` makes one."""
