"""The training of a network.

``api.train`` checks and builds, ``trainer`` loops, ``step`` steps.
"""
