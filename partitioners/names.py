"""The names of all partitioners, whatever they need to see."""

from graphsys.core.errors import unknown_name
from graphsys.partitioners.base import PARTITIONERS
from graphsys.partitioners.stream import STREAM_PARTITIONERS


def partitioner_names() -> list[str]:
    """Return the names of all partitioners, sorted."""
    return sorted([*PARTITIONERS.names(), *STREAM_PARTITIONERS.names()])


def is_stream_partitioner(name: str) -> bool:
    """Return whether a partitioner needs to see each node with its neighbours."""
    return name in STREAM_PARTITIONERS.names()


def check_partitioner(name: str) -> None:
    """Check that a partitioner is known.

    Raises:
        UnknownNameError: it is not; the message lists the known names.
    """
    if name not in partitioner_names():
        raise unknown_name("partitioner", name, partitioner_names())
