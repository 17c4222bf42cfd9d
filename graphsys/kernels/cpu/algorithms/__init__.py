"""Native graph algorithms, a file or two each."""
