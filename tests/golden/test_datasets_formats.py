"""Real files of every format become stores with their published counts.

Counts are those of shared/data/README.md, which names the publications.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphsys as gs
from graphsys.core.errors import InputError

pytestmark = pytest.mark.shared


def build(tmp_path: Path, path: Path, **options: Any) -> Any:
    gs.ingest(path, tmp_path / "g", **options)
    return gs.open(tmp_path / "g")


@pytest.mark.parametrize(
    ("name", "nodes", "edges"),
    [
        ("4elt", 15_606, 45_878),
        ("PGPgiantcompo", 10_680, 24_316),
        ("airfoil1", 4253, 12_289),
        ("astro-ph", 16_706, 121_251),
        ("celegans_metabolic", 453, 2025),
        ("hep-th", 8361, 15_751),
        ("jazz", 198, 2742),
        ("karate", 34, 78),
        ("lesmis", 77, 254),
        ("polblogs", 1490, 16_715),
        ("power", 4941, 6594),
        ("wing", 62_032, 121_544),
    ],
)
def test_metis(
    shared_data: Path, tmp_path: Path, name: str, nodes: int, edges: int
) -> None:
    graph = build(tmp_path, shared_data / f"networkit-input/{name}.graph")
    assert (graph.num_nodes, graph.num_edges, graph.is_directed) == (nodes, edges, False)


def test_metis_with_weights(shared_data: Path, tmp_path: Path) -> None:
    graph = build(tmp_path, shared_data / "networkit-input/lesmis.graph")
    weight = graph.bucket(graph.edge_types[0], 0, 0).weight
    assert (len(weight), weight.sum()) == (254, 820)


def test_metis_whose_ends_disagree(shared_data: Path, tmp_path: Path) -> None:
    """NetworKit's jazz2double gives edge 3-5 the weights 5.21231 and 2.21231."""
    with pytest.raises(InputError, match="ends of an edge do not both list it or weigh"):
        build(tmp_path, shared_data / "networkit-input/jazz2double.graph")


@pytest.mark.parametrize("name", ["graphalytics-p2p31", "graphalytics-p2p31/p2p-31.v"])
def test_graphalytics(shared_data: Path, tmp_path: Path, name: str) -> None:
    graph = build(tmp_path, shared_data / name, undirected=True)
    assert (graph.num_nodes, graph.num_edges) == (62_586, 147_892)
    nodes = graph.nodes("node", 0)
    assert nodes.column_names == ["id", "v1"]
    values = dict(zip(nodes["id"].to_pylist(), nodes["v1"].to_pylist(), strict=True))
    assert (values[1], values[2]) == (7, 3)


@pytest.mark.parametrize(
    ("name", "counts"), [("directed", (10, 17)), ("undirected", (9, 12))]
)
def test_graphalytics_examples(
    shared_data: Path, tmp_path: Path, name: str, counts: tuple[int, int]
) -> None:
    path = shared_data / f"graphalytics-validation/example/example-{name}.e"
    graph = build(tmp_path, path)
    assert (graph.num_nodes, graph.num_edges) == counts


def test_openke(shared_data: Path, tmp_path: Path) -> None:
    graph = build(tmp_path, shared_data / "fb15k237-ids")
    edge_type = graph.edge_types[0]
    counts = {
        name: int(graph.bucket_counts(edge_type, name).sum())
        for name in graph.splits(edge_type)
    }
    assert graph.num_nodes == 14_541
    assert counts == {"train": 272_115, "valid": 17_535, "test": 20_466}
    relations = graph.relations(edge_type)
    assert len(relations) == 237
    assert "/location/country/form_of_government" in relations
    table = graph.nodes("entity", 0)
    names = dict(zip(table["id"].to_pylist(), table["name"].to_pylist(), strict=True))
    assert (names[0], names[14_540]) == ("/m/027rn", "/m/0q96")


