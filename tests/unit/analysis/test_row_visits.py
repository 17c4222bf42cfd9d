"""What runs say of the rows that they walk, against a search written out in Python."""

import copy
from typing import Any

import numpy as np
import pytest

import graphsys as gs
from graphsys.core.events import recording
from graphsys.core.row_trace import RowVisit
from graphsys.engine import algorithms
from graphsys.engine.topology import Topology


def random_topology(seed: int, *, directed: bool = True, num: int = 400) -> Topology:
    rng = np.random.default_rng(seed)
    src = rng.integers(0, num, 6 * num)
    hubs = np.minimum(rng.zipf(1.5, 6 * num) - 1, num - 1)
    dst = np.where(rng.random(6 * num) < 0.4, hubs, rng.integers(0, num, 6 * num))
    return Topology.from_edges(src, dst, num, directed=directed)


def visits_of(
    topology: Topology, name: str, implementation: str, **options: Any
) -> list[RowVisit]:
    """Run an algorithm and return all rows that it offers, frozen."""
    seen: list[RowVisit] = []

    def watch(visits: list[RowVisit]) -> None:
        seen.extend(copy.deepcopy(visits))

    with recording({"rows": watch}):
        algorithms.get(name)(topology, implementation=implementation, **options)
    return seen


def levels_of(topology: Topology, source: int) -> list[int]:
    """Hops by a queue; -1 where not reached."""
    rows = topology.csr("out")
    hops = [-1] * topology.num_nodes
    hops[source], queue = 0, [source]
    for node in queue:
        for other in rows.indices[rows.indptr[node] : rows.indptr[node + 1]].tolist():
            if hops[other] < 0:
                hops[other] = hops[node] + 1
                queue.append(other)
    return hops


def trips_of(
    topology: Topology, hops: list[int], level: int, is_looked_at: Any
) -> list[int]:
    """Entries each row is read for, until the first neighbor found at a level."""
    rows, trips = topology.csr("in"), []
    for node in range(topology.num_nodes):
        walked = 0
        if (hops[node] < 0 or hops[node] > level) and is_looked_at(node):
            for other in rows.indices[rows.indptr[node] : rows.indptr[node + 1]].tolist():
                walked += 1
                if hops[other] == level:
                    break
        trips.append(walked)
    return trips


@pytest.mark.parametrize("implementation", ["native", "program"])
@pytest.mark.parametrize("seed", range(3))
def test_a_search_tells_the_entries_that_it_looks_at(
    implementation: str, seed: int
) -> None:
    topology = random_topology(seed)
    hops = levels_of(topology, 7)
    visits = visits_of(topology, "bfs", implementation, source=7)
    assert {visit.kind for visit in visits} == {"push", "pull"}
    out = topology.csr("out")
    for visit in visits:
        assert visit.is_exact
        if visit.kind == "push":
            senders = [node for node, hop in enumerate(hops) if hop == visit.superstep]
            degrees = [int(out.indptr[v + 1]) - int(out.indptr[v]) for v in senders]
            assert sorted(visit.lengths.tolist()) == sorted(degrees)
            assert visit.starts is not None
            assert visit.indices is not None
            found = sorted(
                visit.indices[start : start + length].tolist()
                for start, length in zip(visit.starts, visit.lengths, strict=True)
            )
            rows = [
                out.indices[out.indptr[v] : out.indptr[v + 1]].tolist() for v in senders
            ]
            assert found == sorted(rows)
        else:
            wanted = trips_of(topology, hops, visit.superstep, lambda node: True)
            assert visit.lengths.tolist() == wanted


class Around(gs.VertexProgram):
    """Hops from node 7, along edges in both directions."""

    hops = gs.state("int64", default=-1, null=-1)
    direction = "both"
    combine = gs.any

    def start(self, graph: Any) -> Any:
        return {7: {"hops": 0}}

    def message(self, src: Any, edge: Any) -> Any:
        return src.hops + 1

    def accepts(self, node: Any) -> Any:
        return node.hops < 0

    def update(self, node: Any, message: Any) -> Any:
        return message


def test_rows_of_the_other_direction_are_not_walked_after_a_hit() -> None:
    topology = random_topology(5)
    seen: list[RowVisit] = []
    with recording({"rows": lambda visits: seen.extend(copy.deepcopy(visits))}):
        done = gs.run(Around, topology)
    hops = done.table["value"].to_numpy()
    sides = [topology.csr("in"), topology.csr("out")]
    pulls = [visit for visit in seen if visit.kind == "pull"]
    assert len(pulls) >= 2
    for first, second in zip(pulls[::2], pulls[1::2], strict=True):
        level = first.superstep
        assert second.superstep == level
        expected: list[list[int]] = [[], []]
        for node in range(topology.num_nodes):
            looks = hops[node] < 0 or hops[node] > level
            for rows, trips in zip(sides, expected, strict=True):
                walked = 0
                begin, end = int(rows.indptr[node]), int(rows.indptr[node + 1])
                for other in rows.indices[begin:end].tolist() if looks else ():
                    walked += 1
                    if hops[other] == level:
                        looks = False
                        break
                trips.append(walked)
        assert first.lengths.tolist() == expected[0]
        assert second.lengths.tolist() == expected[1]


@pytest.mark.parametrize("implementation", ["native", "program"])
def test_pagerank_walks_all_rows_under_one_key(implementation: str) -> None:
    topology = random_topology(1)
    visits = visits_of(topology, "pagerank", implementation, iterations=4)
    assert [visit.superstep for visit in visits] == [0, 1, 2, 3]
    assert len({visit.key for visit in visits}) == 1
    assert visits[0].key is not None
    assert visits[0].lengths.tolist() == np.diff(topology.csr("in").indptr).tolist()
    assert visits[0].value_bytes == 8


def test_rows_pulled_for_touched_nodes_are_theirs() -> None:
    """A message that cannot be pushed is pulled along the rows that hear something."""
    topology = random_topology(2, num=4000)
    visits = visits_of(topology, "cdlp", "program", iterations=2)
    assert [visit.lengths.sum() > 0 for visit in visits] == [True] * len(visits)


def test_the_result_is_the_same_with_an_observer() -> None:
    topology = random_topology(3)
    run = algorithms.get("bfs")
    alone = run(topology, source=7, implementation="program").table
    with recording({"rows": lambda visits: None}):
        seen = run(topology, source=7, implementation="program").table
    assert seen.equals(alone)
    with recording() as recorder:
        run(topology, source=7, implementation="program")
    assert not any(event.name == "observing" for event in recorder.events)


def test_launches_tell_busy_threads_and_supersteps_their_mode() -> None:
    topology = random_topology(4, num=30_000)
    with recording() as recorder:
        algorithms.get("pagerank")(
            topology, implementation="program", iterations=3, num_threads=2
        )
    launches = [event for event in recorder.events if event.name == "kernel_launches"]
    pulls = [event for event in launches if event.attributes["kernel"] == "pull_0"]
    assert len(pulls) == 3
    for event in pulls:
        busy = event.attributes["busy_ns"]
        assert isinstance(busy, tuple)
        assert len(busy) == 2
        assert 0 < max(busy) <= event.duration_ns
    steps = [event for event in recorder.events if event.name == "superstep"]
    facts = [(step.attributes["number"], step.attributes["mode"]) for step in steps]
    assert facts == [(0, "pull"), (1, "pull"), (2, "pull")]
    assert [step.attributes["messages"] for step in steps] == [topology.num_edges] * 3
    edges = [event.value for event in recorder.events if event.name == "edges"]
    assert edges == [topology.num_edges] * 3
