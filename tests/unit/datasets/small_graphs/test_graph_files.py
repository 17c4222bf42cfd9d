"""Folders of GraphML and JSON graphs; networkx reading the same files is the oracle."""

import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from graphsys import gnn
from graphsys.core.errors import ConfigError, InputError
from graphsys.datasets import ingest, open_source
from graphsys.gnn import GnnConfig
from graphsys.storage import Graph
from tests.unit.datasets.small_graphs.test_small_graphs import (
    column,
    edges_of,
    rows_of,
)

ATOMS = ("C", "N", "O")


def molecules(count: int = 6) -> dict[str, Any]:
    """Return graphs by name: rings or trees, with atoms, charges and vectors."""
    rng = np.random.default_rng(5)
    found = {}
    for k in range(count):
        size = 4 + k % 3
        graph = nx.cycle_graph(size) if k % 2 else nx.path_graph(size)
        graph = nx.relabel_nodes(graph, {node: f"a{node}" for node in graph})
        for node in graph:
            graph.nodes[node]["atom"] = ATOMS[int(rng.integers(3))]
            graph.nodes[node]["charge"] = float(rng.normal())
        graph.graph["label"] = k % 2
        found[f"m{k}"] = graph
    return found


def write(folder: Path, graphs: dict[str, Any], *, is_json: bool = False) -> Path:
    folder.mkdir(exist_ok=True)
    for name, graph in graphs.items():
        if is_json:
            data = nx.node_link_data(graph, edges="links")
            (folder / f"{name}.json").write_text(json.dumps(data))
        else:
            nx.write_graphml(graph, folder / f"{name}.graphml")
    return folder


def read_by_networkx(folder: Path) -> dict[str, Any]:
    found = {}
    for path in sorted(folder.iterdir()):
        if path.suffix == ".graphml":
            found[path.stem] = nx.read_graphml(path)
        elif path.suffix == ".json":
            data = json.loads(path.read_text())
            found[path.stem] = nx.node_link_graph(data, edges="links")
    return found


def store(folder: Path, tmp_path: Path) -> Graph:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return ingest(folder, tmp_path / "store").graph


@pytest.mark.parametrize("is_json", [False, True])
def test_a_folder_is_what_networkx_reads(tmp_path: Path, is_json: bool) -> None:
    folder = write(tmp_path / "set", molecules(), is_json=is_json)
    graph, expected = store(folder, tmp_path), read_by_networkx(folder)
    whole = nx.disjoint_union_all(expected.values())
    assert edges_of(graph) == {(min(e), max(e)) for e in whole.edges()}
    assert not graph.is_directed
    assert column(graph, "graph", "name") == list(expected)
    labels = [each.graph["label"] for each in expected.values()]
    assert column(graph, "graph", "label") == labels == [0, 1, 0, 1, 0, 1]
    of = [k for k, each in enumerate(expected.values()) for _ in each]
    assert column(graph, "node", "graph_id") == of
    names = [node for each in expected.values() for node in each]
    assert column(graph, "node", "node_id") == names
    atoms = [found["atom"] for _, found in whole.nodes(data=True)]
    assert column(graph, "node", "atom") == atoms
    nodes = list(range(len(whole)))
    assert rows_of(graph, "atom", nodes) == [
        [float(atom == known) for known in ATOMS] for atom in atoms
    ]
    charges = [[found["charge"]] for _, found in whole.nodes(data=True)]
    assert np.allclose(rows_of(graph, "charge", nodes), charges, rtol=1e-6)


def test_labels_and_splits_stand_in_a_table(tmp_path: Path) -> None:
    graphs = molecules()
    folder = write(tmp_path / "set", dict(list(graphs.items())[:4]))
    write(folder, dict(list(graphs.items())[4:]), is_json=True)
    lines = [f"m{k}{'.graphml' * (k == 2)},{'ring' if k % 2 else 'tree'}" for k in range(6)]
    splits = ["train", "train", "train", "train", "valid", "test"]
    table = [f"{line},{split}" for line, split in zip(lines, splits, strict=True)]
    text = "\n".join(["graph,label,split", *reversed(table)])
    (folder / "labels.csv").write_text(f"\ufeff{text}\n\n", "utf-8")
    graph = store(folder, tmp_path)
    assert column(graph, "graph", "label") == ["tree", "ring"] * 3
    config = GnnConfig(
        task="graph_classification", model="gin", epochs=1, batch_size=4, threads=1
    )
    gnn.train(graph, config, tmp_path / "run")
    found = gnn.open_run(tmp_path / "run").state
    assert sorted(found.classes) == ["ring", "tree"]
    assert gnn.predict(tmp_path / "run").num_rows == 6


def test_lists_are_features_and_integers_columns(tmp_path: Path) -> None:
    graphs = molecules(2)
    for graph in graphs.values():
        for k, node in enumerate(graph):
            graph.nodes[node].update(x=[k, 0.5], ring=k == 1, level=k)
    del graphs["m0"].nodes["a0"]["level"]
    graph = store(write(tmp_path / "set", graphs, is_json=True), tmp_path)
    assert rows_of(graph, "x", [0, 1]) == [[0, 0.5], [1, 0.5]]
    assert rows_of(graph, "ring", [0, 1]) == [[1, 0], [0, 1]]
    assert column(graph, "node", "level")[:2] == [None, 1]
    assert rows_of(graph, "level", [0])[0] == [0] * 5
    assert rows_of(graph, "level", [1])[0] == [0, 1, 0, 0, 0]


