"""Graphs in files of other tools that NetworkX reads: GraphML, GEXF, GML, Pajek, JSON.

The file is read whole. JSON is what ``networkx.node_link_data`` and D3 write (``nodes`` and
``links`` or ``edges``), NetworkX's adjacency data, or Cytoscape's ``elements``.
"""

import io
import json
import warnings
from collections.abc import Callable
from typing import Any, Final

from graphsys.core.deps import require
from graphsys.core.errors import ConfigError, InputError
from graphsys.datasets.base import Format, ReadOptions, formats
from graphsys.datasets.files import InputFile, describe
from graphsys.datasets.readers.networkx_graphs import NetworkXSource
from graphsys.storage.source import Source

_GEXF: Final = b'<gexf xmlns="http://www.gexf.net/1.2draft" version="1.2" '


def _json_graph(nx: Any, content: bytes) -> Any:
    data = json.loads(content)
    if not isinstance(data, dict):
        raise ValueError("expected an object with nodes and links")
    if "elements" in data:
        return nx.cytoscape_graph(data)
    if "adjacency" in data:
        return nx.adjacency_graph(data)
    key = "links" if "links" in data else "edges"
    if "nodes" not in data or key not in data:
        raise ValueError(f"found the keys {sorted(data)[:8]}, expected nodes and links")
    return nx.node_link_graph(data, edges=key)


def _gexf_graph(nx: Any, content: bytes) -> Any:
    if b"xmlns" not in content:  # NetworkX asks for one, some tools write none
        content = content.replace(b"<gexf", _GEXF, 1)
    return nx.read_gexf(io.BytesIO(content))


def _gml_graph(nx: Any, content: bytes) -> Any:
    try:
        return nx.read_gml(io.BytesIO(content))
    except nx.NetworkXError as err:
        if "label" not in str(err):
            raise
        return nx.read_gml(io.BytesIO(content), label="id")


_READERS: Final[dict[str, Callable[[Any, bytes], Any]]] = {
    "graphml": lambda nx, content: nx.read_graphml(io.BytesIO(content)),
    "gexf": _gexf_graph,
    "gml": _gml_graph,
    "pajek": lambda nx, content: nx.read_pajek(io.BytesIO(content)),
    "json": _json_graph,
}
_FORMATS: Final = {
    "graphml": ((".graphml",), "GraphML, as NetworkX reads it"),
    "gexf": ((".gexf",), "GEXF (Gephi), as NetworkX reads it"),
    "gml": ((".gml",), "GML, as NetworkX reads it"),
    "pajek": ((".net", ".paj"), "Pajek, as NetworkX reads it"),
    "json": ((".json",), "JSON of nodes and links (NetworkX, D3), or Cytoscape's"),
}


def open_by_networkx(
    format_name: str, files: list[InputFile], options: ReadOptions
) -> Source:
    """Make a source of one file that NetworkX reads.

    Raises:
        MissingDependencyError: NetworkX is not installed.
        InputError: it cannot read the file, or there are several.
        ConfigError: options go with columns of text.
    """
    if options.columns or options.roles or options.skip or options.separator:
        raise ConfigError(
            f"format {format_name} names its attributes itself; leave out columns, "
            "separator and skip"
        )
    if len(files) != 1:
        raise InputError(
            f"{files[1].name}: a second graph, expected one; ingest each by itself"
        )
    source = NetworkXSource(read_graph(files[0], format_name), options)
    source.name, source.total_bytes = files[0].name, files[0].num_bytes
    return source


def read_graph(file: InputFile, format_name: str) -> Any:
    """Return the NetworkX graph of a file.

    Raises:
        MissingDependencyError: NetworkX is not installed.
        InputError: it cannot read the file.
    """
    nx = require("networkx", extra="formats")
    content = file.read_all()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _READERS[format_name](nx, content)
    except Exception as err:  # a reader of others meets damage with any error
        raise InputError(
            f"{file.name}: NetworkX cannot read it as {format_name}: "
            f"{describe(err)[:200]}; write it anew, or name another format with --format"
        ) from err


def _opener(name: str) -> Callable[[list[InputFile], ReadOptions], Source]:
    return lambda files, options: open_by_networkx(name, files, options)


for _name, (_suffixes, _about) in _FORMATS.items():
    formats.register(_name)(Format(open=_opener(_name), suffixes=_suffixes, about=_about))
