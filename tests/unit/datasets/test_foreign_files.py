"""Files of other tools under any name: right at once, or by the command that is named."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import graphsys as gs
from graphsys.core.errors import InputError
from tests.advice.case import advised

AB = [("a", "b"), ("b", "c")]
INTEGERS = [("1", "2"), ("2", "3")]
QUOTED = '"V1" "V2"\n"1" 1 2\n"2" 2 3\n'
MATRIX = ",a,b,c\na,0,2,0\nb,0,0,1\nc,0,0,0\n"
LGL = "# a\nb 1.5\n# b\nc 2\n"
RECORDS = '[{"source": "a", "target": "b"},\n {"source": "b", "target": "c"}]\n'
LINES = '{"source": "a", "target": "b"}\n{"source": "b", "target": "c"}\n'
PAIRS = '[["a", "b"], ["b", "c"]]'
NEIGHBORS = '{"a": ["b"], "b": ["c"]}'
WITH_DATA = "a b {'weight': 3, 'x': 1}\nb c {}\n"
POINTS = "source;target;weight\na;b;1.234,5\nb;c;2,25\n"
COMMAS = 'source,target,weight\na,b,"1,234.50"\nb,c,"2,000"\n'
MIXED = "source,target\r\na,b\nb,c\rc,d\r\n"
SIF = "a pp b\nb pd c d\n"
TABBED = "node a\tpp\tb\nb\tpd\tc\td\n"

FOLLOWED: list[tuple[str, str, str, list[tuple[str, str]]]] = [
    ("r.txt", QUOTED, "--skip 1", INTEGERS),
    ("r.csv", "src,dst\n1,a,b\n2,b,c\n", "", AB),
    ("numbered.txt", '"1" a b\n"2" b c\n', "", AB),
    ("stata.txt", "   source  target\n1.  1 2\n2.  2 3\n", "--skip 1", INTEGERS),
    ("matrix.csv", MATRIX, "", AB),
    ("tgf.txt", "a First\nb Second\nc Third\n#\na b\nb c\n", "", AB),
    ("g.tgf", "a First\nb Second\nc Third\n#\na b\nb c\n", "", AB),
    ("lgl.txt", LGL, "", AB),
    ("g.lgl", LGL, "", AB),
    ("quotes.csv", "'source','target'\n'a','b'\n'b','c'\n", "", AB),
    ("mixed.csv", MIXED, "", [*AB, ("c", "d")]),
    ("networkx.txt", WITH_DATA, "", AB),
    ("bytes.txt", "a b\nb\x00 c\n", "", AB),
    ("points.csv", POINTS, "", AB),
    ("commas.csv", COMMAS, "", AB),
    ("records.json", RECORDS, "", AB),
    ("records.txt", RECORDS, "", AB),
    ("pairs.json", PAIRS, "", AB),
    ("neighbors.json", NEIGHBORS, "", AB),
    ("g.sif", SIF, "--format triples", [*AB, ("b", "d")]),
    ("tabs.sif", TABBED, "--format triples", [("b", "c"), ("b", "d"), ("node a", "b")]),
]


def ends(path: Path, options: str = "", **given: Any) -> list[tuple[str, str]]:
    given |= dict(re.findall(r"--(\w+) (\S+)", options))
    if "skip" in given:
        given["skip"] = int(given["skip"])
    store = gs.ingest(path, path.parent / f"{path.name}.store", **given)
    rows = store.graph.to_pandas()[["src", "dst"]].astype(str).values.tolist()
    return sorted((src, dst) for src, dst in rows)


def refused(path: Path, **given: Any) -> str:
    with pytest.raises(InputError) as caught:
        ends(path, **given)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(("name", "text", "options", "expected"), FOLLOWED)
def test_the_command_that_is_named_makes_the_right_graph(
    tmp_path: Path, name: str, text: str, options: str, expected: list[tuple[str, str]]
) -> None:
    path = tmp_path / name
    path.write_bytes(text.encode())
    found = re.search(
        r"(?:^|[;,] )((?:sed|awk|jq|tr) .*?FILE > NEW(\.\w+)?)", refused(path)
    )
    assert found is not None, refused(path)
    if shutil.which(found[1].split()[0]) is None:
        pytest.skip(f"no {found[1].split()[0]}")
    new = tmp_path / f"new{found[2] or path.suffix}"
    command = (
        found[1].replace(f"NEW{found[2] or ''}", f"'{new}'").replace("FILE", str(path))
    )
    subprocess.run(["bash", "-c", command], check=True)
    assert ends(new, options) == expected


@pytest.mark.parametrize("name", ["lines.txt", "lines.json", "lines.csv"])
def test_lines_of_json_are_read_as_is_advised(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(LINES)
    said = refused(path)
    option = advised(said, "datasets/text/foreign.py", r"pass (--format jsonl)")
    assert ends(path, option[1]) == AB


def test_arrays_and_graph6_by_the_commands_named(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([[1, 2], [2, 3], [3, 1]]))
    nx.write_graph6(nx.path_graph(4), tmp_path / "b.g6")
    for name, count in (("a.npy", 3), ("b.g6", 3)):
        path, new = tmp_path / name, tmp_path / f"{name}.txt"
        command = re.search(r'python (-c ".*") FILE NEW\.txt', refused(path))
        assert command is not None
        python = f"{sys.executable} {command[1]} {path} {new}"
        subprocess.run(["bash", "-c", python], check=True)
        assert len(ends(new)) == count


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"<!DOCTYPE html>\n<html><body>404 not found</body></html>\n", "a web page"),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 1\n",
            "lfs pull",
        ),
        (b"SQLite format 3\x00\x10\x00\x01\x01", "sqlite3 -header -csv FILE"),
        (b"PAR1\x15\x04\x15\x00", "pass --format parquet"),
        (b"PK\x03\x04\x14\x00[Content_Types].xml", "save the sheet as CSV"),
        (b"PK\x03\x04\x14\x00a.npy", "pass --format npz"),
        (b"PK\x03\x04\x14\x00a.csv", r"ends with \.zip"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "a picture"),
        (b"%PDF-1.4\n1 0 obj\n", "a PDF"),
        (b"\x89HDF\r\n\x1a\n\x00", "an HDF5 file"),
        (b"7z\xbc\xaf\x27\x1c\x00\x04", "7-Zip"),
        (b'<?xml version="1.0"?>\n<graphml><graph/></graphml>\n', "--format graphml"),
        (b'<?xml version="1.0"?>\n<osm><node/></osm>\n', "found XML"),
        (b"digraph g {\n a -> b;\n}\n", "gv2gml FILE"),
        (b"*Vertices 2\n1 2\n", "--format pajek"),
        (b"graph [\n node [ id 0 ]\n]\n", "--format gml"),
        (b"dl n=3 format=edgelist1\ndata:\n1 2\n", "UCINET"),
        (b"%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n", "--format mtx"),
        (b"INSERT INTO links VALUES (1,2);\n", "SQL"),
        (b"@article{a,\n title={x}\n}\n", "BibTeX"),
    ],
)
@pytest.mark.parametrize("name", ["g.txt", "g.csv", "g.tsv"])
def test_what_is_no_table_is_named_under_any_name(
    tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert re.search(said, refused(path))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_records_over_several_lines_are_told_with_what_joins_them(
    tmp_path: Path, end: str
) -> None:
    """As SNAP's wiki-RfA has votes."""
    votes = (("Ann", "User:Bob", 1), ("User:Bob", "Cy", -1))
    lines = [f"SRC:{a}\nTGT:{b}\nVOT:{v}\nTXT:no: never\n\n" for a, b, v in votes]
    path = tmp_path / "wiki-RfA.txt"
    path.write_bytes("".join(lines).replace("\n", end).encode())
    said = refused(path)
    assert "found records of lines SRC, TGT, VOT, TXT, expected lines of columns" in said
    command = re.search(r"awk .* FILE > NEW\.tsv", said)
    assert command is not None
    new = tmp_path / "new.tsv"
    subprocess.run(
        ["bash", "-c", command[0].replace("FILE", str(path)).replace("NEW.tsv", str(new))],
        check=True,
    )
    assert ends(new) == [("Ann", "User:Bob"), ("User:Bob", "Cy")]


