"""What a profile sees of mining: how far the work of each first node of matches goes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.events import count, is_asked, observe
from graphsys.core.row_trace import RowVisit

_SETS = "entries are of sets made on the way, whose sectors are not modeled"


def tell_work(trips: Callable[[], npt.NDArray[np.int64]], *, is_exact: bool = True) -> None:
    """Offer the work of one kernel to the SIMT model: a row for each first node.

    Args:
        trips: Makes the entries looked at for each node ``[N]``, if somebody asks.
        is_exact: Whether they are, and not at most so many.
    """
    if not is_asked("rows"):
        return
    made: list[Any] = []

    def visits() -> list[RowVisit]:
        made.append(trips())
        return [
            RowVisit(
                superstep=0, kind="pull", lengths=made[0], is_exact=is_exact, reason=_SETS
            )
        ]

    observe("rows", visits)
    count("edges", int(made[0].sum()), at_most=not is_exact)
