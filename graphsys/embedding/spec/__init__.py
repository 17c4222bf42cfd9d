"""Comparators, losses and operators: what each is, by name; others may bring more."""
