"""What a profile sees of message passing: the rows that a kernel walks, and how far."""

from typing import Any

import numpy as np

from graphsys.core.events import count, is_recording, observe
from graphsys.core.visits import RowVisit

_WIDE = "a neighbor's value is a row of features, whose sectors are not modeled"


def tell_rows(indptr: Any) -> None:
    """Count the entries of one launch, and offer its rows to the SIMT model.

    Args:
        indptr: Row offsets, int64 ``[R + 1]``.
    """
    if is_recording():
        count("edges", int(indptr[-1]))
    observe(
        "rows",
        lambda: [RowVisit(superstep=0, kind="pull", lengths=np.diff(indptr), reason=_WIDE)],
    )
