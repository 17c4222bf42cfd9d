"""Rows as JSON come back bit by bit, whatever the ids are."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from graphsys.storage import Graph
from graphsys.training import row_files
from graphsys.training.row_files import write_rows
from tests.stores import edge_chunk, make_store

NAMES = ['a "quoted" one', "zwei\nZeilen", "\u4e09", "d"]


class Rows:
    """Rows of two dimensions, some of them no numbers."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        values = np.random.default_rng(0).normal(size=(graph.num_nodes, 2))
        self.values = (values * 10.0 ** np.array([[-30, 20]])).astype(np.float32)
        self.values[0] = np.nan, np.inf

    def rows(self, node_type: str, part: int) -> npt.NDArray[np.float32]:
        first, end = self.graph.offsets(node_type)[part : part + 2]
        return self.values[first:end]

    def dim_of(self, node_type: str) -> int:
        return 2


@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
@pytest.mark.parametrize("ids", [NAMES, [7, 1, 3, 2**62]])
def test_rows_are_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, ids: list[object]
) -> None:
    monkeypatch.setattr(row_files, "_BLOCK", 1)
    pairs = list(pairwise(ids))
    make_store(tmp_path / "graph", edge_chunk(pairs), partitions=2)
    source = Rows(Graph(tmp_path / "graph"))
    out = write_rows(source, ["node"], tmp_path / f"rows{suffix}")
    text = out.read_text(encoding="utf-8")
    lines = [json.loads(it) for it in text.splitlines()] if suffix == ".jsonl" else None
    found = json.loads(text) if lines is None else lines
    assert [row["id"] for row in found] == source.graph.node_ids("node").to_pylist()
    assert found[0]["embedding"] == [None, None]
    kept = np.array([row["embedding"] for row in found[1:]], dtype=np.float32)
    assert kept.tolist() == source.values[1:].tolist()
