"""Algorithms that go on from the last result after edges came and went."""
