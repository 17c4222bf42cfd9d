"""``graphsys mine``: its commands, and its options of before."""
