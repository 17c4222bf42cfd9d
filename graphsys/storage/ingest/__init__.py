"""From a source to a committed store, within a memory budget."""
