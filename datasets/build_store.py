"""From data in any shape to a store."""

import dataclasses
import inspect
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphsys.core.errors import ConfigError, unknown_name
from graphsys.core.types import EdgeType
from graphsys.datasets.base import ColumnNames, read_options
from graphsys.datasets.missing_nodes import ListedNodesOnly
from graphsys.datasets.opening import open_source
from graphsys.datasets.readers.in_memory import from_object
from graphsys.datasets.signed_edges import SignedSource
from graphsys.datasets.table_spec.typed_tables import open_given
from graphsys.datasets.time_units import TimedSource
from graphsys.storage.ingest.ingest import ingest as ingest_source
from graphsys.storage.ingest.options import IngestOptions
from graphsys.storage.ingest.split_spec import Shares, SplitSpec, split_spec

if TYPE_CHECKING:
    from graphsys.storage.ingest.ingest import IngestReport
    from graphsys.storage.reader import GraphReader
    from graphsys.storage.source import Source


def ingest(
    data: Any = None,
    out: str | os.PathLike[str] | None = None,
    *,
    nodes: Mapping[str, Any] | None = None,
    edges: Mapping[Any, Any] | None = None,
    format: str | None = None,
    ids: str = "auto",
    columns: ColumnNames = None,
    separator: str | None = None,
    skip: int = 0,
    undirected: bool = False,
    edge_type: EdgeType | Sequence[str] | None = None,
    num_threads: int | None = None,
    time_unit: str | None = None,
    signed: bool = False,
    split: "Shares | SplitSpec | None" = None,
    by: str | None = None,
    negatives: int | None = None,
    inverse: str | None = None,
    missing_nodes: str = "make",
    **options: Any,
) -> "IngestReport[GraphReader]":
    """Read a graph and write a store.

    Args:
        data: Paths (see ``open_source``), a Python object (see ``from_object``) or a
            ``Source``; None where ``edges`` are given.
        out: Where the store goes.
        nodes: Table of each node type: a path, or a table of pandas, Polars, pyarrow.
            Columns ``id``, ``label``, ``split``, ``time`` by name; lists become features.
        edges: Table of each edge type, ``("user", "trusts", "user")``.
        format: Format of files; None to guess it.
        ids: "auto", "int" or "string".
        columns: Names of columns; of ``nodes`` and ``edges`` as ``{"user.id": "uid"}``.
        separator: What separates columns in text.
        skip: Lines to leave out at the beginning of each text file.
        undirected: Every edge stands for both directions.
        edge_type: Type of the edges.
        num_threads: Threads that read ahead.
        time_unit: Unit of times of edges that are integers, since 1970: "s", "ms", "us",
            "ns" or "d"; then ``graph.at("2012-01-01")`` can be asked.
        signed: The sign of an edge's weight becomes its relation, "positive" or
            "negative", and its size the weight.
        split: Shares of train, valid and test ("0.8,0.1,0.1"), or two numbers of edges,
            those of valid and test; drawn with ``seed`` (see ``graphsys.split``).
        by: How they are chosen: "random" (None, too), "time" or "relation".
        negatives: Pairs that are no edges to draw for each edge of valid and test.
        inverse: "together" to hold out edges of inverse relations together, or "apart".
        missing_nodes: Nodes that edges name and their table lacks: "make" them without
            columns, "drop" their edges, or "refuse" them; counted in a warning.
        **options: Those of ``graphsys.storage.ingest``: partitions, partitioner, order,
            memory, coalesce, drop_self_loops, overwrite, seed, progress.

    Raises:
        InputError: the data cannot be read.
        ConfigError: an option has a value that does not exist.
        UnknownNameError: there is no such option; the message has the nearest.
        OutputExistsError: ``out`` exists and ``overwrite`` is false.
    """
    _require_known(options)
    split = _split_asked(split, by, negatives, inverse, options.get("seed", 0))
    if out is None:
        raise ConfigError("out: got none, expected the folder where the store goes")
    source = open_data(
        data,
        nodes=nodes,
        edges=edges,
        format=format,
        ids=ids,
        columns=columns,
        separator=separator,
        skip=skip,
        undirected=undirected,
        edge_type=edge_type,
        num_threads=num_threads,
        time_unit=time_unit,
        signed=signed,
    )
    if missing_nodes == "drop":
        source = ListedNodesOnly(source, options.get("memory", "4GB"))
        missing_nodes = "make"
    return ingest_source(
        source,
        Path(out),
        undirected=undirected,
        split=split,
        missing_nodes=missing_nodes,
        **options,
    )


def _require_known(options: Mapping[str, Any]) -> None:
    """Refuse options that neither reading nor writing has."""
    written = {field.name for field in dataclasses.fields(IngestOptions)}
    written |= set(inspect.signature(ingest_source).parameters)
    known = (written | set(inspect.signature(ingest).parameters)) - {"options", "source"}
    for name in options.keys() - known:
        raise unknown_name("option of ingest", name, known - {"memory_bytes"})


def open_data(
    data: Any = None,
    *,
    nodes: Mapping[str, Any] | None = None,
    edges: Mapping[Any, Any] | None = None,
    format: str | None = None,
    separator: str | None = None,
    skip: int = 0,
    time_unit: str | None = None,
    signed: bool = False,
    **reading: Any,
) -> "Source":
    """Open what :func:`ingest` is given, with arguments of the same names.

    Args:
        data: Paths, a Python object, or None where there are tables by type.
        nodes: Table of each node type.
        edges: Table of each edge type.
        format: Format of files; None to guess it.
        separator: What separates columns in text.
        skip: Lines to leave out at the beginning of each text file.
        time_unit: Unit of times of edges that are integers.
        signed: The sign of an edge's weight becomes its relation.
        **reading: ``ids``, ``columns``, ``undirected``, ``edge_type``, ``num_threads``.

    Raises:
        InputError: the data cannot be read.
        ConfigError: an option has a value that does not exist.
    """
    if (data is None) == (edges is None and nodes is None):
        raise ConfigError("ingest takes either data, or edges and nodes by their types")
    if data is None:
        options = read_options(separator=separator, skip=skip, **reading)
        source = open_given(nodes or {}, edges or {}, options, format=format)
    elif is_paths(data):
        source = open_source(data, format=format, separator=separator, skip=skip, **reading)
    else:
        source = from_object(data, **reading)
    if signed:
        source = SignedSource(source)
    return source if time_unit is None else TimedSource(source, time_unit)


def is_paths(data: Any) -> bool:
    """Return whether data are paths of files rather than an object."""
    if isinstance(data, (str, os.PathLike)):
        return True
    return isinstance(data, (list, tuple, set)) and all(
        isinstance(item, (str, os.PathLike)) for item in data
    )


def _split_asked(
    split: "Shares | SplitSpec | None",
    by: str | None,
    negatives: int | None,
    inverse: str | None,
    seed: int,
) -> SplitSpec | None:
    """Return what is to be held out, and how.

    Raises:
        ConfigError: it is said how, but not what; or wrongly.
    """
    if split is not None and not isinstance(split, SplitSpec):
        return split_spec(
            split, by=by or "random", seed=seed, negatives=negatives or 0, inverse=inverse
        )
    for name, given in (("by", by), ("negatives", negatives), ("inverse", inverse)):
        if given is not None:
            raise ConfigError(
                f"{name}: got {given!r}, which is about edges held out; give split as "
                "shares, such as 0.8,0.1,0.1, too"
            )
    return split