@pytest.mark.parametrize(
    ("name", "nodes", "edges", "dim", "classes"),
    [
        ("minesweeper", 10_000, 39_402, 7, 2),
        ("tolokers", 11_758, 519_000, 10, 2),
        ("actor", 7600, 26_659, 932, 5),
        ("chameleon_filtered", 890, 8854, 2325, 5),
        ("squirrel_filtered", 2223, 46_998, 2089, 5),
        ("texas", 183, 279, 1703, 5),
        ("wisconsin", 251, 450, 1703, 5),
    ],
)
def test_heterophilous(
    shared_data: Path,
    tmp_path: Path,
    name: str,
    nodes: int,
    edges: int,
    dim: int,
    classes: int,
) -> None:
    graph = build(tmp_path, shared_data / f"heterophilous/{name}.npz")
    assert (graph.num_nodes, graph.num_edges, graph.is_directed) == (nodes, edges, False)
    table = graph.nodes("node", 0)
    assert graph.features("node", 0, "x").shape == (nodes, dim)
    assert len(set(table["label"].to_pylist())) == classes
    assert table["split"].equals(table["split_0"])
    stored = np.load(shared_data / f"heterophilous/{name}.npz")
    for k in (0, 9):
        found = Counter(table[f"split_{k}"].to_pylist())
        expected = [int(stored[f"{it}_masks"][k].sum()) for it in ("train", "val", "test")]
        assert [found[it] for it in ("train", "valid", "test")] == expected


def test_sparse_matrix(shared_data: Path, tmp_path: Path) -> None:
    path = shared_data / "gowalla/s_adj_mat.npz"
    graph = build(tmp_path, path, undirected=True, coalesce=True)
    assert (graph.num_nodes, graph.num_edges) == (70_839, 810_128)


def test_matlab(shared_data: Path, tmp_path: Path) -> None:
    graph = build(tmp_path, shared_data / "blogcatalog/blogcatalog.mat")
    assert (graph.num_nodes, graph.num_edges, graph.is_directed) == (10_312, 333_983, False)
    labels = graph.nodes("node", 0)["labels"].to_pylist()
    assert sum(map(len, labels)) == 14_476
    assert {it for row in labels for it in row} == set(range(39))


def test_temporal_edges(shared_data: Path, tmp_path: Path) -> None:
    graph = build(tmp_path, shared_data / "CollegeMsg/CollegeMsg.txt", format="csv")
    time = graph.bucket(graph.edge_types[0], 0, 0).time
    assert (graph.num_nodes, graph.num_edges) == (1899, 59_835)
    assert (time.min(), time.max()) == (1_082_040_961, 1_098_777_142)


def test_temporal_facts(shared_data: Path, tmp_path: Path) -> None:
    columns = "src,relation,dst,time,_"
    path = shared_data / "tkg-yago"
    graph = build(tmp_path, path, format="triples", columns=columns, ids="int")
    edge_type = graph.edge_types[0]
    counts = [int(graph.bucket_counts(edge_type, it).sum()) for it in ("train", "valid")]
    assert (graph.num_nodes, counts) == (10_585, [161_540, 19_523])
    assert int(graph.bucket_counts(edge_type, "test").sum()) == 20_026
    assert len(graph.relations(edge_type)) == 10
    assert graph.bucket(edge_type, 0, 0).time.dtype == np.int64


def test_property_graph_described_in_toml(shared_data: Path, tmp_path: Path) -> None:
    folder = shared_data / "modern-graph/modern_graph"
    types = {"person": '{ age = "int" }', "software": "{}"}
    card = "".join(
        f'[[nodes]]\ntype = "{name}"\nfile = "{folder}/{name}.csv"\nheader = true\n'
        f'separator = "pipe"\ntypes = {kinds}\n'
        for name, kinds in types.items()
    )
    for name, end in (("knows", "person"), ("created", "software")):
        card += (
            f'[[edges]]\ntype = ["person", "{name}", "{end}"]\nheader = true\n'
            f'file = "{folder}/{name}.csv"\nseparator = "pipe"\n'
            'names = { src = "src_id", dst = "dst_id" }\n'
        )
    (tmp_path / "modern.toml").write_text(card)
    graph = build(tmp_path, tmp_path / "modern.toml")
    assert (graph.num_nodes, graph.num_edges) == (6, 6)
    person = graph.nodes("person", 0)
    ages = dict(zip(person["name"].to_pylist(), person["age"].to_pylist(), strict=True))
    assert ages == {"marko": 29, "vadas": 27, "josh": 32, "peter": 35}
    created = next(it for it in graph.edge_types if it.relation == "created")
    weights = graph.bucket(created, 0, 0).weight
    assert sorted(weights.tolist()) == pytest.approx([0.2, 0.4, 0.4, 1])
