"""What a native algorithm takes in memory, and from what it is told before it runs.

Each algorithm has its own function beside it, which counts arrays beside the rows in the
order in which its code makes and frees them; ``scripts/memory_rule`` measures both.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from graphsys.engine.execute.row_bytes import num_simple_entries
from graphsys.engine.topology import Topology
from graphsys.engine.united_rows import Direction

BY_ID = "they are put in the order of ids, so that partitions change nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What an algorithm takes.

    Attributes:
        rows: Directions of the rows that it reads.
        in_place: Whether it reads them where they lie (``Topology.rows``).
        columns: Columns that it asks those for.
        simple: Whether it reads the simple undirected graph.
        bytes: Bytes in memory at the peak, beside rows.
        entries: Bytes of arrays of all entries, which a scratch file may hold.
        copies: Why it copies the rows that it reads, for people; empty where it reads them
            in place.
        beside: What the arrays of entries are, for people, where it reads rows in place.
        kernels: Module of ``engine/algorithms`` whose kernels it calls, where not its own.
        variant: What tells the kernels that it calls from those of other runs.
    """

    rows: tuple[Direction, ...] = ()
    in_place: bool = False
    columns: tuple[str, ...] = ()
    simple: bool = False
    bytes: float = 0
    entries: float = 0
    copies: str = ""
    beside: str = ""
    kernels: str = ""
    variant: str = ""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What needs are told from.

    Attributes:
        topology: The graph.
        options: Parameters of the algorithm that were given.
        threads: How many threads will run.
        is_stated: Whether the user stated a budget; what is too long to count otherwise
            is counted then.
    """

    topology: Topology
    options: Mapping[str, Any]
    threads: int
    is_stated: bool

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.topology.num_nodes

    @property
    def edges(self) -> int:
        """Entries of the out rows."""
        return self.topology.num_edges

    @cached_property
    def simple_entries(self) -> int:
        """Entries of the simple graph, at most."""
        return num_simple_entries(self.topology)

    @property
    def both(self) -> tuple[Direction, ...]:
        """Both directions."""
        return ("out", "in") if self.topology.is_directed else ("out",)

    @property
    def id_bytes(self) -> float:
        """Bytes of an id."""
        return self.topology.numbers.id_bytes

    @property
    def ranked(self) -> int:
        """Bytes a node that finding ranks takes; 0 where numbers are ranks."""
        return 0 if self.topology.numbers.are_ordered else 36
