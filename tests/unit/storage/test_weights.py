"""Weights at the ends of their types' ranges."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.core.errors import InputError
from graphsys.storage import Graph
from tests.stores import edge_chunk, make_store

PAIRS = [(0, 1), (0, 1), (1, 2)]


@pytest.mark.parametrize(
    ("weights", "kind"),
    [
        (np.array([1e308, 1e308, 1.0]), "float64"),
        (np.array([-1e308, -1e308, 1.0]), "float64"),
        (np.array([2**63 - 1, 2**63 - 1, 1]), "int64"),
        (np.array([2**64 - 1, 1, 1], dtype=np.uint64), "uint64"),
    ],
)
def test_sums_beyond_the_type_are_refused(tmp_path: Path, weights: Any, kind: str) -> None:
    with pytest.raises(InputError, match=f"--coalesce: .* more than {kind} holds"):
        make_store(tmp_path / "g", edge_chunk(PAIRS, weight=weights), coalesce=True)
    assert not (tmp_path / "g").exists()
    make_store(tmp_path / "g", edge_chunk(PAIRS, weight=weights))


def test_sums_that_fit_are_exact(tmp_path: Path) -> None:
    weights = np.array([2**63 - 6, 5, 2**60 + 1])
    make_store(tmp_path / "g", edge_chunk(PAIRS, weight=weights), coalesce=True)
    with Graph(tmp_path / "g") as graph:
        found = graph.bucket("edge", 0, 0).weight
    assert found is not None
    assert sorted(found.tolist()) == [2**60 + 1, 2**63 - 1]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_largest_unsigned_beside_a_negative_is_refused(
    tmp_path: Path, order: tuple[int, int]
) -> None:
    parts = [np.array([2**64 - 1], dtype=np.uint64), np.array([-1])]
    chunks = [edge_chunk([(k, k + 1)], weight=parts[k]) for k in order]
    with pytest.raises(InputError, match="no one type holds exactly"):
        make_store(tmp_path / "g", *chunks)