def test_names_that_look_alike_still_go_in(tmp_path: Path) -> None:
    for text in (
        "graph node\nnode edge\n",
        "c a\np sp\n",
        "version 1\nversion 2\n",
        "a:1 b\na:2 c\n",
    ):
        path = tmp_path / f"{len(text)}.txt"
        path.write_text(text)
        assert len(ends(path)) == 2


def test_edges_of_gephi_say_whether_they_are_directed(tmp_path: Path) -> None:
    head, path = "Source,Target,Type,Weight\n", tmp_path / "g.csv"
    path.write_text(f"{head}1,2,Undirected,1.0\n2,3,Undirected,2.0\n")
    assert "pass --undirected, or --columns Source,Target to" in refused(path)
    store = gs.ingest(path, tmp_path / "u", undirected=True)
    assert not store.graph.is_directed
    assert ends(path, columns="Source,Target") == INTEGERS
    mixed = tmp_path / "m.csv"
    mixed.write_text(f"{head}1,2,Undirected,1.0\n2,3,Directed,2.0\n")
    assert "some edges are undirected" in refused(mixed)
    directed = tmp_path / "d.csv"
    directed.write_text(f"{head}1,2,Directed,1.0\n2,3,Directed,2.0\n")
    assert ends(directed) == INTEGERS


