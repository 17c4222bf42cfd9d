"""Files that NetworkX reads: what it would drop, refuse without need or say badly."""

import json
from pathlib import Path
from typing import Any

import pytest

import graphsys as gs
from graphsys.core.errors import InputError

GRAPHML = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{}</graphml>'
ONE = '<graph edgedefault="directed"><node id="a"/><node id="b"/>{}</graph>'


def edges_of(path: Path, content: str | bytes) -> list[tuple[Any, Any]]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    graph = gs.ingest(path, path.parent / "g", overwrite=True).graph
    table = graph.to_pandas()
    return list(zip(table["src"].tolist(), table["dst"].tolist(), strict=True))


@pytest.mark.parametrize(
    ("nodes", "links", "found"),
    [
        (["a", "b"], [{"source": "a", "target": "b"}], [("a", "b")]),
        ([{"id": 1}, {"id": 2}], [[1, 2]], [(1, 2)]),
        ([5, 6], [[6, 5]], [(6, 5)]),
    ],
)
def test_nodes_of_json_may_be_ids_and_edges_pairs(
    tmp_path: Path, nodes: Any, links: Any, found: Any
) -> None:
    text = json.dumps({"directed": True, "nodes": nodes, "links": links})
    assert edges_of(tmp_path / "g.json", text) == found


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"nodes": None, "links": []}, "nodes is null, expected a list of objects"),
        ({"nodes": [{"id": 1}], "links": {"a": 1}}, r"links is \{.*expected a list"),
        (
            {"nodes": [{"id": 1}], "links": [{"a": 1}]},
            r"links\[0\] has no source and no target, found the keys a; name both ends",
        ),
        ({"nodes": [{"id": [1]}], "links": []}, r"id of nodes\[0\] is \[1\], expected an"),
        ({"nodes": [1], "links": [[1]]}, r"links\[0\] is \[1\], expected an object with"),
        ({"elements": "x"}, 'elements is "x", expected nodes and edges'),
        ({"elements": [{"data": {}}]}, "element 0 is .*expected an object whose data has"),
    ],
)
def test_json_of_another_shape_says_where_and_what(
    tmp_path: Path, data: Any, said: str
) -> None:
    with pytest.raises(InputError, match=rf"g\.json: {said}"):
        edges_of(tmp_path / "g.json", json.dumps(data))


def test_gml_may_be_utf_8_and_repeat_edges(tmp_path: Path) -> None:
    text = (
        'graph [ directed 1 node [ id 0 label "Z\u00fcrich" ] node [ id 1 label "\u6771" ] '
        "edge [ source 0 target 1 ] edge [ source 0 target 1 ] ]"
    )
    assert edges_of(tmp_path / "g.gml", text) == [("Z\u00fcrich", "\u6771")] * 2
    with pytest.raises(InputError, match=r"g\.gml: found byte 0xfc.*iconv -f latin1"):
        edges_of(tmp_path / "g.gml", text.replace("\u6771", "b").encode("latin-1"))


@pytest.mark.parametrize(
    "inner",
    [
        ONE.format("") * 2,
        ONE.format(
            '<node id="c"><graph edgedefault="directed"><node id="d"/></graph></node>'
        ),
    ],
)
def test_graphml_of_several_graphs_is_refused(tmp_path: Path, inner: str) -> None:
    with pytest.raises(InputError, match=r"holds 2 graphs, .*expected one; write each to"):
        edges_of(tmp_path / "g.graphml", GRAPHML.format(inner))
    one = GRAPHML.format(ONE.format('<edge source="a" target="b"/>'))
    assert edges_of(tmp_path / "g.graphml", one) == [("a", "b")]
