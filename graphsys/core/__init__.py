"""Errors, types, configuration, registry, events and random numbers: the ground floor."""
