"""A graph in the hand: neighbors, parts of it, other libraries' graphs, against edges."""

import gc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import graphsys as gs
from graphsys.core.errors import ConfigError, UnknownNameError
from graphsys.facade.graph import Graph
from graphsys.storage import GraphReader, NodeChunk
from tests.stores import edge_chunk, make_store

EDGES = [("a", "b"), ("a", "c"), ("b", "c"), ("c", "d"), ("d", "d")]


@pytest.fixture(params=[True, False], ids=["directed", "undirected"])
def graph(request: pytest.FixtureRequest, tmp_path: Path) -> Graph:
    """Return five edges over two partitions; nodes have a color and features."""
    import pyarrow as pa

    nodes = NodeChunk(
        ids=pa.array(["a", "b", "c", "d"]),
        columns={"color": pa.array([1, 2, 3, 4])},
        features={"x": np.arange(8, dtype=np.float32).reshape(4, 2)},
    )
    weights = np.arange(1, 6, dtype=np.float32)
    chunk = edge_chunk(EDGES, weight=weights)
    store = make_store(
        tmp_path / "g",
        nodes,
        chunk,
        is_directed=request.param,
        partitions=2,
        partitioner="range",
    )
    return store.graph


def test_neighbors_and_degrees(graph: Graph) -> None:
    out = {a: sorted(d for s, d in EDGES if s == a) for a in "abcd"}
    into = {a: sorted(s for s, d in EDGES if d == a) for a in "abcd"}
    for node in "abcd":
        if graph.is_directed:
            assert sorted(graph.neighbors(node)) == out[node]
            assert sorted(graph.neighbors(node, direction="in")) == into[node]
            both = sorted(graph.neighbors(node, direction="both"))
            assert both == sorted(out[node] + into[node])
            assert graph.degree(node, direction="both") == len(both)
        else:
            loops = [node] if (node, node) in EDGES else []
            found = sorted(graph.neighbors(node))
            assert found == sorted([*out[node], *(n for n in into[node] if n != node)])
            assert graph.degree(node) == len(found)
            assert found.count(node) == len(loops)
    with pytest.raises(UnknownNameError, match="'z'"):
        graph.neighbors("z")
    with pytest.raises(ConfigError, match="direction: got 'up', expected one of out, in"):
        graph.neighbors("a", direction="up")  # type: ignore[arg-type]


def test_edges_in_other_shapes(graph: Graph) -> None:
    chunks = list(graph.edge_chunks())
    assert len(chunks) > 1
    assert sum(len(chunk) for chunk in chunks) == 5
    frame = graph.to_pandas()
    found = {(r.src, r.dst): r.weight for r in frame.itertuples()}
    assert found == {edge: k + 1.0 for k, edge in enumerate(EDGES)}
    assert graph.to_polars().height == 5
    number = {key: int(graph.lookup("node", [key])[0]) for key in "abcd"}
    wanted = {(number[s], number[d]) for s, d in EDGES}
    if not graph.is_directed:
        wanted |= {(d, s) for s, d in wanted}
    index = graph.edge_index()
    assert str(index.dtype) == "torch.int64"
    assert index.shape == (2, 5 if graph.is_directed else 9)
    assert set(map(tuple, index.T.tolist())) == wanted
    matrix = graph.to_scipy()
    assert {(int(a), int(b)) for a, b in zip(*matrix.nonzero(), strict=True)} == wanted
    assert matrix[number["b"], number["c"]] == 3.0
    assert "node" in graph._repr_html_()
    assert "<table>" in graph._repr_html_()


def test_graphs_of_other_libraries(graph: Graph) -> None:
    nx = pytest.importorskip("networkx")
    found = graph.to_networkx()
    assert found.is_directed() == graph.is_directed
    assert found.nodes["b"]["color"] == 2
    wanted = nx.MultiDiGraph(EDGES) if graph.is_directed else nx.MultiGraph(EDGES)
    assert nx.utils.edges_equal(found.edges(), wanted.edges(), directed=graph.is_directed)
    pytest.importorskip("torch_geometric")
    data = graph.to_pyg()
    assert data.num_nodes == 4
    assert data.x.shape == (4, 2)


