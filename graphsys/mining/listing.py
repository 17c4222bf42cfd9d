"""The matches of a pattern, one by one, as a stream."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from graphsys.core.errors import ConfigError, StorageFullError
from graphsys.core.machine import describe_disk
from graphsys.core.memory import format_bytes
from graphsys.datasets.temporary import GraphLike
from graphsys.mining.approximate import estimate
from graphsys.mining.count_plan import CountPlan, plan_count
from graphsys.mining.labeled_graph import LabeledGraph
from graphsys.mining.match_stream import MatchStream
from graphsys.mining.pattern import Pattern
from graphsys.mining.plan_cache import BATCH, listed
from graphsys.mining.simple_graph import SimpleGraph
from graphsys.storage.output_file import new_files, require_writable

_LETTERS = "abcdefgh"


def matches(
    graph: SimpleGraph | GraphLike,
    pattern: Pattern | str | Any,
    *,
    induced: str = "edge",
    labels: str | None = None,
    limit: int | None = None,
    num_threads: int | None = None,
) -> Iterator[pa.Table]:
    """Yield the matches of a pattern, each set of edges (or nodes) once.

    Their order does not depend on the number of threads.

    Args:
        graph: A store, its path, or an object that holds a graph; counts as simple and,
            but for arrows of the pattern, undirected.
        pattern: What :meth:`graphsys.mining.pattern.Pattern.of` takes.
        induced: ``edge``, or ``vertex``: no other edges among a match's nodes.
        labels: Where labels of nodes are; see :func:`graphsys.mining.count`.
        limit: Most matches; :func:`exists` tells whether there is any.
        num_threads: All cores by default.

    Returns:
        Tables of up to 262,144 rows: ids in columns ``a``, ``b``, ..., the pattern's
        nodes in the order in which its text names them.

    Raises:
        ConfigError: the pattern is not one, or a negative limit; arrows in a graph without
            direction.
        UnknownNameError: there is no pattern of this name, or no label in the graph.

    Complexity:
        Memory: a dozen batches, and the largest degree times the pattern's nodes for each
        thread.
    """
    limit = _checked(limit)
    plan = plan_count(pattern, induced=induced, way="matches")
    labeled = LabeledGraph.of(graph, Pattern.of(pattern), labels)
    return _tables(labeled, plan, limit, num_threads)


def exists(
    graph: SimpleGraph | GraphLike,
    pattern: Pattern | str | Any,
    *,
    induced: str = "edge",
    labels: str | None = None,
    num_threads: int | None = None,
) -> bool:
    """Tell whether a pattern is in a graph; the first match ends the search.

    Args:
        graph: As for :func:`matches`.
        pattern: As for :func:`matches`.
        induced: As for :func:`matches`.
        labels: As for :func:`matches`.
        num_threads: All cores by default.

    Raises:
        ConfigError: as :func:`matches`.
        UnknownNameError: as :func:`matches`.

    Examples:
        >>> edges = np.array([0, 1, 2, 2]), np.array([1, 2, 0, 3])
        >>> exists(edges, "triangle"), exists(edges, "4-cycle")
        (True, False)
    """
    plan = plan_count(pattern, induced=induced, way="matches")
    labeled = LabeledGraph.of(graph, Pattern.of(pattern), labels)
    return MatchStream(labeled, plan, 1, num_threads).has_any()


def _checked(limit: int | None) -> int | None:
    if limit is not None and limit < 0:
        raise ConfigError(f"limit={limit}: expected 0 or more matches")
    return limit


def _tables(
    graph: LabeledGraph, plan: CountPlan, limit: int | None, num_threads: int | None
) -> Iterator[pa.Table]:
    """Yield tables of a batch each, the last shorter."""
    rows, order = graph.rows, plan.order
    room = BATCH if limit is None else min(BATCH, limit)
    left = limit
    if room == 0:
        return
    stream = MatchStream(graph, plan, room, num_threads).batches()
    try:
        for found in _of_one_size(stream, room):
            some = found if left is None else found[:left]
            left = None if left is None else left - len(some)
            columns = {
                _LETTERS[node]: rows.ids(some[:, order.index(node)])
                for node in range(len(order))
            }
            yield pa.table(columns)
            if left == 0:
                return
    finally:
        stream.close()


def _of_one_size(batches: Iterator[Any], size: int) -> Iterator[Any]:
    """Put batches together to ones of a size, the last shorter."""
    held: list[Any] = []
    num = 0
    for batch in batches:
        held.append(batch)
        num += len(batch)
        while num >= size:
            joined = np.concatenate(held)
            yield joined[:size]
            held, num = [joined[size:]], num - size
    if num:
        yield np.concatenate(held)


def write_matches(
    graph: SimpleGraph | GraphLike,
    pattern: Pattern | str | Any,
    out: str | os.PathLike[str],
    *,
    induced: str = "edge",
    labels: str | None = None,
    limit: int | None = None,
    num_threads: int | None = None,
    overwrite: bool = False,
    memory: int | str | None = None,
) -> int:
    """Write the matches of a pattern to a Parquet file; see :func:`matches`.

    How large the file may become is estimated first, without compression.

    Args:
        graph: As for :func:`matches`.
        pattern: As for :func:`matches`.
        out: A name that ends in ``.parquet``.
        induced: As for :func:`matches`.
        labels: As for :func:`matches`.
        limit: Most matches.
        num_threads: All cores by default.
        overwrite: Whether a file may be replaced.
        memory: As for :func:`graphsys.mining.count`.

    Returns:
        How many matches were written.

    Raises:
        BudgetError: what is kept of nodes, and batches of matches, do not fit.
        ConfigError: as for :func:`matches`, or another name.
        OutputExistsError: the file exists.
        StorageFullError: the matches may not fit the disk, or it is full.
    """
    out = Path(out)
    if out.suffix != ".parquet":
        raise ConfigError(f"cannot list matches to {out.name!r}: expected a .parquet file")
    require_writable(out, overwrite=overwrite)
    shape = Pattern.of(pattern)
    labeled = LabeledGraph.of(graph, shape, labels, memory, listed(shape.num_nodes))
    rows = labeled.rows
    plan = plan_count(shape, induced=induced, way="matches")
    found = _tables(labeled, plan, _checked(limit), num_threads)
    _require_room(labeled, shape, out, induced, limit)
    num = 0
    with new_files(out) as [new]:
        names = _LETTERS[: shape.num_nodes]
        kind = rows.ids(np.empty(0, dtype=np.int64)).type
        schema = pa.schema([(name, kind) for name in names])
        with pq.ParquetWriter(new, schema) as writer:
            for table in found:
                writer.write_table(table)
                num += table.num_rows
    return num


def _require_room(
    graph: LabeledGraph, pattern: Pattern, out: Path, induced: str, limit: int | None
) -> None:
    """Refuse a listing that the disk may not hold."""
    folder = out.absolute().parent
    while not folder.exists():
        folder = folder.parent
    free = int(describe_disk(folder)["free_bytes"])
    a_row = pattern.num_nodes * graph.rows.numbers.id_bytes
    if limit is not None and limit * a_row <= free:
        return
    likely = estimate(graph, pattern, induced=induced, relative_error=0.2).count
    num = likely if limit is None else min(likely, limit)
    if num * a_row > free:
        raise StorageFullError(
            f"about {num:,.0f} matches take up to {format_bytes(num * a_row)}, but "
            f"{folder} has {format_bytes(free)} free; list some of them with a limit, or "
            "count them"
        )
