"""The last result: read, compared with the store; the run that goes on from it."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graphsys.core.errors import ConfigError
from graphsys.engine.memory_plan import Facts, Need
from graphsys.engine.native_plan import NativeRun, prepare_native
from graphsys.engine.result import Origin, Result, origin_of, parameters_of
from graphsys.engine.topology import Topology
from graphsys.storage.dynamic.delta_range import DeltaEdges, edges_since, state_checksum
from graphsys.storage.reader import GraphReader

AGAIN = "run it again without the last result"
_NODE_BYTES: Final = {"wcc": 41, "pagerank": 24, "bfs": 49, "sssp": 49}
_NEIGHBOR_NODE_BYTES: Final = 73
_ENTRY_BYTES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class LastResult:
    """A result of the store as it was, and how its edges changed.

    Attributes:
        values: Of the nodes that there were, by their numbers.
        edges: What came and went since.
    """

    values: pa.ChunkedArray
    edges: DeltaEdges

    def ends(self, is_directed: bool) -> dict[str, npt.NDArray[np.int64]]:
        """Return added and removed edges, each in both directions if undirected."""
        edges = self.edges
        found = {
            "added_src": edges.added_src,
            "added_dst": edges.added_dst,
            "removed_src": edges.removed_src,
            "removed_dst": edges.removed_dst,
        }
        if is_directed:
            return found
        mirrored = {"src": "dst", "dst": "src"}
        return {
            name: np.concatenate([found[name], found[f"{name[:-3]}{mirrored[name[-3:]]}"]])
            for name in found
        }


def read_last(
    last: Any, algorithm: str, parameters: dict[str, str], topology: Topology
) -> LastResult:
    """Read a result and find what changed since.

    Args:
        last: A :class:`Result`, a table, or the path of a .parquet or .arrow file.
        algorithm: What is to go on from it.
        parameters: Its parameters, as texts.
        topology: The graph now.

    Raises:
        ConfigError: no such file, a result of something else, of another graph, or of
            before the store was compacted or written anew.
    """
    table, where = _table_of(last)
    origin = origin_of(table)
    if origin is None:
        raise ConfigError(
            f"{where} does not say what it is of; expected what graphsys run {algorithm} "
            f"wrote of this graph as .parquet or .arrow; {AGAIN}"
        )
    if origin.algorithm != algorithm:
        raise ConfigError(
            f"{where} is of {origin.algorithm}, expected one of {algorithm}; {AGAIN}"
        )
    for name, value in parameters.items():
        if origin.parameters.get(name) != value:
            raise ConfigError(
                f"{where} has {name}={origin.parameters.get(name)}, expected {value}; "
                f"give the same {name}, or {AGAIN}"
            )
    graph = _graph_of(topology)
    _compare(origin, graph, where)
    return LastResult(
        values=_by_number(table, topology, where),
        edges=edges_since(graph, graph.edge_type_name(graph.edge_types[0]), origin.deltas),
    )


def _table_of(last: Any) -> tuple[pa.Table, str]:
    if isinstance(last, Result):
        return last.table, "the last result"
    if isinstance(last, pa.Table):
        return last, "the last result"
    if not isinstance(last, str | os.PathLike):
        raise ConfigError(
            f"last is {type(last).__name__}, expected a result, a table or a file's path"
        )
    path = Path(last)
    try:
        if path.suffix == ".arrow":
            with pa.memory_map(str(path)) as source:
                return pa.ipc.open_file(source).read_all(), path.name
        if path.suffix == ".parquet":
            import pyarrow.parquet

            return pyarrow.parquet.read_table(path), path.name
    except (OSError, pa.ArrowException) as err:
        what = "there is none" if not path.exists() else str(err).splitlines()[0]
        raise ConfigError(
            f"{path.name} cannot be read as a last result: {what}; {AGAIN}"
        ) from None
    raise ConfigError(
        f"{path.name} cannot be read as a last result: expected a .parquet or .arrow file"
    )


def _graph_of(topology: Topology) -> GraphReader:
    graph = topology.graph
    if graph is None or graph.window is not None:
        raise ConfigError(
            f"a last result needs a stored graph, not edges in memory or a view; {AGAIN}"
        )
    if len(graph.node_types) != 1 or len(graph.edge_types) != 1:
        raise ConfigError(
            f"a last result needs a graph of one node type and one edge type, got "
            f"{len(graph.node_types)} and {len(graph.edge_types)}; {AGAIN}"
        )
    return graph


def _compare(origin: Origin, graph: GraphReader, where: str) -> None:
    manifest = graph.whole_manifest
    count = len(manifest.deltas)
    if origin.generation < manifest.generation:
        raise ConfigError(
            f"{where} is of generation {origin.generation} of a graph, expected "
            f"{manifest.generation}, which {graph.path.name} has: it was compacted or "
            f"written anew since, or is another graph; {AGAIN}"
        )
    is_of_it = (
        origin.generation == manifest.generation
        and origin.deltas <= count
        and state_checksum(manifest, origin.deltas) == origin.checksum
    )
    if not is_of_it:
        raise ConfigError(
            f"{where} is of another graph than {graph.path.name}, or of a later state "
            f"of it; {AGAIN}"
        )


def _by_number(table: pa.Table, topology: Topology, where: str) -> pa.ChunkedArray:
    """Return the values in the order of the nodes' numbers."""
    ids = topology.ids()
    first = ids.slice(0, table.num_rows)
    if not {"id", "value"} <= set(table.column_names) or table.num_rows > len(ids):
        raise ConfigError(f"{where} has other columns or rows than a result; {AGAIN}")
    if first.equals(table["id"]):
        return table["value"]
    places = pc.index_in(first, table["id"].combine_chunks().cast(ids.type))
    if places.null_count:
        raise ConfigError(f"{where} has not the nodes that the graph had then; {AGAIN}")
    return table["value"].take(places)


