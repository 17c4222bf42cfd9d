"""Tables described in TOML: what is read, and every refusal with file and line."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse

from graphsys.core.errors import ConfigError, InputError, UnknownNameError
from graphsys.datasets import ingest, open_source
from graphsys.storage.source import EdgeChunk, NodeChunk

EDGES = '[[edges]]\ntype = ["a", "r", "b"]\nfile = "e.txt"\ncolumns = ["src", "dst"]\n'


def describe(folder: Path, card: str, **files: str | bytes) -> Path:
    """Write a description and its files, called NAME.txt."""
    for name, content in {"e": "0 1\n1 0\n", **files}.items():
        data = content.encode() if isinstance(content, str) else content
        (folder / f"{name}.txt").write_bytes(data)
    path = folder / "card.toml"
    path.write_text(card)
    return path


def read(path: Path) -> tuple[list[NodeChunk], list[EdgeChunk]]:
    chunks = list(open_source(path).chunks())
    nodes = [it for it in chunks if isinstance(it, NodeChunk)]
    return nodes, [it for it in chunks if isinstance(it, EdgeChunk)]


def nodes_card(more: str, columns: str = '["id", "label"]') -> str:
    return f'[[nodes]]\ntype = "a"\nfile = "n.txt"\ncolumns = {columns}\n{more}\n' + EDGES


def test_tables_of_text(tmp_path: Path) -> None:
    card = nodes_card('encoding = "latin-1"\nseparator = "|"')
    path = describe(tmp_path, "directed = false\n" + card, n=b"0|b\xe9\n1|\n")
    nodes, edges = read(path)
    assert not open_source(path).is_directed
    assert nodes[0].node_type == "a"
    assert nodes[0].columns["label"].to_pylist() == ["b\xe9", ""]
    assert edges[0].edge_type == ("a", "r", "b")
    assert edges[0].src.tolist() == [0, 1]


def test_headers_names_and_rows_left_out(tmp_path: Path) -> None:
    card = (
        '[[edges]]\nfile = "e.txt"\nheader = true\nseparator = "pipe"\nsplit = "test"\n'
        'names = { src = "from", dst = "to" }\nwhere = { keep = "yes" }\n'
        'types = { score = "float" }\n'
    )
    path = describe(tmp_path, card, e="from|keep|to|score\n1|yes|2|3\n4|no|5|6\n")
    edges = read(path)[1]
    assert (edges[0].src.tolist(), edges[0].dst.tolist()) == ([1], [2])
    assert edges[0].split == "test"
    assert {name: it.tolist() for name, it in edges[0].columns.items()} == {"score": [3.0]}


def test_features_in_text(tmp_path: Path) -> None:
    path = describe(tmp_path, nodes_card("", '["id", "x[*]"]'), n="7 1 2.5 3\n8 4 5 6\n")
    chunk = read(path)[0][0]
    assert chunk.features["x"].tolist() == [[1, 2.5, 3], [4, 5, 6]]
    assert chunk.features["x"].dtype == np.float32
    (tmp_path / "n.txt").write_text("7 1 2 3\n8 4 5\n")
    with pytest.raises(InputError, match=r"n\.txt:2: found 3 columns, expected 4 as on"):
        read(path)


def test_arrays_go_with_rows(tmp_path: Path) -> None:
    matrix = scipy.sparse.csr_array(np.array([[0, 1.0], [2, 0], [0, 0]]))
    scipy.sparse.save_npz(tmp_path / "x.npz", matrix)
    np.save(tmp_path / "y.npy", np.array([1.0, 0, 2]))
    np.save(tmp_path / "train.npy", np.array([2, 0]))
    np.save(tmp_path / "test.npy", np.array([False, True, False]))
    card = (
        '[[nodes]]\ntype = "a"\ncount = 3\nfirst = 5\nfeatures = { x = "x.npz" }\n'
        'bags = { words = "x.npz" }\narrays = { label = "y.npy" }\n'
        'splits = { split = { train = "train.npy", test = "test.npy" } }\n' + EDGES
    )
    chunk = read(describe(tmp_path, card, e="5 0\n"))[0][0]
    assert chunk.ids.tolist() == [5, 6, 7]
    assert chunk.features["x"].tolist() == [[0, 1], [2, 0], [0, 0]]
    words: Any = chunk.features["words"]
    assert words.to_pylist() == [[1], [0], []]
    assert chunk.columns["label"].tolist() == [1, 0, 2]
    assert chunk.columns["split"].to_pylist() == ["train", "test", "train"]


def test_arrays_inside_files(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", x=np.eye(3), y=np.array([5, 6, 7]), k=np.array([1, 2, 1]))
    (tmp_path / "c.json").write_text('{"0": [1, 0], "2": [0, 0], "1": [0, 1]}')
    (tmp_path / "r.json").write_text('{"tr": [2], "te": [0, 1]}')
    card = (
        '[[nodes]]\ntype = "a"\ncount = 3\nfeatures = { x = "d.npz:x" }\n'
        'arrays = { label = "d.npz:y", labels = "c.json" }\n'
        'splits.split = { train = "r.json:tr", test = "r.json:te" }\n'
        'splits.other = { train = "d.npz:k=1", valid = "d.npz:k=2" }\n' + EDGES
    )
    chunk = read(describe(tmp_path, card))[0][0]
    columns = {name: it.tolist() for name, it in chunk.columns.items()}
    assert columns == {
        "label": [5, 6, 7],
        "labels": [[1, 0], [0, 1], [0, 0]],
        "split": ["test", "test", "train"],
        "other": ["train", "valid", "train"],
    }
    for wrong, message in (
        ("d.npz:z", "unknown array 'z'"),
        ("r.json:xx", "unknown key 'xx'"),
        ("r.json", "expected integers|keys are not"),
    ):
        card = f'[[nodes]]\ncount = 3\narrays = {{ y = "{wrong}" }}\n' + EDGES
        with pytest.raises((InputError, UnknownNameError), match=message):
            read(describe(tmp_path, card))


def test_edges_to_nodes_beyond_the_count_are_refused(tmp_path: Path) -> None:
    path = describe(
        tmp_path, '[[nodes]]\ntype = "b"\ncount = 2\n' + EDGES, e="7 1\n\n0 2\n"
    )
    with pytest.raises(InputError, match=r"e\.txt:3: unknown node 2, expected 0 to 1"):
        read(path)


def join_card(columns: str) -> str:
    join = f'\n[[nodes]]\ntype = "a"\nfile = "m.txt"\njoin = true\ncolumns = {columns}\n'
    return nodes_card(join, '["id", "name"]')


@pytest.mark.parametrize("names", ["012", "pqr"])
def test_joined_columns(tmp_path: Path, names: str) -> None:
    n = "".join(f"{it} n{it}\n" for it in names)
    m = f"{names[2]} 5\n{names[0]} 6\n"
    path = describe(tmp_path, join_card('["id", "label"]'), n=n, m=m)
    chunk = read(path)[0][0]
    assert chunk.columns["name"].to_pylist() == [f"n{it}" for it in names]
    assert chunk.columns["label"].to_pylist() == [6, None, 5]


def test_lists_and_matrices(tmp_path: Path) -> None:
    matrix = scipy.sparse.csr_array(np.array([[0, 0, 1.5], [1, 0, 0], [2.5, 1, 0]]))
    scipy.sparse.save_npz(tmp_path / "m.npz", matrix)
    card = (
        '[[edges]]\nfile = "e.txt"\nlayout = "lists"\n'
        '[[edges]]\ntype = ["u", "r", "i"]\nfile = "m.npz"\nlayout = "matrix"\n'
        "rows = [1, 3]\ncols = [0, 2]\n"
    )
    edges = read(describe(tmp_path, card, e="0 5 6\n3\n\n4 0\n"))[1]
    assert list(zip(edges[0].src, edges[0].dst, strict=True)) == [(0, 5), (0, 6), (4, 0)]
    rows = zip(edges[1].src, edges[1].dst, edges[1].columns["weight"], strict=True)
    assert list(rows) == [(0, 0, 1), (1, 0, 2.5), (1, 1, 1)]


def test_parquet_tables(tmp_path: Path) -> None:
    pq.write_table(pa.table({"key": ["x", "y"], "age": [3, 4]}), tmp_path / "n.parquet")
    pq.write_table(pa.table({"src": ["x"], "dst": ["y"]}), tmp_path / "e.parquet")
    card = (
        '[[nodes]]\nfile = "n.parquet"\nnames = { id = "key" }\n'
        '[[edges]]\nfile = "e.parquet"\n'
    )
    nodes, edges = read(describe(tmp_path, card))
    assert nodes[0].ids.to_pylist() == ["x", "y"]
    assert nodes[0].columns["age"].to_pylist() == [3, 4]
    assert edges[0].dst.to_pylist() == ["y"]


def test_a_description_becomes_a_store(tmp_path: Path) -> None:
    path = describe(
        tmp_path, join_card('["id", "x[*]"]'), n="0 p\n1 q\n", m="1 9 8\n0 7 6\n"
    )
    graph = ingest(path, tmp_path / "g").graph
    assert graph.features("a", 0, "x").tolist() == [[7, 6], [9, 8]]
    assert graph.nodes("a", 0)["name"].to_pylist() == ["p", "q"]
    assert sorted(graph.node_types) == ["a", "b"]


@pytest.mark.parametrize(
    ("card", "files", "message"),
    [
        (
            join_card('["id", "label"]'),
            {"n": "0 p\n", "m": "# c\n0 1\n9 2\n8 3\n"},
            r"m\.txt:3: unknown node 9, which no table of 'a' lists \(2 such rows\)",
        ),
        (
            join_card('["id", "label"]'),
            {"n": "0 p\n", "m": "0 1\n\n0 2\n"},
            r"m\.txt:3: node 0 is listed a second time",
        ),
        (
            join_card('["id", "x[*]"]'),
            {"n": "0 p\n1 q\n", "m": "0 1\n"},
            r"m\.txt: no row for node 1, expected features 'x' for each a",
        ),
        (
            join_card('["id", "label"]'),
            {"n": "0 p\n", "m": "z 1\n"},
            r"m\.txt: ids are string, but int64 in the table that lists 'a'",
        ),
        (
            nodes_card(""),
            {"n": "4 x\n5 y\n\n4 z\n"},
            r"n\.txt:4: node 4 is listed a second time, after line 1",
        ),
        (
            nodes_card('ids = "string"'),
            {"n": "4 x\n5 y\n4 z\n"},
            r"n\.txt:3: node '4' is listed a second time, after line 1",
        ),
        (nodes_card(""), {"n": "4 x\n5\n"}, r"n\.txt:2: found 1 column, expected 2"),
        (
            nodes_card('encoding = "ascii"'),
            {"n": b"0 a\n1 \xe9\n"},
            r"n\.txt: not ascii text: .*0xe9",
        ),
        (nodes_card('encoding = "utf-16"'), {"n": b"0 a\n1"}, r"n\.txt: not utf-16 text"),
        (EDGES.replace("e.txt", "f.txt"), {}, r"f\.txt: no such file"),
        (EDGES + 'where = { k = "1" }\n', {}, "unknown column 'k'"),
        (
            EDGES + 'layout = "lists"\n',
            {"e": "0 1\n2 x\n"},
            r"e\.txt:2: found 'x', expected integer ids",
        ),
        (EDGES + 'layout = "lists"\n', {"e": "0\n"}, "no edge in the file"),
        (EDGES + "header = true\n", {"e": "src dst\n"}, "no row behind the header"),
    ],
)
def test_wrong_tables_are_refused(
    tmp_path: Path, card: str, files: dict[str, Any], message: str
) -> None:
    with pytest.raises((InputError, UnknownNameError), match=message):
        read(describe(tmp_path, card, **files))


@pytest.mark.parametrize(
    ("more", "size", "message"),
    [
        ('features = { x = "a.npy" }', 2, r"a\.npy: 2 rows, expected 3, one for each node"),
        ('arrays = { label = "a.npy" }', 4, r"a\.npy: 4 rows, expected 3"),
        (
            'splits = { s = { train = "a.npy" } }',
            5,
            r"a\.npy \(splits\.s\.train\): row 4, expected 0",
        ),
    ],
)
def test_arrays_of_other_lengths_are_refused(
    tmp_path: Path, more: str, size: int, message: str
) -> None:
    np.save(tmp_path / "a.npy", np.arange(size))
    path = describe(tmp_path, f'[[nodes]]\ntype = "a"\ncount = 3\n{more}\n' + EDGES)
    with pytest.raises(InputError, match=message):
        read(path)


@pytest.mark.parametrize(
    ("card", "message"),
    [
        ("directed = true\n", r"no \[\[edges\]\], expected at least one"),
        ("[[edge]]\n", r"edge.*did you mean 'edges'"),
        ("[[edges]]\n", r"edges\.0\.file: expected the name of a file"),
        ('[[edges]]\nfile = "e.txt"\ntype = ["a"]\n', r"edges\.0\.type: got \['a'\]"),
        (EDGES + "rows = [0, 1]\n", r"edges\.0\.rows: goes with layout = 'matrix'"),
        (EDGES + 'layout = "matrix"\nrows = [3]\n', r"rows: got \[3\], expected \[FIRST"),
        (EDGES + 'layout = "list"\n', "did you mean 'lists'"),
        (EDGES + 'encoding = "latin-0"\n', "got 'latin-0', expected one that Python"),
        (EDGES + 'separator = "ab"\n', "separator: got 'ab', expected one character"),
        (EDGES + "skip = -1\n", "skip: got -1"),
        (EDGES.replace('"dst"', '"x[*]", "dst"'), "takes the rest, expected it last"),
        ("[[nodes]]\n" + EDGES, "expected either file or count"),
        ('[[nodes]]\nfile = "n.txt"\njoin = true\n' + EDGES, "but no other table lists"),
        ("[[nodes]]\ncount = 3\njoin = true\n" + EDGES, "join goes with columns of a file"),
    ],
)
def test_wrong_descriptions_are_refused(tmp_path: Path, card: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        open_source(describe(tmp_path, card))


def test_options_belong_into_the_description(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="says itself what columns there are"):
        open_source(describe(tmp_path, EDGES), columns="src,dst")
