"""Python objects as sources."""

import re
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

import graphsys as gs
from graphsys.core.errors import InputError
from graphsys.datasets import from_object
from graphsys.storage.source import EdgeChunk, NodeChunk


def read(obj: object, **options: Any) -> tuple[list[Any], list[Any], dict[str, list[Any]]]:
    src, dst, columns = [], [], dict[str, list[Any]]()
    for chunk in from_object(obj, **options).chunks():
        if isinstance(chunk, EdgeChunk):
            src += chunk.src.tolist()
            dst += chunk.dst.tolist()
            for name, values in chunk.columns.items():
                columns.setdefault(name, []).extend(values.tolist())
    return src, dst, columns


FRAME = {"src": [0, 1, 2], "dst": [1, 2, 0], "weight": [0.5, 1.5, 2.5]}


@pytest.mark.parametrize(
    "make",
    [
        lambda: FRAME,
        lambda: pa.table(FRAME),
        lambda: pa.table(FRAME).to_batches()[0],
        lambda: pa.table(FRAME).to_reader(),
        lambda: pd.DataFrame(FRAME),
        lambda: pl.DataFrame(FRAME),
        lambda: pl.DataFrame(FRAME).lazy(),
        lambda: np.array(list(zip(*FRAME.values(), strict=True))),
        lambda: tuple(np.array(values) for values in FRAME.values()),
        lambda: list(zip(*FRAME.values(), strict=True)),
        lambda: nx.DiGraph(
            [(0, 1, {"weight": 0.5}), (1, 2, {"weight": 1.5}), (2, 0, {"weight": 2.5})]
        ),
        lambda: scipy.sparse.coo_array(([0.5, 1.5, 2.5], ([0, 1, 2], [1, 2, 0]))),
        lambda: scipy.sparse.csr_matrix(([0.5, 1.5, 2.5], ([0, 1, 2], [1, 2, 0]))),
    ],
)
def test_the_same_graph_from_every_object(make: Any) -> None:
    assert read(make()) == ([0, 1, 2], [1, 2, 0], {"weight": [0.5, 1.5, 2.5]})


