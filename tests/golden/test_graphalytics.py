"""Reference outputs of LDBC Graphalytics, by every implementation we have.

Two sets: the validation graphs of the benchmark itself, with the parameters of its tests,
and p2p-Gnutella31 with the outputs that libgrape-lite publishes (its directed PageRank does
not follow the definition and is not used). The rules of comparison are the benchmark's:
BFS and CDLP exact, WCC equal up to the names of components, PR, LCC and SSSP within 1e-4 of
each value; we ask for all the digits that a reference has.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.engine import algorithms
from graphsys.engine.topology import Topology
from graphsys.storage import NodeChunk
from tests.clusters import run_by_workers
from tests.stores import as_ids, edge_chunk, make_store

UNREACHED = 2**63 - 1
Values = dict[int, float]

ALGORITHMS = {
    "BFS": "bfs",
    "CDLP": "cdlp",
    "LCC": "lcc",
    "PR": "pagerank",
    "SSSP": "sssp",
    "WCC": "wcc",
}

FLOAT = {"damping": float(np.float32(0.85))}  # what the benchmark's own tests pass
VALIDATION: dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]] = {
    # algorithm: folder, edge format, parameters directed, parameters undirected
    "BFS": ("bfs", "lists", {"source": 1}, {"source": 1}),
    "CDLP": ("cdlp", "lists", {"iterations": 5}, {"iterations": 5}),
    "LCC": ("lcc", "lists", {}, {}),
    "PR": ("pr", "lists", {**FLOAT, "iterations": 14}, {**FLOAT, "iterations": 26}),
    "SSSP": ("sssp", "edges", {"source": 1}, {"source": 1}),
    "WCC": ("wcc", "lists", {}, {}),
}

EXAMPLE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "BFS": ({"source": 1}, {"source": 2}),
    "CDLP": ({"iterations": 2}, {"iterations": 2}),
    "LCC": ({}, {}),
    "PR": ({"iterations": 2}, {"iterations": 2}),
    "SSSP": ({"source": 1}, {"source": 2}),
    "WCC": ({}, {}),
}

P2P31: dict[str, tuple[str, bool, dict[str, Any]]] = {
    # file: algorithm, is directed, parameters
    "p2p-31-BFS": ("BFS", False, {"source": 6}),
    "p2p-31-BFS-directed": ("BFS", True, {"source": 6}),
    "p2p-31-CDLP": ("CDLP", False, {"iterations": 10}),
    "p2p-31-LCC": ("LCC", False, {}),
    "p2p-31-PR": ("PR", False, {"iterations": 10}),
    "p2p-31-SSSP": ("SSSP", False, {"source": 6}),
    "p2p-31-SSSP-directed": ("SSSP", True, {"source": 6}),
    "p2p-31-WCC": ("WCC", False, {}),
}

IMPLEMENTATIONS = [
    (code, way)
    for code, name in ALGORITHMS.items()
    for way in ("native", "program", "cluster")
    if getattr(algorithms.get(name), "program" if way == "cluster" else way)
]


# ---- the files


def reference(path: Path) -> Values:
    """Read a reference output: node and value by line."""
    rows = [line.split() for line in path.read_text().splitlines() if line.strip()]
    return {int(node): float(value) for node, value in rows}


def from_lists(path: Path, *, is_directed: bool) -> tuple[list[int], Any, None]:
    """Read lines of a node and its neighbors, each edge twice if undirected."""
    rows = [[int(n) for n in line.split()] for line in path.read_text().splitlines()]
    pairs = [(row[0], other) for row in rows for other in row[1:]]
    if not is_directed:
        pairs = sorted({(min(a, b), max(a, b)) for a, b in pairs})
    return [row[0] for row in rows if row], pairs, None


def from_edges(nodes: Path, edges: Path) -> tuple[list[int], Any, Any]:
    """Read a .v file of nodes and a .e file of edges with weights."""
    ids = [int(line.split()[0]) for line in nodes.read_text().splitlines() if line.strip()]
    columns = np.loadtxt(edges, ndmin=2)
    pairs = columns[:, :2].astype(np.int64)
    return ids, pairs, columns[:, 2] if columns.shape[1] > 2 else None


def stored(out: Path, found: tuple[list[int], Any, Any], *, is_directed: bool) -> Topology:
    ids, pairs, weight = found
    columns: dict[str, Any] = (
        {} if weight is None else {"weight": np.asarray(weight, dtype=np.float64)}
    )
    edges = edge_chunk([(int(a), int(b)) for a, b in pairs], **columns)
    make_store(
        out, NodeChunk(ids=as_ids(ids)), edges, is_directed=is_directed, partitions=4
    )
    return Topology.of(out)


# ---- the comparison


def outcome(code: str, way: str, graph: Topology, parameters: Mapping[str, Any]) -> Values:
    if way == "cluster":
        assert graph.graph is not None  # a store
        name, place = ALGORITHMS[code], graph.graph.path
        table, _ = run_by_workers(name, place, dict(parameters), 4)
    else:
        found = algorithms.get(ALGORITHMS[code])(graph, implementation=way, **parameters)
        table = found.table
    missing = {"BFS": UNREACHED, "SSSP": float("inf")}.get(code, float("nan"))
    rows = zip(table["id"].to_pylist(), table["value"].to_pylist(), strict=True)
    return {node: float(missing if value is None else value) for node, value in rows}


def check(code: str, found: Values, expected: Values, digits: float) -> None:
    assert found.keys() == expected.keys()
    nodes = list(expected)
    if code == "WCC":
        names = {(found[node], expected[node]) for node in nodes}
        assert len(names) == len({a for a, _ in names}) == len({b for _, b in names})
    elif code in ("BFS", "CDLP"):
        assert found == expected
    else:
        assert [found[n] for n in nodes] == pytest.approx(
            [expected[n] for n in nodes], rel=digits, abs=1e-15
        )


both_ways = pytest.mark.parametrize(("code", "way"), IMPLEMENTATIONS)
directions = pytest.mark.parametrize("is_directed", [True, False], ids=["dir", "undir"])


@directions
@both_ways
def test_validation_graphs(
    shared_data: Path, tmp_path: Path, code: str, way: str, is_directed: bool
) -> None:
    name, kind, directed, undirected = VALIDATION[code]
    folder = shared_data / "graphalytics-validation" / name
    prefix = "dir" if is_directed else "undir"
    if kind == "lists":
        found: Any = from_lists(folder / f"{prefix}-input", is_directed=is_directed)
    else:
        found = from_edges(folder / f"{prefix}-input.v", folder / f"{prefix}-input.e")
    graph = stored(tmp_path / "store", found, is_directed=is_directed)
    got = outcome(code, way, graph, directed if is_directed else undirected)
    # the directed PageRank was made in single precision
    digits = 2e-6 if (code, is_directed) == ("PR", True) else 1e-9
    check(code, got, reference(folder / f"{prefix}-output"), digits)


@directions
@both_ways
def test_example_graphs(
    shared_data: Path, tmp_path: Path, code: str, way: str, is_directed: bool
) -> None:
    folder = shared_data / "graphalytics-validation" / "example"
    name = f"example-{'' if is_directed else 'un'}directed"
    found = from_edges(folder / f"{name}.v", folder / f"{name}.e")
    graph = stored(tmp_path / "store", found, is_directed=is_directed)
    got = outcome(code, way, graph, EXAMPLE[code][0 if is_directed else 1])
    check(code, got, reference(folder / f"{name}-{code}"), 1e-12)


@pytest.fixture(scope="session")
def p2p31(shared_data: Path, tmp_path_factory: Any) -> Callable[[bool], Topology]:
    folder = shared_data / "graphalytics-p2p31"
    made: dict[bool, Topology] = {}

    def graph(is_directed: bool) -> Topology:
        if is_directed not in made:
            found = from_edges(folder / "p2p-31.v", folder / "p2p-31.e")
            out = tmp_path_factory.mktemp("p2p31") / "store"
            made[is_directed] = stored(out, found, is_directed=is_directed)
        return made[is_directed]

    return graph


@pytest.mark.parametrize(
    ("file", "way"),
    [
        (file, way)
        for file, (code, _, _) in P2P31.items()
        for known, way in IMPLEMENTATIONS
        if code == known
    ],
)
def test_p2p_gnutella31(
    shared_data: Path, p2p31: Callable[[bool], Topology], file: str, way: str
) -> None:
    code, is_directed, parameters = P2P31[file]
    got = outcome(code, way, p2p31(is_directed), parameters)
    check(code, got, reference(shared_data / "graphalytics-p2p31" / file), 1e-12)
    if code == "WCC":  # named by their smallest ids here
        assert all(name <= node for node, name in got.items())
