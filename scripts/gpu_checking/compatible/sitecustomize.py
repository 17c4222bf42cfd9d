"""Lets numba-cuda 0.30 load beside numpy 2.5, on machines whose packages are not ours.

It names functions that numpy 2.5 took away. Users get an error that says which numpy to
install; a borrowed card has neither a network nor the time.
"""

try:
    import numpy as np
except ImportError:  # a profiler's own Python, which has none
    np = None

for old, new in (("row_stack", "vstack"), ("in1d", "isin"), ("trapz", "trapezoid")):
    if np is not None and old not in vars(np):
        setattr(np, old, getattr(np, new))