class Exporter:
    """Has the stream protocol and nothing else."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return pa.table(FRAME).__arrow_c_stream__(requested_schema)


def test_anything_with_the_arrow_protocol() -> None:
    assert read(Exporter())[0] == [0, 1, 2]


def test_arrays_without_weights() -> None:
    assert read(np.array([[1, 2], [3, 4]], dtype=np.uint32)) == ([1, 3], [2, 4], {})
    assert read(np.array([["a", "b"]])) == (["a"], ["b"], {})
    assert read((np.array(["a"], dtype=object), np.array(["b"], dtype=object)))[0] == ["a"]


def test_sparse_rows_are_nodes_and_types_follow_the_shape() -> None:
    chunks = list(
        from_object(scipy.sparse.coo_array(([True], ([0], [2])), (2, 3))).chunks()
    )
    nodes = {c.node_type: c.ids.tolist() for c in chunks if isinstance(c, NodeChunk)}
    assert nodes == {"row": [0, 1], "col": [0, 1, 2]}
    (edge,) = (c for c in chunks if isinstance(c, EdgeChunk))
    assert tuple(edge.edge_type) == ("row", "edge", "col")
    assert dict(edge.columns) == {}


def test_networkx_attributes_become_columns() -> None:
    graph = nx.MultiGraph()
    graph.add_node("a", label=1, split="train")
    graph.add_node("lonely", label=2)
    graph.add_edge("a", "b", relation="knows", time=5)
    graph.add_edge("a", "b", relation="likes", time=6)
    source = from_object(graph)
    assert not source.is_directed
    nodes, edges = source.chunks()
    assert isinstance(nodes, NodeChunk)
    assert isinstance(edges, EdgeChunk)
    assert nodes.ids.to_pylist() == ["a", "lonely", "b"]
    assert nodes.columns["label"].to_pylist() == [1, 2, None]
    assert edges.columns["relation"].to_pylist() == ["knows", "likes"]
    assert edges.columns["time"].tolist() == [5, 6]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: object(), "builtins object: no graph; expected paths, numpy arrays"),
        (
            lambda: np.zeros((3, 9)),
            r"array of shape \[3, 9\], expected \[E, 2\].*transpose it",
        ),
        (lambda: np.array([[1, 2], [-3, 4]]), "column src, row 1: found -3 as an id"),
        (lambda: np.array([[1.5, 2]]), "column src, row 0: found 1.5 as an id"),
        (lambda: np.array([[1, 2, np.nan]]), "column weight, row 0: found NaN"),
        (
            lambda: (np.array([1, 2]), np.array([1])),
            r"arrays of \[2, 1\] values, expected one",
        ),
        (lambda: [(1, 2), (3,)], r"got edges of \[1, 2\] values, expected 2 or 3"),
        (lambda: [1, 2], "got a list of 2 objects, expected"),
        (lambda: pd.DataFrame({"a": [1]}), "pandas DataFrame: no column for src and dst"),
        (
            lambda: pd.DataFrame({"src": [1, None], "dst": [1, 2]}).astype(
                {"src": "Int64"}
            ),
            "column src, row 1: the value is missing",
        ),
        (lambda: scipy.sparse.coo_array([[np.nan]]), "values, row 0: found NaN"),
        (lambda: scipy.sparse.coo_array([[1j]]), "weights are of type complex128"),
        (lambda: nx.Graph(), "the graph has no nodes"),
        (lambda: nx.Graph([(1, "a")]), "nodes are of type int, str, expected all"),
        (
            lambda: nx.Graph([((1, 2), (3, 4))]),
            r"nodes are of type tuple, .* strings; rename them with networkx[.]relabel",
        ),
        (lambda: nx.Graph([(-1, 2)]), "found -1 as an id"),
        (
            lambda: nx.Graph([(1, 2, {"weight": 3}), (2, 3, {})]),
            "edge attribute 'weight': 1 of 2 edges have none, expected all or none",
        ),
        (
            lambda: nx.Graph([(1, 2, {"x": 3}), (2, 3, {"x": "a"})]),
            "edge attribute 'x': values of several types",
        ),
        (
            lambda: np.array([[2**63, 1]], dtype=np.uint64),
            "found 9223372036854775808 as an id",
        ),
    ],
)
def test_what_is_no_graph_is_refused(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as found:
        read(make())
    assert "\n" not in str(found.value)


PAIRS = np.array([[0, 1], [1, 2], [2, 0]])


@pytest.mark.parametrize(
    "pairs",
    [
        PAIRS.astype(">i8"),
        np.matrix(PAIRS),
        np.ma.array(PAIRS),
        np.array([(0, 1), (1, 2), (2, 0)], dtype=[("src", ">i4"), ("dst", "<i4")]),
    ],
)
def test_kinds_of_arrays_are_read_as_plain_ones(pairs: Any) -> None:
    assert read(pairs)[:2] == ([0, 1, 2], [1, 2, 0])


def test_masked_values_are_no_ids() -> None:
    masked = np.ma.array(PAIRS, mask=np.array([[0, 0], [1, 0], [0, 0]], dtype=bool))
    with pytest.raises(InputError, match=r"1 values are masked, the first in row 1; leave"):
        read(masked)
    left: Any = np.ma.compress_rows(masked)  # type: ignore[no-untyped-call]
    assert read(left)[:2] == ([0, 2], [1, 0])  # as advised
    with pytest.raises(InputError, match="the first in row 1"):
        read({"src": masked[:, 0], "dst": masked[:, 1]})


def test_two_rows_of_three_integers_may_be_either() -> None:
    pairs = np.array([[0, 1, 2], [1, 2, 0]])
    with pytest.raises(InputError, match=r"an edge_index of 3; pass \(src, dst\), or"):
        read(pairs)
    assert read((pairs[0], pairs[1]))[:2] == ([0, 1, 2], [1, 2, 0])
    assert read(pairs + np.array([0.0, 0.0, 0.5]))[2] == {"weight": [2.5, 0.5]}


def test_complex_numbers_are_no_weights() -> None:
    with pytest.raises(InputError, match="weight is of type complex128, expected real"):
        read((PAIRS[:, 0], PAIRS[:, 1], np.array([1j, 1, 1])))


def test_times_of_day_are_no_times() -> None:
    table = pa.table({"src": [0], "dst": [1], "time": pa.array([1], pa.time32("s"))})
    with pytest.raises(InputError, match=r"times are of type time32\[s\], expected"):
        read(table)


def test_a_table_without_columns_says_so() -> None:
    with pytest.raises(InputError, match="no column for src and dst among none; say"):
        read({})


def test_nodes_of_networkx_that_are_no_names_are_renamed_as_advised() -> None:
    graph = nx.Graph([((1, 2), "a")])
    with pytest.raises(InputError, match=r"strings; rename them with") as told:
        read(graph, ids="string")
    advised = re.search(r"networkx[.](relabel_nodes)[(]graph, (str)[)]", str(told.value))
    assert advised is not None
    renamed = getattr(nx, advised[1])(graph, {"str": str}[advised[2]])
    assert read(renamed)[:2] == (["(1, 2)"], ["a"])


def test_all_texts_of_polars_come_in(tmp_path: Path) -> None:
    columns = {
        "category": pl.Series(["x", "y"], dtype=pl.Categorical),
        "choice": pl.Series(["x", "y"], dtype=pl.Enum(["y", "x"])),
        "words": [["a"], ["b", "c"]],
        "two": pl.Series([["a", "b"], ["c", "d"]], dtype=pl.Array(pl.String, 2)),
        "entry": [{"name": "b"}, {"name": "c"}],
        "raw": [b"a", b"c"],
    }
    ends = {"src": ["a", "b"], "dst": ["b", "a"]}
    kinds = {name: pl.Series(texts, dtype=pl.Categorical) for name, texts in ends.items()}
    relation = pl.Series(["likes", "knows"], dtype=pl.Categorical)
    edges = pl.DataFrame({**kinds, "relation": relation, **columns})
    nodes = pl.DataFrame({"id": ["a", "b"], **columns})
    graph = gs.ingest(
        out=tmp_path / "g", nodes={"user": nodes}, edges={"user,to,user": edges}
    ).graph
    wanted = [edges[name].to_list() for name in ("src", "dst", "relation", *columns)]
    found = graph.to_polars().sort("src")
    assert [
        found[name].to_list() for name in ("src", "dst", "relation", *columns)
    ] == wanted
    table = pa.table(graph.nodes("user", 0)).sort_by("id")
    assert table.select(list(columns)).to_pydict() == nodes.select(list(columns)).to_dict(
        as_series=False
    )
