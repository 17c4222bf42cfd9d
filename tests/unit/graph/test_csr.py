import numpy as np
import pytest

from graphsys.graph import csr as module
from graphsys.graph.csr import Csr


@pytest.mark.parametrize("at_a_time", [1, 2, 1 << 20])
def test_pieces_of_a_column_are_cut_where_it_has_gaps(
    at_a_time: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which is elsewhere than the neighbors have theirs, or they none."""
    monkeypatch.setattr(module, "_AT_A_TIME", at_a_time)
    rows = Csr.with_gaps(
        begins=np.array([0, 2, 2, 9], np.uint32),
        ends=np.array([2, 2, 4, 10], np.uint32),
        indices=np.zeros(10, np.uint32),
        num_edges=5,
        columns={"weight": np.array([1.0, 2.0, np.nan, 3.0, 4.0, 5.0, -1.0])},
        column_begins={"weight": np.array([0, 2, 3, 5], np.uint32)},
    )
    pieces = [(at, piece.tolist()) for at, piece in rows.pieces("weight")]
    assert pieces == [(0, [1.0, 2.0]), (3, [3.0, 4.0, 5.0])]


def test_no_rows_have_no_pieces() -> None:
    none = np.zeros(0, np.uint32)
    rows = Csr.with_gaps(
        begins=none, ends=none, indices=none, num_edges=0, columns={"weight": none}
    )
    assert list(rows.pieces("weight")) == []
