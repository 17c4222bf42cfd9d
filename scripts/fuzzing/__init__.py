"""Fuzzing of readers: ``corpus`` and ``mutate`` make cases, ``worker`` tries them."""
