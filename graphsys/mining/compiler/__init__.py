"""Patterns become nested loops: orders, restrictions, a cost, and the text of a kernel."""