def test_what_networks_do_not_see_is_told(tmp_path: Path) -> None:
    graphs = {name: nx.MultiDiGraph(graph) for name, graph in molecules(2).items()}
    graphs["m0"].add_edge("a0", "a1", bond="double")
    graphs["m1"].add_edge("a0", "a0", bond="none")
    folder = write(tmp_path / "set", graphs, is_json=True)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        graph = ingest(folder, tmp_path / "g").graph
    told = [str(each.message) for each in said]
    assert any("2 of 2 graphs are directed" in text for text in told)
    assert any("attributes of edges are not read (bond)" in text for text in told)
    assert len(told) == 2
    whole = nx.disjoint_union_all(nx.Graph(g) for g in read_by_networkx(folder).values())
    assert edges_of(graph) == {(min(e), max(e)) for e in whole.edges()}


def replaced(name: str, text: str | None) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        if text is None:
            (folder / name).unlink()
        else:
            (folder / name).write_text(text)

    return change


def both(text: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        for name in ("m0.json", "m1.json"):
            (folder / name).write_text(text)

    return change


def of_nodes(**attributes: list[Any]) -> str:
    """Return a graph whose nodes have these attributes."""
    size = len(next(iter(attributes.values())))
    nodes = [
        {"id": k, **{name: values[k] for name, values in attributes.items()}}
        for k in range(size)
    ]
    return json.dumps({"nodes": nodes, "links": [], "graph": {"label": 1}})


TABLE = "graph,label\nm0,1\nm1,2\n"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (replaced("m1.json", "{"), "m1.json: NetworkX cannot read it as json"),
        (replaced("m1.json", "[1, 2]"), "expected an object with nodes and links"),
        (replaced("m2.graphml", "<graphml"), "m2.graphml: NetworkX cannot read it as"),
        (
            replaced("m1.json", '{"nodes": [], "links": [], "graph": {"label": 1}}'),
            "m1.json: the graph has no nodes, expected at least one; remove the file",
        ),
        (
            replaced("m1.json", '{"nodes": [{"id": 0}], "links": []}'),
            "has no attribute 'label', expected its class there, or a file labels.csv",
        ),
        (
            replaced("m1.json", of_nodes(x=[1]).replace('"label": 1', '"label": [1]')),
            "found label '[1]', expected integers or names",
        ),
        (both(of_nodes(x=["a", 1])), "'x': values of several types"),
        (both(of_nodes(x=[[1, 2], [1]])), "'x': lists of several lengths, expected one"),
        (replaced("m1.json", of_nodes(charge=[0.5, float("nan")])), "are not finite"),
        (
            replaced("m1.json", of_nodes(charge=[0.5, None])),
            "'charge': 1 of 6 nodes have none, expected numbers at all",
        ),
        (replaced("m1.json", of_nodes(atom=[{"a": 1}])), "'atom': values of several types"),
        (
            both(of_nodes(graph_id=[3])),
            "'graph_id': expected a name other than id, node_id, graph_id, src, dst",
        ),
        (replaced("m0.graphml", "x"), "found two graphs called 'm0'"),
        (replaced("labels.csv", "name,class\n"), "labels.csv:1: found 'name,class'"),
        (replaced("labels.csv", ""), "labels.csv: the file is empty, expected data"),
        (
            replaced("labels.csv", TABLE + "m2\n"),
            "labels.csv:4: found 1 columns, expected 2",
        ),
        (
            replaced("labels.csv", TABLE + "m2,1\n"),
            "labels.csv:4: found graph 'm2' and no file of that name",
        ),
        (
            replaced("labels.csv", TABLE + "m1.json,1\n"),
            "labels.csv:4: found graph 'm1.json' and a second line",
        ),
        (
            replaced("labels.csv", "graph,label\nm0,1\nm1,\n"),
            "no label for m1.json, expected a line 'm1,CLASS'",
        ),
    ],
)
def test_strange_files_are_refused_with_a_line(
    tmp_path: Path, change: Callable[[Path], None], message: str
) -> None:
    folder = write(tmp_path / "set", molecules(2), is_json=True)
    change(folder)
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        ingest(folder, tmp_path / "g")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "g").exists()


def test_what_a_folder_says_itself_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "set", molecules(2))
    with pytest.raises(ConfigError, match="leave out columns, separator and skip"):
        open_source(folder, columns="src,dst")
    (folder / "labels.csv").write_text(TABLE)
    with pytest.raises(InputError, match=r"expected one labels\.csv beside the files"):
        open_source(folder / "labels.csv", format="graphs")
    (folder / "edges.txt").write_text("1 2\n")
    with pytest.raises(InputError, match=r"expected a folder of \.graphml or \.json files"):
        open_source([folder / "m0.graphml", folder / "edges.txt"], format="graphs")
    assert open_source(folder).name == str(folder)  # other files are not of the set
    (folder / "labels.csv").unlink()
    with pytest.raises(InputError, match="is a folder, expected a file"):
        open_source(folder)  # JSON is in folders of other layouts too
    (folder / "edges.txt").rename(folder / "README.txt")
    assert open_source(folder).name == str(folder)
