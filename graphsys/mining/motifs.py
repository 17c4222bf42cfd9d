"""Motifs of a graph as users ask for them: of the whole, or of every node and edge."""

from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import ConfigError
from graphsys.core.progress import SILENT, Progress
from graphsys.datasets.temporary import GraphLike
from graphsys.mining.census.motifs import motif_counts
from graphsys.mining.census.orbits import edge_orbits, node_orbits
from graphsys.mining.census.rooted import Columns
from graphsys.mining.devices import check_device
from graphsys.mining.plan_cache import CENSUS_OF_5, EDGE_ORBITS, NODE_FEATURES, NODE_ORBITS
from graphsys.mining.simple_graph import NOTHING, SimpleGraph

Per = Literal["node", "edge"]
FEATURE: Final = "orbits"
"""What the column of lists is called."""


def motif_census(
    graph: SimpleGraph | GraphLike,
    size: int,
    *,
    induced: str = "vertex",
    num_threads: int | None = None,
    progress: Progress = SILENT,
    device: str = "cpu",
    memory: int | str | None = None,
) -> dict[str, int]:
    """Count all connected motifs of a size in a graph, by name.

    The graph counts as simple and undirected. See
    :func:`graphsys.mining.census.motifs.motif_counts`.

    Args:
        graph: A store, its path, or an object that holds a graph.
        size: 3, 4 or 5 nodes.
        induced: ``vertex`` counts the sets of nodes whose edges are the motif, ``edge``
            the sets of edges.
        num_threads: All cores by default.
        progress: Receives a stage for each kernel.
        device: ``cpu``, or ``cuda`` for sizes 3 and 4.
        memory: Budget of anonymous memory of the process: what does not fit of rows, and
            the lists of 5 nodes, are in files without a name. What there is by default.

    Raises:
        BudgetError: what is kept of nodes and edges does not fit; the message names what
            does.
        ConfigError: motifs of this size are not counted there, or ``induced`` is neither
            word; an unknown device, or no GPU.
        MissingDependencyError: numba-cuda is not installed.
    """
    check_device(device)
    rows = SimpleGraph.of(graph, memory, CENSUS_OF_5 if size == 5 else NOTHING)
    return motif_counts(
        rows,
        size,
        induced=induced,
        num_threads=num_threads,
        progress=progress,
        device=device,
    )


def orbits(
    graph: SimpleGraph | GraphLike,
    *,
    per: Per = "node",
    features: bool = False,
    num_threads: int | None = None,
    memory: int | str | None = None,
) -> pa.Table:
    """Count in which places of the graphs of up to 4 nodes every node or edge stands.

    Counts are vertex-induced, of the simple undirected graph.

    Args:
        graph: A store, its path, or an object that holds a graph.
        per: ``node``: ``orbit_0`` to ``orbit_14``, numbered as by ORCA; ``edge``: a column
            for each place of an edge, by the names of ``census.rooted.EDGE_ORBITS``.
        features: Give one column ``orbits``, lists of ``log(1 + count)``, float32, which
            an ingest takes as features of nodes.
        num_threads: All cores by default.
        memory: As for :func:`motif_census`.

    Returns:
        ``id`` (and ``type`` where there are several node types) or ``src`` and ``dst``,
        and the counts, int64.

    Raises:
        ConfigError: ``per`` is neither word.
        BudgetError: as :func:`motif_census`.
        InvalidGraphError: a node has so many neighbors that counts may exceed 64 bits.
    """
    if per not in ("node", "edge"):
        raise ConfigError(f"per={per!r} is neither 'node' nor 'edge'")
    of_nodes = NODE_FEATURES if features else NODE_ORBITS
    rows = SimpleGraph.of(graph, memory, of_nodes if per == "node" else EDGE_ORBITS)
    if per == "node":
        table = rows.table(node_orbits(rows, num_threads=num_threads))
    else:
        src, dst, counts = edge_orbits(rows, num_threads=num_threads)
        table = pa.table({"src": rows.ids(src), "dst": rows.ids(dst), **counts})
    return _joined(table) if features else table


def as_features(counts: Columns) -> npt.NDArray[np.float32]:
    """Return ``log(1 + count)`` of every node or edge, float32 ``[N, K]``."""
    values: npt.NDArray[np.float64] = np.log1p(np.stack(list(counts.values()), axis=1))
    return values.astype(np.float32)


def _joined(table: pa.Table) -> pa.Table:
    """Join the columns of counts to one of lists."""
    keys = [name for name in table.column_names if name in ("id", "type", "src", "dst")]
    names = [name for name in table.column_names if name not in keys]
    values = as_features({name: table[name].to_numpy() for name in names})
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), len(names))
    return table.select(keys).append_column(FEATURE, lists)
