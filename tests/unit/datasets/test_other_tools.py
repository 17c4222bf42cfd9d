"""Files of other tools: as NetworkX and rdflib read them, or the format's own page."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
import rdflib

import graphsys as gs
from graphsys.core.errors import ConfigError, InputError, MissingDependencyError
from graphsys.datasets import open_source
from graphsys.storage.source import EdgeChunk, NodeChunk


def rows(path: Path, **options: Any) -> tuple[set[Any], list[tuple[Any, ...]]]:
    """Return the listed nodes, and edges with their columns in the order of names."""
    nodes: set[Any] = set()
    found: list[tuple[Any, ...]] = []
    for chunk in open_source(path, **options).chunks():
        if isinstance(chunk, NodeChunk):
            nodes |= set(chunk.ids.tolist())
        else:
            columns = [
                chunk.src,
                chunk.dst,
                *(chunk.columns[k] for k in sorted(chunk.columns)),
            ]
            found += zip(*(it.tolist() for it in columns), strict=True)
    return nodes, found


WRITERS: dict[str, Callable[..., Any]] = {
    "g.graphml": nx.write_graphml,
    "g.gexf": nx.write_gexf,
    "g.gml": nx.write_gml,
    "g.json": lambda graph, path: Path(path).write_text(
        json.dumps(nx.node_link_data(graph, edges="links"))
    ),
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("kind", [nx.DiGraph, nx.Graph])
def test_what_networkx_writes_comes_back(tmp_path: Path, name: str, kind: Any) -> None:
    graph = kind()
    graph.add_node("lone", size=3)
    graph.add_edge("a", "b", weight=0.5, note="x")
    graph.add_edge("b", "c", weight=2.0, note="y")
    graph.nodes["a"]["size"], graph.nodes["b"]["size"], graph.nodes["c"]["size"] = 1, 2, 4
    path = tmp_path / name
    WRITERS[name](graph, path)
    store = gs.ingest(path, tmp_path / "g").graph
    found = store.to_networkx()
    assert dict(found.nodes(data="size")) == dict(graph.nodes(data="size"))
    assert {frozenset((u, v)) for u, v in found.edges()} == {
        frozenset(edge) for edge in graph.edges
    }
    assert sorted(it["weight"] for _, _, it in found.edges(data=True)) == [0.5, 2.0]
    assert found.is_directed() == graph.is_directed()
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert rows(packed) == rows(path)


def test_pajek_as_networkx_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "g.net"
    path.write_text('*Vertices 3\n1 "a b"\n2 "b"\n3 "c"\n*Arcs\n1 2 1.5\n2 3 2\n')
    expected = nx.read_pajek(path)
    found = gs.ingest(path, tmp_path / "g").graph.to_networkx()
    assert set(found.nodes) == set(expected.nodes)
    assert dict(found.nodes(data="node_id")) == dict(expected.nodes(data="id"))
    assert sorted(found.edges(data="weight")) == sorted(expected.edges(data="weight"))


CYTOSCAPE = {
    "nodes": [{"data": {"id": k, "value": k, "name": str(k)}} for k in (1, 2)],
    "edges": [{"data": {"source": 1, "target": 2}}],
}
HEAD = {"directed": True, "multigraph": False}
SHAPES: list[dict[str, Any]] = [
    {"nodes": [{"id": 1}, {"id": 2}], "edges": [{"source": 1, "target": 2}]},
    HEAD | {"data": [], "elements": CYTOSCAPE},
    HEAD | {"graph": [], "nodes": [{"id": 1}, {"id": 2}], "adjacency": [[{"id": 2}], []]},
]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_other_shapes_of_json(tmp_path: Path, shape: dict[str, Any]) -> None:
    path = tmp_path / "g.json"
    path.write_text(json.dumps(shape))
    nodes, edges = rows(path)
    assert nodes == {1, 2}
    assert [edge[:2] for edge in edges] == [(1, 2)]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("g.json", "[1, 2]", r"g\.json: NetworkX cannot read it as json: expected an obj"),
        ("g.json", '{"a": 1}', r"found the keys \['a'\], expected nodes and links"),
        ("g.graphml", "<graphml", r"g\.graphml: NetworkX cannot read it as graphml"),
        ("g.gml", "graph [ node", r"g\.gml: NetworkX cannot read it as gml"),
        ("g.ttl", "a b c", r"g\.ttl: rdflib cannot read it"),
    ],
)
def test_damaged_files_of_other_tools_are_named(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError, match=message) as found:
        open_source(path)
    assert "\n" not in str(found.value)
    with pytest.raises(ConfigError, match="leave out columns, separator and skip"):
        open_source(path, columns="a,b")


def test_ids_of_several_kinds_need_a_word(tmp_path: Path) -> None:
    path = tmp_path / "g.json"
    path.write_text(
        '{"nodes": [{"id": 1}, {"id": "b"}], "links": [{"source": 1, "target": "b"}]}'
    )
    with pytest.raises(InputError, match=r"nodes are of type int, str, .*--ids string"):
        open_source(path)
    assert rows(path, ids="string") == ({"1", "b"}, [("1", "b")])


def test_an_edge_has_an_id_of_its_own(tmp_path: Path) -> None:
    graph = nx.DiGraph([("a", "b", {"id": "7"})])
    graph.nodes["a"]["id"] = 5
    found = gs.ingest(graph, tmp_path / "g").graph.to_networkx()
    assert list(found.edges(data="edge_id")) == [("a", "b", "7")]
    assert dict(found.nodes(data="node_id")) == {"a": 5, "b": None}


TRIPLES = """# a comment
<http://e/a> <http://e/knows> <http://e/b> .
<http://e/b>\t<http://e/name>\t"Bob \\"B\\" Smith"@en . # behind
_:x <http://e/age> "5"^^<http://www.w3.org/2001/XMLSchema#integer>.

