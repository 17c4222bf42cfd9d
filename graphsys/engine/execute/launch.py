"""One call of a generated kernel."""

from dataclasses import dataclass, field
from typing import Any

from graphsys.engine.codegen.plan import PhasePlan
from graphsys.engine.execute.arrays import Array
from graphsys.engine.execute.frontier import Frontier
from graphsys.engine.execute.rows import RowBlock


@dataclass(kw_only=True)
class Launch:
    """One call of a kernel.

    Attributes:
        kernel: Its name in the generated module, without the phase's number.
        block: The rows it visits.
        phase: The phase it belongs to, or None for ``init``.
        parallel: Whether there is enough work for all threads.
        nodes: The nodes to visit instead of all rows, or None.
        senders: The nodes that send, or None for all.
        in_place: States to be written in place although the phase buffers them.
        extra: Further arguments by name.
    """

    kernel: str
    block: RowBlock
    phase: PhasePlan | None
    parallel: bool = True
    nodes: Array | None = None
    senders: Frontier | None = None
    in_place: frozenset[str] = frozenset()
    extra: dict[str, Any] = field(default_factory=dict)
