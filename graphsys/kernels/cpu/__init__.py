"""Kernels for the CPU, compiled by numba; what several wings call stands here.

Arguments that most kernels have, and say of only where they differ:

- ``thread``: number of the thread, from 0; kernels that need it not have it all the same;
- ``indptr``: row offsets ``[N + 1]``; of rows with gaps ``begins`` and ``ends`` ``[N]``;
- ``indices``: neighbors, row after row ``[E]``;
- ``bounds``: bounds of chunks of rows, int64 ``[C + 1]``;
- ``counter``: the next chunk or row, int64 ``[1]``, zero at the start (``loops.py``).
"""
