"""LDBC Graphalytics' graphs and reference outputs, read without our readers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.engine.topology import Topology

VALIDATION = "graphalytics-validation"
P2P = "graphalytics-p2p31/p2p-31"
UNREACHED = {"9223372036854775807", "infinity", "inf"}


def adjacency(path: Path, directed: bool) -> Topology:
    """Read lines of a node and its neighbors; undirected edges are listed twice."""
    found(path)
    rows = [[int(n) for n in line.split()] for line in path.read_text().splitlines()]
    edges = [(row[0], other) for row in rows for other in row[1:]]
    if not directed:
        edges = sorted({(min(pair), max(pair)) for pair in edges})
    nodes = sorted({node for row in rows for node in row})
    return build(nodes, edges, None, directed)


def tables(nodes: Path, edges: Path, directed: bool) -> Topology:
    """Read a ``.v`` and a ``.e`` file."""
    found(nodes)
    ids = [int(line.split()[0]) for line in nodes.read_text().splitlines()]
    table = np.loadtxt(edges, ndmin=2)
    pairs = [(int(a), int(b)) for a, b in table[:, :2]]
    return build(ids, pairs, table[:, 2] if table.shape[1] > 2 else None, directed)


def build(
    ids: list[int], edges: list[tuple[int, int]], weight: Any, directed: bool
) -> Topology:
    """Number the nodes as they come."""
    number = {node: place for place, node in enumerate(ids)}
    src = np.array([number[a] for a, _ in edges], dtype=np.int64)
    dst = np.array([number[b] for _, b in edges], dtype=np.int64)
    return Topology.from_edges(
        src, dst, len(ids), weight=weight, directed=directed, ids=ids
    )


def expected(path: Path, kind: type) -> dict[int, Any]:
    """Read a reference output; unreached is None."""
    pairs = (line.split() for line in found(path).read_text().splitlines() if line)
    return {
        int(n): None if value.lower() in UNREACHED else kind(value) for n, value in pairs
    }


def found(path: Path) -> Path:
    """Skip the test where the file is not there."""
    if not path.is_file():
        pytest.skip(f"no {path.name} among the shared data")
    return path
