"""Where the threads of a kernel wait for each other, in less time than a call of one takes.

A barrier with a count and a generation (Hensgen, Finkel, Manber, "Two algorithms for
barrier synchronization", Int. J. Parallel Program. 17(1), 1988): the last to arrive begins
the next generation, which the others look for. They let others run after a while, as there
may be fewer processors than threads.
"""

from typing import Any

from graphsys.kernels.cpu.atomics import atomic_add, atomic_load, yield_processor
from graphsys.kernels.jit import lean_inline_jit

ARRIVED = 0
GENERATION = 8  # places in lines of memory of their own
MEETING_SIZE = 16
_PATIENCE = 4096  # looks before another thread may run


@lean_inline_jit
def meet(meeting: Any, num_threads: Any) -> None:
    """Wait until all threads are here; what each wrote before, all see then.

    Args:
        meeting: Zeros before the first thread comes, int64 ``[MEETING_SIZE]``.
        num_threads: How many there are.
    """
    # Read before arriving: afterwards the last thread may have begun the next one already.
    generation = atomic_load(meeting, GENERATION)
    if atomic_add(meeting, ARRIVED, 1) == num_threads - 1:
        # Before the generation, whose atomic publishes it: who is let go may arrive again
        # at once.
        meeting[ARRIVED] = 0
        atomic_add(meeting, GENERATION, 1)
        return
    looks = 0
    while atomic_load(meeting, GENERATION) == generation:
        # Spinning is faster than sleeping while all threads have a core; without one it
        # would keep the very thread away that it waits for.
        looks += 1
        if looks >= _PATIENCE:
            yield_processor()
            looks = 0
