"""The cases: a module each, with ``PEERS`` and ``works``."""
