import inspect
import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsys.interop import networkx as backend
from graphsys.interop.networkx_info import FUNCTIONS

ROOT = Path(__file__).resolve().parents[3]
OPTIONAL = {
    "distance": ("closeness_centrality", "harmonic_centrality"),
    "sources": ("harmonic_centrality",),
    "source": (
        "average_degree_connectivity",
        "average_neighbor_degree",
        "has_eulerian_path",
    ),
    "target": ("average_degree_connectivity", "average_neighbor_degree", "shortest_path"),
    "k": ("betweenness_centrality",),
}
"""Arguments of these names that other functions must have, and these need not."""
IN_ANY_ORDER = ("find_cliques",)
"""What lists sets, in an order that NetworkX does not promise."""
KINDS = [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]


@pytest.fixture(autouse=True)
def no_cache_warnings() -> Iterator[None]:
    before = set(nx.config.warnings_to_ignore)
    nx.config.warnings_to_ignore.add("cache")
    yield
    nx.config.warnings_to_ignore = before


@st.composite
def networkx_graphs(draw: st.DrawFn) -> Any:
    """Graphs of all kinds, with nodes of several types, loops and repeated edges."""
    graph = draw(st.sampled_from(KINDS))()
    names: list[Any] = [3, 1, 2, "a", ("b", 1), 7.5, None, True, frozenset([1]), 10, 11]
    if True in names:
        names.remove(True)  # equals 1
    names.remove(None)  # is no node to NetworkX
    graph.add_nodes_from(draw(st.permutations(names))[: draw(st.integers(0, 10))])
    if len(graph):
        node = st.sampled_from(list(graph))
        weight = st.one_of(st.integers(0, 5), st.sampled_from([0.5, 1.5]))
        for u, v, w in draw(st.lists(st.tuples(node, node, weight), max_size=25)):
            graph.add_edge(u, v, **({"weight": w} if w != 4 else {}))
    return graph


def function(name: str) -> Callable[..., Any]:
    rooms = (nx, nx.community, nx.bipartite, nx.tournament)
    found: Any = next(getattr(room, name) for room in rooms if hasattr(room, name))
    return found  # type: ignore[no-any-return]  # a callable