def prepare_from(
    last: Any,
    name: str,
    function: Callable[..., Result],
    follower: Callable[..., Result],
    needed: Callable[[Facts], Need],
    topology: Topology,
    options: Mapping[str, Any],
    memory: int | str | None,
    num_threads: int | None,
) -> NativeRun:
    """Decide how a result is brought up to date.

    Args:
        last: A result, a table, or a file's path.
        name: Of the algorithm.
        function: What computes it from scratch, natively.
        follower: What goes on from the last result.
        needed: Tells what ``function`` takes.
        topology: The graph.
        options: The algorithm's parameters, checked.
        memory: Budget of anonymous memory; what there is by default.
        num_threads: Threads; all cores by default.

    Raises:
        ConfigError: the algorithm does not go on from this result.
        BudgetError: the budget is too small.
    """
    parameters = parameters_of(function, options)
    found = read_last(last, name, parameters, topology)
    work = prepare_native(
        name,
        follower,
        topology,
        {**options, "last": found, "num_threads": num_threads},
        memory,
        _needed(name, needed),
    )
    text = f"from the last result: {found.edges.size} edges came or went since"
    choice = replace(work.choice, reasons=(text, *work.choice.reasons))
    return replace(work, choice=choice, parameters=parameters)


def _needed(name: str, anew: Callable[[Facts], Need]) -> Callable[[Facts], Need]:
    """Return what it takes: no less than from scratch, which it may come to."""

    def need(facts: Facts) -> Need:
        scratch = anew(facts)
        own = _NODE_BYTES.get(name, _NEIGHBOR_NODE_BYTES) + 2 * facts.id_bytes
        own += facts.ranked if name == "wcc" else 0
        copied = 0 if name in _NODE_BYTES else _ENTRY_BYTES * facts.simple_entries
        is_simple = scratch.simple or name not in _NODE_BYTES
        total = scratch.bytes + own * facts.nodes + copied
        return replace(scratch, simple=is_simple, bytes=total, kernels="")

    return need
