"""The steps of ``scripts/gpu_check``, each a module with its rows.

Results of the CPU travel to a card as checksums (``references.json``); kernels compiled
here do not, for no cache that its library would take can be made without the card:

- numba-cuda keeps a kernel under a hash of its bytecode, which differs from Python 3.11
  (here) to 3.12 (there), under the path and the time of its source file, and under what the
  driver's context says of the device (``caching.py``, ``codegen.py`` of numba-cuda 0.30).
- Triton keeps one under a hash of its own sources and of its compiled library
  (``triton_key``, ``runtime/cache.py``), which differs between versions and Pythons.

A launcher of our own for cubins would run other code than users run. So each step compiles
what it uses, before it times, within its seconds.
"""
