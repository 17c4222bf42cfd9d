"""A graph wherever one is wanted: open, by its path, or a Python object that holds one."""

import os
import sys
import warnings
import weakref
from typing import Any, TypeAlias, cast

from graphsys.core import ownership
from graphsys.core.errors import ConfigError
from graphsys.storage.reader import GraphReader
from graphsys.storage.source import Source

GraphLike: TypeAlias = GraphReader | str | os.PathLike[str] | Any
"""What :func:`graph_of` takes."""


def graph_of(graph: GraphLike) -> GraphReader:
    """Return a graph to read from.

    Args:
        graph: An open graph, its path, what :func:`graphsys.ingest` returned for it, or
            what :func:`from_object` takes: edges as arrays
            or tensors, a SciPy matrix, a data frame, a graph of NetworkX, PyG or DGL. Such
            an object is written to a store in the folder for temporary files, which goes
            when nobody uses the graph any more.

    Raises:
        InvalidGraphError: There is no graph at the path.
        InputError: The object holds no graph.
    """
    if (found := _open_graph(graph)) is not None:
        return found
    if isinstance(graph, str | os.PathLike):
        return GraphReader(graph)
    from graphsys.datasets.readers.in_memory import from_object  # slow: scipy

    return temporary_graph(from_object(graph))


def _open_graph(graph: Any) -> GraphReader | None:
    """Return an open graph, also the one of which an ingest reports."""
    if isinstance(graph, GraphReader):
        return graph
    module = sys.modules.get("graphsys.storage.ingest.ingest")  # slow to load: numba
    if module is not None and isinstance(graph, module.IngestReport):
        return cast("GraphReader", graph.graph)
    return None


def temporary_graph(source: Source) -> GraphReader:
    """Return a graph whose store goes when nobody uses it any more."""
    from graphsys.storage.ingest.ingest import ingest  # slow: numba

    folder = ownership.temporary()
    try:
        with warnings.catch_warnings():  # of twins and loops: it is no store to keep
            warnings.simplefilter("ignore", UserWarning)
            graph = ingest(source, folder / "graph").graph
    except BaseException:
        ownership.remove_folder(folder)
        raise
    weakref.finalize(graph, ownership.remove_folder, folder)
    return graph


def stored_graph(graph: GraphLike) -> GraphReader:
    """Return a graph whose store stays: an open one, or one by its path.

    Raises:
        ConfigError: It is an object in memory, whose store would go before the run.
        InvalidGraphError: There is no graph at the path.
    """
    if isinstance(graph, str | os.PathLike) or _open_graph(graph) is not None:
        return graph_of(graph)
    raise ConfigError(
        f"graph: got a {type(graph).__name__}, expected an open graph or its path, which a "
        "run refers to later; make one by gs.ingest(data, folder)"
    )
