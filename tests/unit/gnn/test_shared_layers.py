"""Layers that several processes compute together: rows of one, each computed once."""

import itertools
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from graphsys.gnn import GnnConfig
from graphsys.gnn.context import GnnContext
from graphsys.gnn.layerwise_passes import LayerByLayer
from graphsys.gnn.training.api import build_context
from graphsys.gnn.training.shared_output import SharingPolicy
from graphsys.storage import Graph
from tests.unit.gnn.conftest import NUM_NODES, Store

ENTRIES = 40


class Meeting:
    """Where threads exchange values."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._told: list[Any] = [None] * size
        self._barrier = threading.Barrier(size, timeout=60)

    def exchange(self, rank: int, value: Any) -> list[Any]:
        self._told[rank] = value
        self._barrier.wait()
        found = list(self._told)
        self._barrier.wait()
        return found


class Thread:
    """One thread's place, as a process has one of ProcessGroup."""

    def __init__(self, rank: int, meeting: Meeting) -> None:
        self.rank, self.world_size, self._meeting = rank, meeting.size, meeting

    def gather(self, value: Any) -> list[Any]:
        return self._meeting.exchange(self.rank, value)

    def share_rows(self, rows: npt.NDArray[Any], bounds: Sequence[int]) -> None:
        own = slice(bounds[self.rank], bounds[self.rank + 1])
        found = self._meeting.exchange(self.rank, rows[own].copy())
        rows[:] = np.concatenate(found)


def context_of(graph: Graph, **changes: Any) -> GnnContext:
    config = GnnConfig(dim=8, batch_size=8, fanouts=(3, 3), threads=1, **changes)
    context = build_context(graph, config)
    context.network.eval()
    return context


def together(
    graph: Graph, size: int, nodes: npt.NDArray[np.int64] | None, **changes: Any
) -> tuple[list[npt.NDArray[np.float32]], list[int]]:
    """Return what each of some threads has at the end, and how many rows it computed."""
    meeting, computed = Meeting(size), [0] * size
    contexts = [context_of(graph, **changes) for _ in range(size)]

    def run(rank: int) -> npt.NDArray[np.float32]:
        layers = LayerByLayer(contexts[rank], None, ENTRIES, group=Thread(rank, meeting))
        compute = layers.compute

        def counted(k: int, name: str, some: Any, before: Any) -> Any:
            computed[rank] += len(some)
            return compute(k, name, some, before)

        layers.compute = counted  # type: ignore[method-assign, assignment]
        with torch.no_grad():
            return layers.run("node", nodes)

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(run, range(size))), computed


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("model", ["sage", "gat"])
def test_rows_are_those_of_one_process(groups: Store, model: str, size: int) -> None:
    graph = groups(2)
    with torch.no_grad():
        expected = LayerByLayer(context_of(graph, model=model), None, ENTRIES).run(
            "node", None
        )
    found, computed = together(graph, size, None, model=model)
    for rows in found:
        assert np.array_equal(rows, expected)
    assert sum(computed) == 2 * NUM_NODES  # two layers, each node once
    assert max(computed) < 2 * sum(computed) / size


def test_few_nodes_leave_some_without_work(groups: Store) -> None:
    graph = groups(2)
    nodes = np.array([7, 3, 40], dtype=np.int64)
    with torch.no_grad():
        expected = LayerByLayer(context_of(graph), None, ENTRIES).run("node", nodes)
    found, _ = together(graph, 5, nodes)
    for rows in found:
        assert np.array_equal(rows, expected)


def test_shares_are_whole_batches_of_about_as_much_work(groups: Store) -> None:
    layers = LayerByLayer(context_of(groups(2)), None, ENTRIES)
    nodes = np.arange(NUM_NODES)
    bounds = layers.shares("node", nodes, 3)
    assert (bounds[0], bounds[-1]) == (0, NUM_NODES)
    firsts = {low for low, _ in layers.spans("node", nodes)}
    assert set(bounds[1:-1]) <= firsts
    work = layers.num_entries("node", nodes)
    parts = [int(work[a:b].sum()) for a, b in itertools.pairwise(bounds)]
    assert max(parts) <= sum(parts) / 3 + ENTRIES + int(work.max())


def test_the_faster_way_is_taken_after_both_were_tried() -> None:
    for shared_s, alone_s in ((1.0, 2.0), (2.0, 1.0)):
        turns, taken = SharingPolicy(), []
        for _ in range(7):
            taken.append(turns.next())
            turns.tell(shared_s if taken[-1] else alone_s, is_shared=taken[-1])
        assert taken[:4] == [False, True, False, True]
        assert taken[4:] == [shared_s < alone_s] * 3
