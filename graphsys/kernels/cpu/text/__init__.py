"""Parsing text: ids, numbers, words, lines of neighbors."""
