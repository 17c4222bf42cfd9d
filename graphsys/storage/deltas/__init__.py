"""Reading a store's deltas: where their files are, and the merging of what they say."""
