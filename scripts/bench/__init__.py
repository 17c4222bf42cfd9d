"""The benchmark harness; ``scripts/bench/run`` starts it."""
