"""Parameters of the command line: numbers, sets of nodes, numbers by node, pairs."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphsys as gs
from graphsys.core.errors import ConfigError
from graphsys.engine.algorithms import ALGORITHMS
from graphsys.engine.parameters import parse_parameters

KNOWN = {
    "sources": Sequence[Any] | None,
    "weights": Mapping[Any, float] | None,
    "labels": dict[Any, int] | None,
    "pairs": Iterable[tuple[Any, Any]] | None,
}


def parse(pair: str) -> Any:
    return next(iter(parse_parameters([pair], KNOWN, "x").values()))


def test_nodes_stand_between_commas_or_in_lines_of_a_file(tmp_path: Path) -> None:
    assert parse("sources=3,user:7, b") == ["3", "user:7", "b"]
    assert parse("sources=none") is None
    (tmp_path / "ids.txt").write_text("3\n\nDoe, Jane\r\n@home\n", encoding="utf-8")
    assert parse(f"sources=@{tmp_path / 'ids.txt'}") == ["3", "Doe, Jane", "@home"]


def test_numbers_and_partners_follow_their_node(tmp_path: Path) -> None:
    assert parse("weights=3=0.5,7") == {"3": 0.5, "7": 1}
    assert parse("labels=3=2,7=1") == {"3": 2, "7": 1}
    assert parse("pairs=3=7,3=9") == [("3", "7"), ("3", "9")]
    (tmp_path / "w.tsv").write_text("a=b\t2\nc\n")
    assert parse(f"weights=@{tmp_path / 'w.tsv'}") == {"a=b": 2.0, "c": 1}
    (tmp_path / "p.tsv").write_text("a\tb\nc\td\n")
    assert parse(f"pairs=@{tmp_path / 'p.tsv'}") == [("a", "b"), ("c", "d")]


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("sources=3,,7", "has an empty node in '3,,7'"),
        ("sources=@nowhere.txt", "names nowhere.txt, which is no file"),
        ("weights=3=heavy", "'weights' of x, '3': got 'heavy', expected a number"),
        ("weights=3=1,3=2", "names node '3' twice"),
        ("pairs=3", "takes pairs of nodes, got '3' alone"),
    ],
)
def test_what_names_no_nodes_is_refused(pair: str, message: str) -> None:
    with pytest.raises(ConfigError, match="parameter") as error:
        parse(pair)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (tuple, ("3", "7")),
        (list, ["3", "7"]),
        (set, {"3", "7"}),
        (tuple[gs.NodeId, ...], ("3", "7")),
        (list[int] | None, [3, 7]),
        (tuple[float, ...], (3.0, 7.0)),
    ],
)
def test_a_programs_own_parameter_is_the_sequence_that_it_says(
    kind: Any, expected: Any
) -> None:
    assert parse_parameters(["ids=3,7"], {"ids": kind}, "x") == {"ids": expected}


def test_a_mapping_without_types_has_numbers() -> None:
    assert parse_parameters(["shares=3=.5,7"], {"shares": dict}, "x") == {
        "shares": {"3": 0.5, "7": 1}
    }


def test_what_is_expected_is_said_in_words() -> None:
    for kind, text, expected in (
        (float, "damping=much", "got 'much', expected a number"),
        (int | None, "hops=1.5", "got '1.5', expected a whole number"),
        (bool, "hops=maybe", "got 'maybe', expected true or false"),
        (list[int], "hops=1,x", "got 'x', expected a whole number"),
    ):
        with pytest.raises(ConfigError, match=f"of x: {expected}"):
            parse_parameters([text], {"damping": kind, "hops": kind}, "x")


def test_files_without_nodes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "none.txt").write_text("\n \n")
    with pytest.raises(ConfigError, match=r"none\.txt names no node"):
        parse(f"sources=@{tmp_path / 'none.txt'}")
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"bytes\.txt is no text in UTF-8"):
        parse(f"sources=@{tmp_path / 'bytes.txt'}")


def test_every_set_of_an_algorithm_is_read_from_text() -> None:
    for name, text, expected in (
        ("betweenness", "sources=3,7", {"sources": ["3", "7"]}),
        ("pagerank", "personalization=3=1,7=2", {"personalization": {"3": 1.0, "7": 2.0}}),
        ("label_propagation", "labels=3=1", {"labels": {"3": 1}}),
        ("random_walks", "starts=3,7", {"starts": ["3", "7"]}),
        ("jaccard", "pairs=3=7", {"pairs": [("3", "7")]}),
    ):
        assert parse_parameters([text], ALGORITHMS[name].parameters(), name) == expected


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"damping": "a"}, "parameter damping of pagerank: got 'a', expected a number"),
        ({"damping": None}, "parameter damping of pagerank: got None, expected a number"),
        ({"tolerance": [1]}, r"parameter tolerance of pagerank: got \[1\], expected a num"),
        ({"num_threads": "2"}, "num_threads: got '2', expected an int >= 1"),
        ({"num_threads": 0}, "num_threads: got 0, expected an int >= 1"),
        ({"num_threads": -1}, "num_threads: got -1, expected an int >= 1"),
        (
            {"weighted": "false"},
            "weighted of pagerank: got 'false', expected True or False",
        ),
        ({"personalization": [1]}, r"got \[1\], expected numbers by id, such as \{3: 0.5"),
    ],
)
def test_values_of_another_type_are_refused_by_their_name(given: Any, said: str) -> None:
    graph = gs.Topology.from_edges([0], [1], 2)
    with pytest.raises(ConfigError, match=said):
        gs.algorithms.pagerank(graph, **given)
    assert (
        len(gs.algorithms.pagerank(graph, damping=float(np.float32(0.5)), num_threads=1))
        == 2
    )


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("random_walks", {"starts": 1}, "starts of random_walks: got 1, expected a list"),
        ("betweenness", {"sources": "12"}, r"got '12', expected a list of ids, such as \["),
        ("steiner_tree", {"terminals": 4}, "terminals of steiner_tree: got 4, expected"),
        (
            "jaccard",
            {"pairs": [(0, 1, 2)]},
            r"got \(0, 1, 2\), expected pairs of ids, such",
        ),
        ("jaccard", {"pairs": ["01"]}, "got '01', expected pairs of ids"),
        ("jaccard", {"pairs": 3}, "got 3, expected pairs of ids"),
    ],
)
def test_what_is_no_list_of_nodes_is_refused(name: str, given: Any, said: str) -> None:
    """A text is none either: "12" would be the nodes 1 and 2."""
    graph = gs.Topology.from_edges([0], [1], 2)
    with pytest.raises(ConfigError, match=said):
        ALGORITHMS[name](graph, **given)


def test_nodes_may_come_from_a_generator() -> None:
    """What a run needs is estimated from them first, so that they are read twice."""
    graph = gs.Topology.from_edges([0, 1], [1, 0], 2)
    walks = gs.algorithms.random_walks(graph, starts=(node for node in (0, 1)))
    assert walks.table["id"].to_pylist() == [0, 1]
    pairs = gs.algorithms.jaccard(graph, pairs=(pair for pair in np.array([[0, 1]])))
    assert len(pairs) == 1
    weights = gs.algorithms.pagerank(graph, personalization={0: 1.0})
    assert len(weights) == 2


@pytest.mark.parametrize("path", [None, 3, b"g"])
def test_what_is_no_path_is_no_graph(path: Any) -> None:
    with pytest.raises(ConfigError, match=r"path: got .*, expected the folder of a graph"):
        gs.open(path)


def test_what_is_no_pattern_is_refused() -> None:
    with pytest.raises(ConfigError, match="pattern: got None, expected a name such as"):
        gs.mining.count((np.array([0]), np.array([1])), None)
