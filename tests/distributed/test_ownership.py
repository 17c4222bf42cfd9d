"""Workers own runs of partitions of about the same work."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphsys as gs
from graphsys.distributed.ownership import Ownership
from graphsys.engine.topology import Topology
from graphsys.graph.shares import even_cuts


@pytest.mark.parametrize(
    ("weights", "num_pieces", "cuts"),
    [
        ([1, 1, 1, 1], 2, (0, 2, 4)),
        ([9, 1, 1, 1], 2, (0, 1, 4)),
        ([1, 1, 1, 9], 2, (0, 3, 4)),
        ([1, 1, 1, 9], 4, (0, 1, 2, 3, 4)),
        ([9, 0, 0, 0], 3, (0, 1, 2, 4)),
        ([5], 3, (0, 0, 0, 1)),
        ([], 2, (0, 0, 0)),
    ],
)
def test_runs_are_of_even_weight_and_none_is_empty(
    weights: list[int], num_pieces: int, cuts: tuple[int, ...]
) -> None:
    assert even_cuts(np.array(weights, dtype=np.int64), num_pieces) == cuts


@given(st.lists(st.integers(0, 50), max_size=20), st.integers(1, 8))
def test_cuts_ascend_and_leave_nobody_without_a_member(
    weights: list[int], num_pieces: int
) -> None:
    cuts = np.array(even_cuts(np.array(weights, dtype=np.int64), num_pieces))
    assert len(cuts) == num_pieces + 1
    assert (cuts[0], cuts[-1]) == (0, len(weights))
    assert (np.diff(cuts) >= (len(weights) >= num_pieces)).all()


def test_a_partition_of_many_edges_is_a_worker_of_its_own(tmp_path: Path) -> None:
    ends = np.triu_indices(16, 1)  # all pairs of the first partition, then a path
    src = np.concatenate([ends[0], np.arange(15, 63)])
    dst = np.concatenate([ends[1], np.arange(16, 64)])
    edges = pa.table({"src": src, "dst": dst})
    graph = gs.ingest(
        edges, tmp_path / "g", partitions=4, partitioner="range", undirected=True
    ).graph
    spans = Ownership.of(Topology.of(graph), 2).spans
    first = graph.offsets(graph.node_types[0])[1]
    assert spans == (((0, first),), ((first, graph.num_nodes),))