VERTICES = '*Vertices 4\n1 "a"\n2 "b"\n3 "c"\n4 "d"\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{VERTICES}*Arcslist\n1 2 3\n2 4\n", "a>b, a>c, b>d"),
        (f"{VERTICES}*Arcs\n1 2 1\n*Edges\n3 4 1\n", "a>b, c>d, d>c"),
        ("*Vertices 3 2\n*Arcs\n1 3\n2 3\n", "1>3, 2>3"),
        ('*Vertices 2\n1 "a"\n2 "a"\n*Arcs\n1 2 5\n', "1>2"),
        (f'{VERTICES}*Arcs :1 "likes"\n1 2\n*Arcs :2 "hates"\n2 3 4\n', "a>b, b>c"),
        (f"{VERTICES}*Matrix\n0 1 0 0\n0 0 0 2\n0 0 0 0\n0 0 0 0\n", "a>b, b>d"),
        ('*Vertices 2\n1 O\'Neil\n2 "b c"\n*Arcs\n1 2\n', "O'Neil>b c"),
    ],
)
def test_sections_of_pajek(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "g.net"
    path.write_text(text)
    assert sorted(f"{src}>{dst}" for src, dst in ends(path)) == expected.split(", ")


def test_relations_and_undirected_edges_of_pajek(tmp_path: Path) -> None:
    path = tmp_path / "g.net"
    path.write_text(f'{VERTICES}*Arcs :1 "likes"\n1 2\n*Arcs :2 "hates"\n2 3 4\n')
    found = gs.ingest(path, tmp_path / "g").graph.to_pandas()
    assert found["relation"].tolist() == ["likes", "hates"]
    assert found["weight"].tolist() == [1.0, 4.0]
    path.write_text(f"{VERTICES}*Edgeslist\n1 2 3\n")
    store = gs.ingest(path, tmp_path / "u")
    assert not store.graph.is_directed
    assert store.graph.num_edges == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("*Vertices 2\n*Arcs\n1 3\n", "vertex 3 of 2 does not exist"),
        ("*Arcs\n1 x\n", "line 2, '1 x'"),
        ("1 2\n", r"expected \*Vertices first"),
        (
            "*Vertices 9000000000\n*Arcs\n1 2\n",
            "9,000,000,000 vertices, expected 20,000,000",
        ),
        ("*Vertices -1\n", "-1 vertices, expected"),
        ("*Partition x\n1\n", r"line 1.*expected \*vertices"),
    ],
)
def test_damaged_networks_of_pajek(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "g.net"
    path.write_text(text)
    assert re.search(message, refused(path))


JSON = [
    ({"graph": {"nodes": {"a": {}, "b": {}}, "edges": [{"source": "a", "target": "b"}]}}),
    (
        {
            "graph": {
                "nodes": [{"id": "a"}, {"id": "b"}],
                "edges": [{"source": "a", "target": "b"}],
            }
        }
    ),
    ({"nodes": [{"key": "a"}, {"key": "b"}], "edges": [{"source": "a", "target": "b"}]}),
    ({"nodes": [{"id": "a"}, {"id": "b"}], "edges": [{"from": "a", "to": "b"}]}),
    ({"nodes": [{"id": "a"}, {"id": "b"}], "links": [{"source": 0, "target": 1}]}),
    (
        {
            "elements": [
                {"data": {"id": "a"}},
                {"data": {"id": "b"}},
                {"data": {"source": "a", "target": "b"}},
            ]
        }
    ),
    (
        {
            "elements": {
                "nodes": [
                    {"data": {"id": "a", "value": 7}},
                    {"data": {"id": "b", "value": 9}},
                ],
                "edges": [{"data": {"source": "a", "target": "b"}}],
            }
        }
    ),
]


@pytest.mark.parametrize("shape", JSON)
def test_graphs_of_json(tmp_path: Path, shape: dict[str, Any]) -> None:
    path = tmp_path / "g.json"
    path.write_text(json.dumps(shape))
    assert [set(edge) for edge in ends(path)] == [{"a", "b"}]


def test_links_by_position_are_no_nodes_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "g.json"
    links = [{"source": 0, "target": 1}, {"source": 1, "target": 2}]
    path.write_text(
        json.dumps({"nodes": [{"id": k} for k in (10, 20, 30)], "links": links})
    )
    assert ends(path) == [("10", "20"), ("20", "30")]
    path.write_text(
        json.dumps({"nodes": [{"id": 10}], "links": [{"source": 10, "target": 99}]})
    )
    assert "99, which is the id of no node" in refused(path)
