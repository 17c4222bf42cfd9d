"""What a worker may take of its machine's memory, and what it says if that is short."""

from collections.abc import Iterator
from contextlib import contextmanager

from graphsys.core.errors import BudgetError, ClusterError
from graphsys.core.memory import available_bytes, format_bytes, resident_bytes
from graphsys.core.threads import num_cores


@contextmanager
def share_of_memory(what: str, neighbors: int | None) -> Iterator[int]:
    """Give a worker's share of the memory of its machine, in bytes.

    Args:
        what: What the worker does, for the message.
        neighbors: Workers on the machine; as many as it has cores by default.

    Raises:
        ClusterError: what is done in the context does not fit.
    """
    memory = resident_bytes() + available_bytes() // (neighbors or num_cores())
    try:
        yield memory
    except BudgetError as err:
        raise ClusterError(
            f"{what} needs {format_bytes(err.smallest)} of memory in every worker, whose "
            f"share of its machine is {format_bytes(memory)}; take fewer workers to a "
            "machine, or machines with more memory"
        ) from err