<http://e/caf\\u00E9> <http://e/says> "\\u00e9 \\\\u00e9 \\n" .
<http://e/a> <http://e/knows> _:x .
"""


def terms(path: Path, kind: str) -> set[tuple[str, ...]]:
    """Return the triples that rdflib reads, blank nodes as one."""
    store = rdflib.Graph().parse(path, format=kind)
    return {
        tuple(
            "_:"
            if isinstance(it, rdflib.BNode)
            else str(it)
            if isinstance(it, rdflib.URIRef)
            else it.n3()
            for it in triple
        )
        for triple in store
    }


def plain(found: list[tuple[Any, ...]]) -> set[tuple[str, ...]]:
    return {
        tuple("_:" if it.startswith("_:") else it for it in (s, p, o)) for s, o, p in found
    }


def test_triples_are_those_of_rdflib(tmp_path: Path) -> None:
    path = tmp_path / "g.nt"
    path.write_text(TRIPLES.replace('\\n"', '"'))
    with pytest.warns(UserWarning, match="3 of 5 triples have a literal as object"):
        _, found = rows(path)
    assert plain(found) == terms(path, "nt")
    packed = tmp_path / "g.nt.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    with pytest.warns(UserWarning, match="3 of 5 triples"):
        assert rows(packed)[1] == found


def test_literals_are_left_out_as_the_warning_says(tmp_path: Path) -> None:
    path = tmp_path / "g.nt"
    path.write_text("".join(it for it in TRIPLES.splitlines(True) if '"' not in it))
    assert len(rows(path)[1]) == 2


def test_quads_have_their_graph(tmp_path: Path) -> None:
    path = tmp_path / "g.nq"
    path.write_text("<a:a> <a:r> <a:b> <a:g> .\n<a:b> <a:r> <a:c> .\n")
    _, found = rows(path)
    assert found == [("a:a", "a:b", "a:g", "a:r"), ("a:b", "a:c", "", "a:r")]


@pytest.mark.parametrize("kind", ["turtle", "xml"])
def test_turtle_and_xml_are_those_of_rdflib(tmp_path: Path, kind: str) -> None:
    source = tmp_path / "g.nt"
    source.write_text(TRIPLES.replace('\\n"', '"'))
    path = tmp_path / ("g.ttl" if kind == "turtle" else "g.rdf")
    rdflib.Graph().parse(source, format="nt").serialize(path, format=kind)
    with pytest.warns(UserWarning, match="3 of 5 triples have a literal"):
        _, found = rows(path)
    assert plain(found) == terms(source, "nt")


def test_a_line_that_is_no_triple_is_named(tmp_path: Path) -> None:
    path = tmp_path / "g.nt"
    path.write_text(TRIPLES + "a b c\n")
    with pytest.raises(InputError, match=r"g\.nt:8: found 'a b c', expected a triple"):
        rows(path)


def test_a_missing_reader_names_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    path = tmp_path / "g.ttl"
    path.write_text("<a:a> <a:b> <a:c> .")
    monkeypatch.setitem(sys.modules, "rdflib", None)
    with pytest.raises(MissingDependencyError, match=r"rdflib.*graphsys\[formats\]"):
        open_source(path)


def test_konect(tmp_path: Path) -> None:
    path = tmp_path / "out.example"
    path.write_text("% asym weighted\n% 2 3 3\n1 2 1 1325376000\n2\t3\t-2\t1325462400\n")
    graph = gs.ingest(path, tmp_path / "g").graph
    assert graph.at("2012-01-01T12:00:00").num_edges == 1
    assert graph.to_pandas()["weight"].tolist() == [1, -2]
    path.write_text("% sym unweighted\n1 2\n2 3\n")
    assert not open_source(path).is_directed
    path.write_text("% bip unweighted\n1 1\n2 1\n")
    (chunk,) = open_source(path).chunks()
    assert isinstance(chunk, EdgeChunk)
    assert chunk.edge_type == ("left", "edge", "right")
    path.write_text("1 2\n")
    with pytest.raises(InputError, match=r"example:1: found '1 2', .*--format edgelist"):
        open_source(path)
    assert rows(path, format="edgelist")[1] == [(1, 2)]


TNTP = (
    "<NUMBER OF NODES> 4\n<NUMBER OF LINKS> 2\n<END OF METADATA>\n\n"
    "~\tinit_node\tterm_node\tlength\t;\n\t1\t2\t5.5\t;\n\t2\t3\t7\t;\n"
)


def test_tntp(tmp_path: Path) -> None:
    path = tmp_path / "road_net.tntp"
    path.write_text(TNTP)
    assert rows(path) == ({1, 2, 3, 4}, [(1, 2, 5.5), (2, 3, 7.0)])
    path.write_text(TNTP.replace("NODES> 4", "NODES> 2"))
    with pytest.raises(InputError, match=r"found node 3, expected 1 to 2 as the head"):
        rows(path)
    path.write_text("Origin 1\n 2 : 5.0;\n")
    with pytest.raises(InputError, match=r"net\.tntp:1: found 'Origin 1', expected <EN"):
        rows(path)


def test_dimacs_graphs_to_color(tmp_path: Path) -> None:
    path = tmp_path / "g.col"
    path.write_text("c x\np edge 4 3\ne 1 2\ne 2 3\n")  # counts are off in many such files
    assert rows(path) == ({1, 2, 3, 4}, [(1, 2), (2, 3)])
    assert not open_source(path).is_directed
    path.write_text("c x\np edge 4 3\ne 1 2\nn 2 3\n")
    with pytest.raises(InputError, match=r"g\.col:4: found n 2 3, expected an edge 'e"):
        rows(path)
    path.write_text("p edge 4 3\ne 1 5\n")
    with pytest.raises(InputError, match=r"g\.col:2: found e 1 5, .* of nodes 1 to 4"):
        rows(path)
