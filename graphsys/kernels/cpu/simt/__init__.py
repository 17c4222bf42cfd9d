"""simt."""
