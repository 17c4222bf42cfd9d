"""Graphs in files of other tools that NetworkX reads: GraphML, GEXF, GML, Pajek, JSON.

The file is read whole. JSON is what ``networkx.node_link_data`` and D3 write (``nodes`` and
``links`` or ``edges``), NetworkX's adjacency data, or Cytoscape's ``elements``.
"""

import io
import json
import re
import warnings
from collections.abc import Callable
from typing import Any, Final

from graphsys.core.deps import require
from graphsys.core.errors import ConfigError, InputError, cut_list
from graphsys.datasets.base import Format, ReadOptions, formats
from graphsys.datasets.files import InputFile, describe
from graphsys.datasets.readers.networkx_graphs import NetworkXSource
from graphsys.datasets.text.foreign import json_kind
from graphsys.datasets.text.pajek import pajek_graph
from graphsys.storage.source import Source


class _NoGraphError(ValueError):
    """What a file holds is no graph; the message says all there is to say."""


_GEXF: Final = b'<gexf xmlns="http://www.gexf.net/1.2draft" version="1.2" '


def _json_graph(nx: Any, content: bytes) -> Any:
    try:
        data = json.loads(content)
    except json.JSONDecodeError as err:
        raise ValueError(f"{err}{_to_lines(content)}") from err
    if not isinstance(data, dict):
        raise ValueError(f"expected an object with nodes and links{_to_lines(content)}")
    if "elements" in data:
        return nx.node_link_graph(_node_link(_cytoscape(data), "edges"), edges="edges")
    if "adjacency" in data and "nodes" in data:
        return nx.adjacency_graph(data)
    if isinstance(data.get("graphs"), list):
        raise ValueError(
            f"holds {len(data['graphs'])} graphs, expected one; take one, jq '{{graph: "
            ".graphs[0]}' FILE > NEW.json"
        )
    if isinstance(data.get("graph"), dict) and "edges" in data["graph"]:
        data = data["graph"]
    key = "links" if "links" in data else "edges"
    if "edge_paths" in data or "entity_path" in data:
        raise ValueError(
            "these are the keys of a config of PyTorch-BigGraph; pass --format pbg, which "
            "reads the edges that it names"
        )
    if "nodes" not in data or key not in data:
        raise ValueError(
            f"found the keys {sorted(data)[:8]}, expected nodes and links"
            + _to_lines(content)
        )
    return nx.node_link_graph(_node_link(data, key), edges=key)


def _node_link(data: dict[str, Any], key: str) -> dict[str, Any]:
    """Return a graph of nodes and edges as NetworkX calls its keys.

    JSON Graph Format may list nodes by their ids; Graphology calls ids ``key``, vis.js ends
    ``from`` and ``to``; D3 may name ends by their positions.

    Raises:
        ValueError: an end of an edge is no node.
    """
    nodes = _records(data["nodes"], "nodes", ("id",))
    links = _records(data[key], key, ("source", "target"))
    name = "id" if any("id" in node for node in nodes) else "key"
    if any(name in node for node in nodes):
        nodes = [{**node, "id": node[name]} for node in nodes]
    edges = [
        {{"from": "source", "to": "target"}.get(key, key): it for key, it in edge.items()}
        if "source" not in edge
        else edge
        for edge in links
    ]
    for place, edge in enumerate(edges):
        if missing := [end for end in ("source", "target") if end not in edge]:
            raise _NoGraphError(
                f"{key}[{place}] has no {' and no '.join(missing)}, found the keys "
                f"{cut_list(edge, 8) or 'none'}; name both ends source and target"
            )
    ids = [node.get("id", place) for place, node in enumerate(nodes)]
    ends = {edge[end] for edge in edges for end in ("source", "target")}
    by_text = {str(it): it for it in ids}
    for named in (dict(zip(ids, ids, strict=True)), dict(enumerate(ids)), by_text):
        if ends <= set(named):
            edges = [
                {**edge} | {end: named[edge[end]] for end in ("source", "target")}
                for edge in edges
            ]
            return {**data, "nodes": nodes, key: edges}
    unknown = [end for end in ends if end not in ids]
    raise ValueError(
        f"an edge names {unknown[0]!r:.60}, which is the id of no node; list it in nodes, "
        f"or take the edges alone, jq -r '.{key}[]|[.source,.target]|@tsv' FILE > NEW.tsv"
    )


