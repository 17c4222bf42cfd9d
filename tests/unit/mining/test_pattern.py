"""Patterns by name, by text and from NetworkX."""

import re
from itertools import permutations

import networkx as nx
import pytest
from networkx.algorithms.isomorphism import GraphMatcher

from graphsys.core.errors import ConfigError, UnknownNameError
from graphsys.mining import Pattern
from graphsys.mining.census.shapes import SHAPES


def as_networkx(pattern: Pattern) -> nx.Graph:
    return nx.Graph(list(pattern.edges))


@pytest.mark.parametrize(
    ("text", "graph"),
    [
        ("triangle", nx.complete_graph(3)),
        ("a-b b-c c-a", nx.complete_graph(3)),
        ("x1-y, y-z", nx.path_graph(3)),
        ("2-clique", nx.path_graph(2)),
        ("7-clique", nx.complete_graph(7)),
        ("5-star", nx.star_graph(4)),
        ("6-star", nx.star_graph(5)),
        ("8-path", nx.path_graph(8)),
        ("6-cycle", nx.cycle_graph(6)),
        ("house", nx.house_graph()),
        ("bull", nx.bull_graph()),
        ("tailed triangle", nx.Graph([(0, 1), (1, 2), (0, 2), (2, 3)])),
        ("wheel", nx.wheel_graph(5)),
    ],
)
def test_names_and_texts_are_the_graphs_that_they_say(text: str, graph: nx.Graph) -> None:
    pattern = Pattern.of(text)
    assert nx.is_isomorphic(as_networkx(pattern), graph)
    assert nx.is_isomorphic(as_networkx(Pattern.of(graph)), graph)
    assert Pattern.of(pattern) is pattern


@pytest.mark.parametrize("size", SHAPES)
def test_a_pattern_knows_its_name_and_its_automorphisms(size: int) -> None:
    for name in SHAPES[size]:
        pattern = Pattern.of(name)
        graph = as_networkx(pattern)
        renamed = nx.relabel_nodes(graph, {i: size - i for i in range(size)})
        assert Pattern.of(renamed).shape() == name
        maps = sum(1 for _ in GraphMatcher(graph, graph).isomorphisms_iter())
        assert pattern.num_automorphisms() == maps
    assert Pattern.of("6-cycle").shape() is None
    assert Pattern.of("8-clique").num_automorphisms() == 40320


@pytest.mark.parametrize(
    "text",
    [
        "a>b b>c c>a",
        "a>b b>c a>c",
        "a>b c>b",
        "a<->b b-c c<->d",
        "a>b b-c",
        "a:x-b:y b:y-c:x",
        "a:x-b:y b:y-c:z",
        "a-[r]-b b-[r]-c c-[s]-a",
        "a-[r]->b b-[s]->c",
        "a-b b-c c-d d-a a!c",
        "a-b b-c c-d d-a a!c b!d",
        "a:x-b c-b d:x-b",
    ],
)
def test_renamings_keep_arrows_labels_and_pairs_without_an_edge(text: str) -> None:
    pattern = Pattern.of(text)
    pairs = {
        (a, b): {
            ("edge", pattern.edges >= {(min(a, b), max(a, b))}),
            ("apart", pattern.apart >= {(min(a, b), max(a, b))}),
            *(
                (it.label, it.is_arrow)
                for it in pattern.links
                if (it.src, it.dst) == (a, b)
            ),
            *(
                (it.label, False)
                for it in pattern.links
                if (it.dst, it.src) == (a, b) and not it.is_arrow
            ),
        }
        for a in range(pattern.num_nodes)
        for b in range(pattern.num_nodes)
    }
    expected = [
        it
        for it in permutations(range(pattern.num_nodes))
        if all(pairs[it[a], it[b]] == wanted for (a, b), wanted in pairs.items())
        and all(pattern.label_of(it[k]) == pattern.label_of(k) for k in range(len(it)))
    ]
    assert sorted(pattern.automorphisms()) == expected
    assert pattern.num_automorphisms() == len(expected)
    assert pattern.shape() is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a-b b-b", "a pattern has no loops, but b-b is one; leave it out"),
        ("", "a pattern has at least one edge, got none"),
        ("a-b c-d", "the pattern is in several parts: no path of its edges leads to c, d;"),
        ("a-b b-c c-d d-e e-f f-g g-h h-i", "a pattern of 9 nodes has too many matches"),
        ("9-clique", "pattern '9-clique': expected 2 to 8 nodes (3 for a cycle)"),
        ("2-cycle", "pattern '2-cycle': expected 2 to 8 nodes (3 for a cycle)"),
    ],
)
def test_what_is_no_pattern_is_refused(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        Pattern.of(text)


def test_an_unknown_name_is_answered_by_those_known() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown pattern 'hous'; .*'house'"):
        Pattern.of("hous")
