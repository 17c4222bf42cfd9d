"""The folder of a training run: who writes it, and how it replaces another."""