def _records(found: Any, key: str, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return nodes or edges as objects: of ids and lists of both ends, too.

    Raises:
        _NoGraphError: they are none of these, or an id is a list or an object.
    """
    if isinstance(found, dict) and names == ("id",):
        found = [{**(it or {}), "id": name} for name, it in found.items()]
    if not isinstance(found, list):
        raise _NoGraphError(f"{key} is {_shown(found)}, expected a list of objects")
    records = []
    for place, it in enumerate(found):
        if not isinstance(it, dict):
            values = it if isinstance(it, list) else [it]
            if len(values) != len(names):
                raise _NoGraphError(
                    f"{key}[{place}] is {_shown(it)}, expected an object with "
                    f"{' and '.join(names)}"
                )
            it = dict(zip(names, values, strict=True))
        for name in names:
            if isinstance(it.get(name), list | dict):
                raise _NoGraphError(
                    f"{name} of {key}[{place}] is {_shown(it[name])}, expected an integer "
                    "or a string"
                )
        records.append(it)
    return records


def _shown(found: Any) -> str:
    return f"{json.dumps(found):.60}"


def _cytoscape(data: dict[str, Any]) -> dict[str, Any]:
    """Return Cytoscape's elements, in groups or one list, as nodes and edges.

    NetworkX writes nodes' ids as strings and the nodes themselves as ``value``, which
    edges name; other tools have a column of that name that is none.
    """
    elements = data["elements"]
    if isinstance(elements, dict):
        groups = [elements.get("nodes", []), elements.get("edges", [])]
        elements = [it for group in groups if isinstance(group, list) for it in group]
    if not isinstance(elements, list) or not elements:
        raise _NoGraphError(
            f"elements is {_shown(data['elements'])}, expected nodes and edges"
        )
    for place, it in enumerate(elements):
        is_node = isinstance(it, dict) and isinstance(it.get("data"), dict)
        if not is_node or not ("id" in it["data"] or "source" in it["data"]):
            raise _NoGraphError(
                f"element {place} is {_shown(it)}, expected an object whose data has an "
                "id, or source and target"
            )
    nodes = [dict(it["data"]) for it in elements if "source" not in it["data"]]
    edges = [dict(it["data"]) for it in elements if "source" in it["data"]]
    ends = {edge[end] for edge in edges for end in ("source", "target")}
    if not ends <= {node["id"] for node in nodes}:
        nodes = [{**node, "id": node.get("value", node["id"])} for node in nodes]
    kept: dict[str, Any] = {
        key: data[key] for key in ("directed", "multigraph") if key in data
    }
    return {"multigraph": True, **kept, "nodes": nodes, "edges": edges}


def _to_lines(content: bytes) -> str:
    """Return what leads on from JSON that is no graph: lines of it, or nothing."""
    found = json_kind(content)
    if found is not None and "jsonl" in found[1]:
        return f"; {found[1]}"
    if found is not None and "jq " in found[1]:
        return f"; name the keys of both ends, {found[1][found[1].index('jq ') :]}"
    if content.lstrip()[:1] == b"[":
        return "; if these are pairs, jq -r '.[]|@tsv' FILE > NEW.tsv"
    if content.lstrip()[:1] == b"{":
        return (
            "; if these are lists of neighbors, jq -r 'to_entries[]|[.key]+.value|@tsv' "
            "FILE > NEW.adjlist"
        )
    return ""


def _gexf_graph(nx: Any, content: bytes) -> Any:
    if b"xmlns" not in content:  # NetworkX asks for one, some tools write none
        content = content.replace(b"<gexf", _GEXF, 1)
    return nx.read_gexf(io.BytesIO(content))


def _graphml_graph(nx: Any, content: bytes) -> Any:
    """Read a file's one graph; of several, NetworkX would return the first."""
    found = len(re.findall(rb"<(?:[\w.-]+:)?graph[\s>/]", content))
    if found > 1:
        raise _NoGraphError(
            f"holds {found} graphs, one inside or behind another, expected one; write each "
            "to a file, and name their folder with --format graphs if it is a set of graphs"
        )
    return nx.read_graphml(io.BytesIO(content))


def _gml_graph(nx: Any, content: bytes) -> Any:
    """Read GML: in UTF-8, too, with repeated edges, and with labels that are no names."""
    # the format is ASCII, in which other letters are character references (Himsolt 1997)
    content = content.decode("utf-8-sig").encode("ascii", "xmlcharrefreplace")
    label, is_multigraph = "label", False
    while True:
        try:
            return nx.read_gml(io.BytesIO(content), label=label)
        except nx.NetworkXError as err:
            if "is duplicated" in str(err) and not is_multigraph:
                content = re.sub(
                    rb"(^|\s)graph\s*\[", rb"\1graph [ multigraph 1 ", content, count=1
                )
                is_multigraph = True
            elif "label" in str(err) and label != "id":
                label = "id"
            else:
                raise


_READERS: Final[dict[str, Callable[[Any, bytes], Any]]] = {
    "graphml": _graphml_graph,
    "gexf": _gexf_graph,
    "gml": _gml_graph,
    "pajek": pajek_graph,
    "json": _json_graph,
}
_FORMATS: Final = {
    "graphml": ((".graphml",), "GraphML, as NetworkX reads it"),
    "gexf": ((".gexf",), "GEXF (Gephi), as NetworkX reads it"),
    "gml": ((".gml",), "GML, as NetworkX reads it"),
    "pajek": ((".net", ".paj"), "Pajek: arcs, edges, lists of them, matrices"),
    "json": (
        (".json", ".cyjs", ".jgf"),
        "JSON of nodes and links (NetworkX, D3, JGF, Graphology, vis.js), or Cytoscape's",
    ),
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
    except UnicodeDecodeError as err:
        raise InputError(
            f"{file.name}: found byte {content[err.start]:#04x}, which is not UTF-8; "
            "convert the file, for example with iconv -f latin1 -t utf-8 FILE > NEW"
        ) from err
    except _NoGraphError as err:
        raise InputError(f"{file.name}: {err}") from err
    except Exception as err:  # a reader of others meets damage with any error
        what = describe(err)
        otherwise = "; write it anew, or name another format with --format"
        raise InputError(
            f"{file.name}: NetworkX cannot read it as {format_name}: "
            + (what if " FILE > NEW" in what else what[:200] + otherwise)
        ) from err


def _opener(name: str) -> Callable[[list[InputFile], ReadOptions], Source]:
    return lambda files, options: open_by_networkx(name, files, options)


for _name, (_suffixes, _about) in _FORMATS.items():
    formats.register(_name)(Format(open=_opener(_name), suffixes=_suffixes, about=_about))
