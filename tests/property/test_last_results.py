"""Going on from the last result equals computing it anew, whatever came and went."""

import functools
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import graphsys as gs
from graphsys.core.errors import ConfigError
from graphsys.engine.algorithms import get
from graphsys.engine.algorithms.algorithm import followed
from graphsys.engine.incremental import components, neighborhoods, paths
from graphsys.engine.topology import Topology
from graphsys.storage.dynamic.compact import compact

PARAMETERS: dict[str, dict[str, Any]] = {
    "bfs": {"source": 1000},
    "sssp": {"source": 1000},
    "pagerank": {"tolerance": 1e-11},
}
NODES, STEPS = 90, 8
Edges = dict[str, npt.NDArray[Any]]


class Changing:
    """A store of a ring of few chords, to which edges come and of which edges go."""

    def __init__(self, path: Path, seed: int, *, directed: bool, weighted: bool) -> None:
        self.path, self.rng, self.weighted = path, np.random.default_rng(seed), weighted
        self.directed = directed
        first = self.edges(int(self.rng.integers(60, 200)), NODES)
        first["src"][0], first["dst"][0] = 1000, 1001
        parts = int(self.rng.integers(1, 4))
        given = gs.ingest(first, path, undirected=not directed, partitions=parts)
        given.graph.close()
        self.known = [first]

    def edges(self, size: int, most: int) -> Edges:
        ends = self.rng.integers(0, most, (2, size)) * 7919 % most + 1000
        found: Edges = {"src": ends[0], "dst": ends[1]}
        if self.weighted:
            found["weight"] = self.rng.integers(0, 6, size) / 4
        return found

    def change(self, step: int) -> None:
        come = self.edges(int(self.rng.integers(1, 15)), NODES + step)
        known = self.known[int(self.rng.integers(len(self.known)))]
        chosen = self.rng.choice(len(known["src"]), min(8, len(known["src"])), False)
        gone = {end: known[end][chosen] for end in ("src", "dst")}
        if step % 4 == 3:
            gone = {end: ids[:0] for end, ids in gone.items()}
        if step % 4 == 2:
            come = {name: values[:0] for name, values in come.items()}
        options: dict[str, Any] = {}
        if len(gone["src"]):
            options = {"delete": gone, "missing_deletes": "count"}
        with gs.open(self.path) as graph:
            graph.append(come if len(come["src"]) else None, **options).graph.close()
        self.known.append(come)


def assert_same(name: str, found: Any, expected: Any) -> None:
    assert found.table["id"].equals(expected.table["id"])
    assert found.result == expected.result
    if name == "pagerank":
        ours, theirs = (it.table["value"].to_numpy() for it in (found, expected))
        assert np.abs(ours - theirs).sum() < 1e-9
        assert ours.sum() == pytest.approx(1, abs=1e-12)
    else:
        assert found.table["value"].equals(expected.table["value"])


@pytest.mark.parametrize("weighted", [False, True], ids=["hops", "weights"])
@pytest.mark.parametrize("directed", [True, False], ids=["directed", "undirected"])
@pytest.mark.parametrize("seed", range(4))
def test_going_on_equals_computing_anew(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    directed: bool,
    weighted: bool,
) -> None:
    if seed % 2:  # so that searches end early in a graph as small as this
        monkeypatch.setattr(components, "FIRST_SEARCH", 6)
    for limit in ("TRIANGLE_VISITS", "CORE_VISITS"):  # never from scratch
        monkeypatch.setattr(neighborhoods, limit, 1000)
    monkeypatch.setattr(paths, "UNSETTLED_SHARE", 1)
    store = Changing(tmp_path / "g", seed, directed=directed, weighted=weighted)
    kept: list[dict[str, Any]] = []
    for step in range(STEPS):
        with gs.open(store.path) as graph:
            topology = Topology.of(graph)
            anew = {n: get(n)(topology, **PARAMETERS.get(n, {})) for n in followed()}
            for last in kept[-1:] + kept[:1]:
                for name, expected in anew.items():
                    given = PARAMETERS.get(name, {})
                    found = get(name)(topology, last=last[name], **given)
                    assert_same(name, found, expected)
                    _ = found.table  # made while the graph is open
            for expected in anew.values():
                _ = expected.table
        kept.append(anew)
        if step == 4:
            with compact(store.path).graph as graph:
                for name in followed():
                    with pytest.raises(ConfigError, match="was compacted"):
                        get(name)(graph, last=anew[name], **PARAMETERS.get(name, {}))
            kept = []
        store.change(step)


@pytest.mark.parametrize("name", ["k_core", "triangle_count", "bfs", "sssp"])
def test_changes_that_cost_more_than_everything_are_computed_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    store = Changing(tmp_path / "g", 0, directed=True, weighted=False)
    with gs.open(store.path) as graph:
        last = get(name)(graph, **PARAMETERS.get(name, {}))
        _ = last.table
    gone = {"src": store.known[0]["src"][:30], "dst": store.known[0]["dst"][:30]}
    with gs.open(store.path) as graph:
        come = {"src": [1001, 5000, 5001], "dst": [5000, 5001, 5002]}
        graph.append(come, delete=gone).graph.close()
    calls = []
    native = get(name).native_function()

    @functools.wraps(native)
    def anew(*given: Any, **options: Any) -> Any:
        calls.append(name)
        return native(*given, **options)

    monkeypatch.setattr(getattr(gs.algorithms, name), "native", anew)
    for visits, expected in ((1000, 0), (0, 1)):
        monkeypatch.setattr(neighborhoods, "TRIANGLE_VISITS", visits)
        monkeypatch.setattr(neighborhoods, "CORE_VISITS", visits)
        monkeypatch.setattr(paths, "UNSETTLED_SHARE", visits)
        calls.clear()
        with gs.open(store.path) as graph:
            found = get(name)(graph, last=last, **PARAMETERS.get(name, {}))
            assert len(calls) == expected
            assert_same(name, found, native(Topology.of(graph), **PARAMETERS.get(name, {})))
