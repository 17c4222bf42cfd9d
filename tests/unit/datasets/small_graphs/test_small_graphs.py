"""Sets of small graphs as TU Dortmund and the authors of GIN write them."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.core.errors import ConfigError, InputError
from graphsys.datasets import ingest, open_source
from graphsys.sampling import FeatureTable
from graphsys.storage import Graph
from tests.stores import read_edges

TU = {
    # a triangle, a pair and a lone node; the pair comes first among the entries
    "A": "4, 5\n5, 4\n1, 2\n2, 1\n2, 3\n3, 2\n1, 3\n3, 1\n",
    "graph_indicator": "1\n1\n1\n2\n2\n3\n",
    "graph_labels": "1\n-1\n1\n",
    "node_labels": "7\n7\n3\n3\n0\n7\n",
    "node_attributes": "0.5, 1\n0, -2\n1, 1e3\n4, 5\n6, 7\n8, 9\n",
}
GIN = "3\n3 1\n7 2 1 2\n7 2 0 2\n3 2 0 1\n2 0\n3 1 1\n0 1 0\n1 1\n7 0\n"


def tu(folder: Path, **changes: str | None) -> Path:
    """Write the files of a set; None leaves one out."""
    folder.mkdir()
    for part, text in {**TU, **changes}.items():
        if text is not None:
            (folder / f"SET_{part}.txt").write_text(text)
    return folder


def gin(folder: Path, text: str = GIN) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "SET.txt").write_text(text)
    return folder / "SET.txt"


def edges_of(graph: Graph) -> set[tuple[int, int]]:
    return {(min(e.src, e.dst), max(e.src, e.dst)) for e in read_edges(graph, "edge")}


def column(graph: Graph, node_type: str, name: str) -> list[Any]:
    """Return a column by id."""
    values = graph.node_column(node_type, name).to_pylist()
    ids = graph.node_ids(node_type).to_pylist()
    return [value for _, value in sorted(zip(ids, values, strict=True))]


def rows_of(graph: Graph, name: str, ids: list[int]) -> list[list[float]]:
    """Return features of nodes given by their ids."""
    numbers = graph.lookup("node", ids).astype(np.int64)
    found: list[list[float]] = FeatureTable(graph, "node", [name]).gather(numbers).tolist()
    return found


def test_a_folder_of_tu_is_read_with_graphs_tags_and_attributes(tmp_path: Path) -> None:
    graph = ingest(tu(tmp_path / "SET"), tmp_path / "g").graph
    assert (graph.num_nodes_of("graph"), graph.num_nodes_of("node")) == (3, 6)
    assert (graph.num_edges, graph.is_directed) == (4, False)
    assert edges_of(graph) == {(1, 2), (2, 3), (1, 3), (4, 5)}
    assert column(graph, "graph", "label") == [1, -1, 1]
    assert column(graph, "node", "graph_id") == [1, 1, 1, 2, 2, 3]
    assert column(graph, "node", "tag") == [7, 7, 3, 3, 0, 7]
    rows = rows_of(graph, "tag", [1, 3, 5])
    assert rows == [[0, 0, 1], [0, 1, 0], [1, 0, 0]]  # 0, 3, 7
    assert rows_of(graph, "x", [1, 3, 5]) == [
        [0.5, 1],
        [1, 1000],
        [6, 7],
    ]


def test_the_text_of_gin_is_read_as_the_same_graphs(tmp_path: Path) -> None:
    graph = ingest(gin(tmp_path), tmp_path / "g", format="gin").graph
    assert (graph.num_nodes_of("graph"), graph.num_nodes_of("node")) == (3, 6)
    assert edges_of(graph) == {(0, 1), (1, 2), (0, 2), (3, 4)}
    assert column(graph, "graph", "label") == [1, 0, 1]
    assert column(graph, "node", "graph_id") == [0, 0, 0, 1, 1, 2]
    assert column(graph, "node", "tag") == [7, 7, 3, 3, 0, 7]
    assert graph.feature_names("node") == ["tag"]


def test_the_indicator_stands_for_its_folder(tmp_path: Path) -> None:
    file = tu(tmp_path / "SET") / "SET_graph_indicator.txt"
    assert ingest(file, tmp_path / "g").graph.num_edges == 4


def test_nodes_without_labels_have_no_features(tmp_path: Path) -> None:
    folder = tu(tmp_path / "SET", node_labels=None, node_attributes=None)
    graph = ingest(folder, tmp_path / "g").graph
    assert graph.feature_names("node") == []
    same = GIN.replace("7 ", "3 ").replace("\n0 1 0", "\n3 1 0")
    graph = ingest(gin(tmp_path, same), tmp_path / "h", format="gin").graph
    assert graph.feature_names("node") == []  # one tag says nothing


def test_several_tags_a_node_stand_side_by_side(tmp_path: Path) -> None:
    tags = "1, 5\n1, 6\n2, 5\n1, 5\n2, 5\n2, 5\n"
    graph = ingest(tu(tmp_path / "SET", node_labels=tags), tmp_path / "g").graph
    assert column(graph, "node", "tag_2") == [5, 6, 5, 5, 5, 5]
    rows = rows_of(graph, "tag", [2, 3])
    assert rows == [[1, 0, 0, 1], [0, 1, 1, 0]]


def test_an_edge_at_one_end_or_twice_is_one_edge_and_is_told(tmp_path: Path) -> None:
    entries = TU["A"].replace("3, 1\n", "").replace("1, 2\n", "1, 2\n1, 2\n")
    folder = tu(tmp_path / "SET", A=entries)
    with pytest.warns(UserWarning, match=r"A\.txt: 1 edges .* alone, and 1 entries"):
        graph = ingest(folder, tmp_path / "g").graph
    assert edges_of(graph) == {(1, 2), (2, 3), (1, 3), (4, 5)}
    assert graph.num_edges == 4


def test_labels_of_edges_are_told_not_to_be_read(tmp_path: Path) -> None:
    folder = tu(tmp_path / "SET", edge_labels="1\n" * 8)
    with pytest.warns(UserWarning, match=r"SET_edge_labels\.txt is not read"):
        ingest(folder, tmp_path / "g")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"graph_labels": None}, r"SET_graph_labels\.txt: no such file"),
        ({"graph_labels": "1\n2\n"}, r"found graph 3 in row 6, expected 1 to 2"),
        ({"A": "1, 2\n2, 1\n3, 9\n"}, r"A\.txt: found node 9 in row 3, expected 1 to 6"),
        ({"A": "1, 2\n0, 1\n"}, r"found node 0 in row 2"),
        ({"A": "1, 2\n2\n"}, r"A\.txt:2: found 1 column, expected 2"),
        ({"A": "3, 4\n4, 3\n"}, r"node 3 of graph 1 to node 4 of graph 2, expected edges"),
        ({"node_labels": "1\n2\n"}, r"node_labels\.txt: 2 lines, expected 6"),
        ({"node_labels": "a\n" * 6}, r"node_labels\.txt:1: found 'a' as column 1"),
        ({"node_attributes": "1, nan\n" * 6}, r"node_attributes\.txt:1: found 'nan'"),
        ({"graph_indicator": "1\n1\n1\n2\n2\nx\n"}, r"indicator\.txt:6: found 'x'"),
    ],
)
def test_what_is_wrong_with_a_folder_is_said(
    tmp_path: Path, changes: dict[str, str | None], message: str
) -> None:
    folder = tu(tmp_path / "SET", **changes)
    with pytest.raises(InputError, match=message):
        ingest(folder, tmp_path / "g")
    assert not (tmp_path / "g").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("3 4\n", r"SET\.txt:1: found '3 4', expected the number of graphs"),
        (GIN.replace("3 2 0 1", "3 2 0 x"), r":5: found '3 2 0 x', expected integers"),
        (GIN.replace("3 2 0 1", ""), r":5: found '', expected integers"),
        (GIN.replace("3 2 0 1", "% 2"), r":5: found '% 2', expected integers"),
        (GIN.replace("3 2 0 1", "3 3 0 1"), r":5: found 2 neighbors, expected 3 neighbors"),
        (GIN.replace("3 2 0 1", "3 2 0 1 .5"), r":5: found '3 2 0 1 \.5'"),
        (GIN.replace("3 2 0 1", "3 2 0 3"), r":5: found neighbor 3, expected 0 to 2"),
        (GIN.replace("2 0\n", "2 0 1\n"), r":6: found 1 neighbors, expected none"),
        (GIN.replace("7 0\n", ""), r"found 3 graphs up to line \d+, and then the end"),
        (GIN + "7 0\n", r"and lines behind them, expected 3 as line 1 says"),
        ("3\n3 1\n", r"found 1 graphs"),
    ],
)
def test_what_is_wrong_with_a_text_of_gin_is_said(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        ingest(gin(tmp_path, text), tmp_path / "g", format="gin")


@pytest.mark.parametrize("name", ["tu", "gin"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": "src,dst"}, "files have fixed columns"),
        ({"ids": "string"}, "ids: got string, but"),
        ({"edge_type": ("a", "to", "b")}, "expected one node type at both ends"),
    ],
)
def test_options_that_go_with_lines_are_refused(
    tmp_path: Path, name: str, options: dict[str, Any], message: str
) -> None:
    path = tu(tmp_path / "SET") if name == "tu" else gin(tmp_path)
    with pytest.raises(ConfigError, match=re.escape(message)):
        open_source(path, format=name, **options)


def test_two_sets_are_refused(tmp_path: Path) -> None:
    first, second = gin(tmp_path / "a"), gin(tmp_path / "b")
    with pytest.raises(InputError, match=r"a second set of graphs, expected one"):
        open_source([first, second], format="gin")
    folder = tu(tmp_path / "SET")
    with pytest.raises(InputError, match="expected the folder of one set of graphs"):
        open_source(folder / "SET_A.txt", format="tu")