def test_parts_of_a_graph_keep_what_nodes_and_edges_have(
    graph: Graph, tmp_path: Path
) -> None:
    part = graph.subgraph(["a", "c", "d"], tmp_path / "part")
    assert (part.num_nodes, part.num_edges) == (3, 3)
    frame = part.to_pandas()
    assert {(r.src, r.dst): r.weight for r in frame.itertuples()} == {
        ("a", "c"): 2.0,
        ("c", "d"): 4.0,
        ("d", "d"): 5.0,
    }
    nodes = part.nodes("node", 0)
    colors = dict(zip(*(nodes.column(c).to_pylist() for c in ("id", "color")), strict=True))
    assert colors == {"a": 1, "c": 3, "d": 4}
    at = int(part.lookup("node", ["c"])[0])
    assert part.features("node", 0, "x")[at].tolist() == [4.0, 5.0]
    assert part.is_directed == graph.is_directed
    assert gs.open(tmp_path / "part").num_edges == 3
    drawn = graph.sample(2, seed=1)
    assert drawn.num_nodes == 2
    assert graph.sample(2, seed=1).to_pandas().equals(drawn.to_pandas())
    with pytest.raises(ConfigError, match="num_nodes: got 0, expected an int >= 1"):
        graph.sample(0)


def test_whatever_makes_a_graph_makes_one_that_users_have(tmp_path: Path) -> None:
    edges = {"src": [0, 1, 2], "dst": [1, 2, 0], "time": [10, 20, 30]}
    graph = gs.ingest(edges, tmp_path / "g").graph
    made = {
        "ingest": graph,
        "open": gs.open(tmp_path / "g"),
        "class": gs.Graph(tmp_path / "g"),
        "split": gs.split(graph, tmp_path / "s", "0.4,0.3,0.3", by="time").graph,
        "subgraph": graph.subgraph([0, 1]),
        "sample": graph.sample(2),
        "at": graph.at(20),
        "between": graph.at(30).between(10, 20),
        "rolling": next(graph.rolling(15)),
        "append": graph.append({"src": [2], "dst": [1], "time": [40]}).graph,
    }
    with gs.open(tmp_path / "g") as opened:
        made["with"] = opened
    assert {name: type(it).__mro__.index(gs.Graph) < 3 for name, it in made.items()} == (
        dict.fromkeys(made, True)
    )
    assert made["at"].num_edges == 2
    assert made["between"].window == (10, 20)
    assert made["append"].neighbors(2) == [0, 1]
    assert repr(made["at"]).endswith("times None to before 21)")


def test_the_graph_of_a_reader_is_the_same_and_keeps_it(tmp_path: Path) -> None:
    graph = gs.ingest({"src": [0, 1], "dst": [1, 2]}, tmp_path / "g").graph
    assert Graph.of(graph) is graph
    with GraphReader(tmp_path / "g") as reader:
        assert Graph.of(reader).neighbors(1) == [2]
    part = graph.subgraph([0, 1])
    folder = part.path
    assert folder.exists()
    assert part.num_edges == 1
    del part
    gc.collect()
    assert not folder.exists()


def test_frames_without_an_edge_have_the_columns_of_all(tmp_path: Path) -> None:
    days = pd.to_datetime(["2024-01-01", "2024-02-01"])
    likes = pd.DataFrame({"src": ["a", "b"], "dst": ["x", "y"], "time": days})
    likes = likes.assign(weight=[1.5, 2.0], relation=["r", "s"], note=[["p"], ["q", "r"]])
    trusts = pd.DataFrame({"src": ["a"], "dst": ["b"], "since": [3], "time": days[:1]})
    edges = {"user,likes,item": likes, "user,trusts,user": trusts}
    graph = gs.ingest(out=tmp_path / "g", edges=edges, partitions=2).graph
    empty, first = graph.at("2023-01-01"), graph.between("2024-02-01", "2024-03-01")
    for name in (None, "likes", "trusts"):
        for view, num_edges in ((empty, 0), (first, int(name != "trusts"))):
            frame, whole = view.to_polars(name), graph.to_polars(name)
            assert frame.schema == whole.schema
            assert len(frame) == num_edges
    assert dict(empty.to_pandas("likes").dtypes) == dict(graph.to_pandas("likes").dtypes)