def outcome(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The value, generators as lists, or what was raised."""
    try:
        value = call(*args, **kwargs)
        return list(value) if inspect.isgenerator(value) or _is_iterator(value) else value
    except (nx.NetworkXException, ValueError, ZeroDivisionError) as err:
        return type(err), str(err)
    except NotImplementedError:
        return LEFT


LEFT = object()
"""What a call gives that is left to NetworkX while it runs."""


def sorted_by_text(nodes: Iterable[Any]) -> list[str]:
    return sorted(map(repr, nodes))


def _is_iterator(value: Any) -> bool:
    return hasattr(value, "__next__")


def same(ours: Any, theirs: Any) -> bool:
    if isinstance(theirs, nx.Graph):
        parts = [
            (list(g.nodes(data=True)), list(g.edges(data=True))) for g in (ours, theirs)
        ]
        return type(ours) is type(theirs) and parts[0] == parts[1]
    if isinstance(theirs, np.ndarray):
        return bool(np.array_equal(ours, theirs))
    if isinstance(theirs, dict):
        return set(ours) == set(theirs) and all(same(ours[k], theirs[k]) for k in theirs)
    if isinstance(theirs, float):
        is_nan = math.isnan(ours) and math.isnan(theirs)
        return is_nan or math.isclose(ours, theirs, rel_tol=1e-6, abs_tol=1e-9)
    if isinstance(theirs, list | tuple):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    return bool(ours == theirs)


@settings(max_examples=40)
@given(graph=networkx_graphs(), data=st.data())
def test_functions_return_what_networkx_returns(graph: Any, data: st.DataObject) -> None:
    converted = backend.convert_from_nx(graph, preserve_all_attrs=True)
    # random, or of singular vectors that need not be the only ones
    for name in sorted(set(FUNCTIONS) - {"leiden_communities", "hits"}):
        theirs = function(name)
        parameters = inspect.signature(theirs).parameters
        chosen = {}
        for parameter in ("source", "target", "n", "u", "v", "sources", "distance", "k"):
            if parameter not in parameters or name in OPTIONAL.get(parameter, ()):
                continue
            if not len(graph):
                break
            is_number = parameter in ("distance", "k")
            of = st.integers(0, 3) if is_number else st.sampled_from(list(graph))
            chosen[parameter] = data.draw(of)
        else:
            if name == "modularity":
                cut = data.draw(st.integers(0, len(graph)))
                nodes = list(graph)
                chosen["communities"] = [set(nodes[:cut]), set(nodes[cut:])]
            if backend.can_run(name, (converted,), chosen) is True:
                expected = outcome(theirs, graph, **chosen, backend="networkx")
                found = outcome(getattr(backend, name), converted, **chosen)
                if name in IN_ANY_ORDER and isinstance(expected, list):
                    found, expected = (
                        sorted(map(sorted_by_text, it)) for it in (found, expected)
                    )
                if found is not LEFT:
                    assert same(found, expected), (name, chosen, found, expected)


@settings(max_examples=30)
@given(graph=networkx_graphs(), name=st.sampled_from(OPTIONAL["distance"]))
def test_centralities_by_lengths_are_those_of_networkx(graph: Any, name: str) -> None:
    converted = backend.convert_from_nx(graph, preserve_all_attrs=True)
    assert backend.can_run(name, (converted,), {"distance": "weight"}) is True
    expected = function(name)(graph, distance="weight", backend="networkx")
    assert same(getattr(backend, name)(converted, distance="weight"), expected)


@settings(max_examples=50)
@given(graph=networkx_graphs())
def test_a_converted_graph_comes_back_whole(graph: Any) -> None:
    converted = backend.convert_from_nx(graph, preserve_all_attrs=True)
    again = backend.convert_to_nx(converted)
    assert type(again) is type(graph)
    assert list(again) == list(graph)
    assert nx.utils.graphs_equal(again, graph) or graph.is_multigraph()
    plain = [list(map(repr, g.edges(data=True))) for g in (again, graph)]
    if graph.is_directed():
        assert sorted(plain[0]) == sorted(plain[1])
    assert len(plain[0]) == len(plain[1])


class Complete(nx.Graph):  # type: ignore[misc]  # networkx has no types
    """A graph that computes its neighbors, as NetworkX's complement graphs do."""

    def __getitem__(self, node: Any) -> dict[Any, dict[str, Any]]:
        return {other: {} for other in self if other != node}


KARATE = nx.karate_club_graph()
LOOP = nx.Graph([(1, 1), (1, 2)])


@pytest.mark.parametrize(
    ("name", "graph", "arguments", "reason"),
    [
        ("core_number", Complete([(1, 2), (2, 3)]), {}, "neighbors of its own making"),
        ("pagerank", KARATE, {"nstart": {0: 1}}, "nstart={0: 1} is not supported"),
        ("pagerank", KARATE, {"personalization": {0: 0}}, "a sum above 0"),
        ("clustering", KARATE, {"weight": "weight"}, "weight='weight' is not supported"),
        ("clustering", nx.DiGraph(KARATE), {}, "directed graphs are not supported"),
        ("transitivity", nx.MultiGraph(KARATE), {}, "multigraphs are not supported"),
        ("triangles", KARATE, {"nodes": [99]}, "members that are no nodes"),
        ("triangles", KARATE, {"nodes": iter([1])}, "a node or a collection of nodes"),
        ("core_number", LOOP, {}, "self-loops are not supported"),
        ("jaccard_coefficient", LOOP, {}, "self-loops are not supported"),
        ("is_connected", nx.Graph(), {}, "graph without nodes"),
        ("is_weakly_connected", KARATE, {}, "only directed graphs are supported"),
        ("closeness_centrality", KARATE, {"distance": max}, "must name an edge attribute"),
        ("closeness_centrality", KARATE, {"u": 99}, "no such node"),
        ("node_connected_component", KARATE, {"n": 99}, "no such node"),
        ("descendants", KARATE, {"source": 99}, "no such node"),
        ("leiden_communities", KARATE, {"seed": "x"}, "the seed must be"),
        (
            "single_source_dijkstra_path_length",
            KARATE,
            {"source": 0, "weight": max},
            "weight must name an edge attribute",
        ),
        (
            "single_source_shortest_path_length",
            KARATE,
            {"source": 0, "cutoff": -1},
            "cutoff must be a number >= 0",
        ),
        ("diameter", KARATE, {"nonsense": 1}, "unexpected keyword argument 'nonsense'"),
    ],
)
def test_other_calls_are_declined(
    name: str, graph: Any, arguments: dict[str, Any], reason: str
) -> None:
    answer = backend.can_run(name, (graph,), arguments)
    assert isinstance(answer, str)
    assert reason in answer


def test_declined_calls_fall_back() -> None:
    directed = nx.DiGraph(KARATE)
    expected = nx.clustering(directed)
    with nx.config(backend_priority=["graphsys"]):
        assert nx.clustering(directed) == expected
    with pytest.raises(NotImplementedError, match="not implemented by 'graphsys'"):
        nx.clustering(directed, backend="graphsys")


def test_attributes_that_are_no_numbers_fall_back() -> None:
    graph = nx.path_graph(1000)
    graph.edges[3, 4]["weight"] = "heavy"
    call = nx.single_source_dijkstra_path_length
    with nx.config(backend_priority=["graphsys"]):
        with pytest.raises(TypeError, match="str"):  # NetworkX's own
            call(graph, 0)
        graph.edges[3, 4]["weight"] = -1
        graph.__networkx_cache__.clear()
        with pytest.raises(ValueError, match="Contradictory paths"):
            call(graph, 0)
    with pytest.raises(NotImplementedError, match="raised NotImplementedError") as error:
        call(graph, 0, backend="graphsys")
    assert "negative" in str(error.value.__cause__)


def test_networkx_chooses_us_for_large_graphs_only() -> None:
    graph = nx.path_graph(1000)
    assert "not converted yet" in str(backend.should_run("is_connected", (graph,), {}))
    assert backend.should_run("pagerank", (graph,), {}) is True
    nx.pagerank(graph, backend="graphsys")
    assert backend.should_run("is_connected", (graph,), {}) is True
    assert "fewer than 500 nodes" in str(backend.should_run("pagerank", (KARATE,), {}))


def test_most_of_what_the_engine_has_is_offered() -> None:
    assert len(FUNCTIONS) >= 110
    assert all(hasattr(getattr(backend, name), "refusal") for name in FUNCTIONS)


def test_samples_and_singular_vectors_are_those_of_networkx() -> None:
    graph = nx.gnp_random_graph(60, 0.1, seed=4, directed=True)
    nx.set_edge_attributes(graph, {e: 1 + e[0] % 3 for e in graph.edges}, "weight")
    for name, arguments in (
        ("betweenness_centrality", {"k": 7, "seed": 5}),
        ("hits", {}),
        ("katz_centrality", {"alpha": 0.05, "beta": 0.5, "weight": "weight"}),
        ("eigenvector_centrality", {"max_iter": 1000, "weight": "weight"}),
    ):
        found, expected = (
            function(name)(graph, **arguments, backend=b) for b in ("graphsys", "networkx")
        )
        assert same(found, expected), name


def test_hubs_with_more_than_one_answer_are_left_to_networkx() -> None:
    converted = backend.convert_from_nx(nx.path_graph(4), edge_attrs={"weight": 1})
    for graph in (converted, backend.convert_from_nx(nx.empty_graph(3))):
        with pytest.raises(NotImplementedError):
            getattr(backend, "hits")(graph)  # noqa: B009


def test_cutoffs_between_two_hops_count_as_in_networkx() -> None:
    graph = nx.path_graph(6)
    for name in ("single_source_shortest_path_length", "single_source_shortest_path"):
        for cutoff in (0, 1.5, 2, math.inf):
            found, expected = (
                function(name)(graph, 0, cutoff=cutoff, backend=b)
                for b in ("graphsys", "networkx")
            )
            assert found == expected, (name, cutoff)


def test_spanning_trees_keep_what_nodes_and_edges_have() -> None:
    graph = nx.Graph(name="g")
    graph.add_node("a", size=3)
    graph.add_weighted_edges_from(
        [("a", "b", 1), ("b", "c", 1), ("a", "c", 1)], color="red"
    )
    found, expected = (
        nx.maximum_spanning_tree(graph, backend=b) for b in ("graphsys", "networkx")
    )
    assert same(found, expected)
    assert (found.graph, found.nodes["a"]) == ({"name": "g"}, {"size": 3})
    with pytest.raises(NotImplementedError):
        nx.minimum_spanning_tree(graph, algorithm="prim", backend="graphsys")


def test_missing_nodes_raise_what_networkx_raises() -> None:
    for name in (
        "single_source_shortest_path_length",
        "single_source_dijkstra_path_length",
    ):
        raised = [
            outcome(function(name), KARATE, 99, backend=b) for b in ("graphsys", "networkx")
        ]
        assert raised[0] == raised[1]
        assert raised[0][0] is nx.NodeNotFound


def test_steps_that_do_not_converge_are_reported() -> None:
    with pytest.raises(nx.PowerIterationFailedConvergence):
        nx.pagerank(KARATE, max_iter=1, backend="graphsys")


def test_integer_weights_give_integer_distances() -> None:
    graph = nx.Graph()
    graph.add_weighted_edges_from([(0, 1, 3), (1, 2, 4)])
    found = nx.single_source_dijkstra_path_length(graph, 0, backend="graphsys")
    assert [(node, type(d), d) for node, d in found.items()] == [
        (0, int, 0),
        (1, int, 3),
        (2, int, 7),
    ]
    graph.add_edge(2, 3, weight=2**60 + 1)
    converted = backend.convert_from_nx(graph, edge_attrs={"weight": 1})
    with pytest.raises(NotImplementedError, match=r"2\*\*53 or more are not exact"):
        getattr(backend, "single_source_dijkstra_path_length")(converted, 0)  # noqa: B009


def test_communities_are_a_good_partition() -> None:
    graph = nx.planted_partition_graph(8, 25, 0.4, 0.01, seed=3)
    found = nx.community.leiden_communities(graph, seed=1, backend="graphsys")
    assert nx.community.is_partition(graph, found)
    again = nx.community.leiden_communities(graph, seed=1, backend="graphsys")
    assert found == again
    louvain = nx.community.louvain_communities(graph, seed=1)
    reached, bar = (nx.community.modularity(graph, parts) for parts in (found, louvain))
    assert reached >= bar - 1e-9


def test_every_function_is_networkx_s_in_name_and_arguments() -> None:
    for name in FUNCTIONS:
        theirs = inspect.signature(function(name)).parameters.values()
        expected = {p.name: p.default for p in theirs if not p.name.startswith("backend")}
        ours = inspect.signature(getattr(backend, name)).parameters.values()
        assert {p.name: p.default for p in ours} == expected, name


def test_importing_networkx_loads_nothing_heavy() -> None:
    code = (
        "import sys, networkx as nx; assert 'graphsys' in nx.utils.backends.backend_info; "
        "print(sorted({'numba', 'pyarrow', 'torch', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/"
    )
    assert done.stdout.strip() == "[]"


def test_a_sample_of_networkx_s_own_tests_passes() -> None:
    modules = [
        f"networkx.algorithms.{name}"
        for name in (
            "components.tests.test_connected",
            "link_analysis.tests.test_pagerank",
            "tests.test_cluster",
            "tests.test_core",
            "tests.test_link_prediction",
        )
    ]
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "networkx_suite"), "--json", *modules],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )
    assert done.returncode == 0, done.stderr[-2000:]
    report = json.loads(done.stdout)
    assert not report["failed"]
    assert report["total"]["passed"] > 150
    for name in ("pagerank", "connected_components", "triangles", "jaccard_coefficient"):
        assert report["functions"][name]["taken"] > 3, name
