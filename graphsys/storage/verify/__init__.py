"""Is a store, or a run, what its manifest says?"""
