"""Every recipe whose files are at hand is built; its card has the published counts."""

from pathlib import Path

import pytest

from graphsys.core.errors import InputError
from graphsys.datasets import recipes

pytestmark = pytest.mark.shared

FOLDERS = {
    "acm": "heco-acm",
    "blogcatalog": "blogcatalog",
    "citeseer": "planetoid",
    "codex-s": "codex-s",
    "cora": "planetoid",
    "countries-s1": "countries/countries_S1",
    "countries-s2": "countries/countries_S2",
    "countries-s3": "countries/countries_S3",
    "dblp": "dblp-four-area",
    "fb15k237": "fb15k237-text",
    "gatne-amazon": "gatne-amazon",
    "gowalla": "gowalla",
    "imdb-binary": "tud-graphclass/IMDBBINARY",
    "kinships": "kinships",
    "lastfm": "lightgcn-lastfm",
    "minesweeper": "heterophilous",
    "nations": "nations",
    "proteins": "tud-graphclass/PROTEINS",
    "ptc": "tud-graphclass/PTC",
    "tolokers": "heterophilous",
    "umls": "umls",
    "wn18rr": "wn18rr",
}
TYPES = {
    "acm": {"paper": 4019, "author": 7167, "subject": 60},
    "dblp": {"author": 14_475, "paper": 14_376, "conf": 20, "term": 8920},
    "gowalla": {"user": 29_858, "item": 40_981},
    "imdb-binary": {"graph": 1000, "node": 19_773},
    "proteins": {"graph": 1113, "node": 43_471},
    "ptc": {"graph": 344, "node": 8792},
}


@pytest.mark.parametrize("name", FOLDERS)
def test_recipe(shared_data: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / "g"
    report = recipes.build(name, out, folder=shared_data / FOLDERS[name])
    counts = recipes.show(name).counts
    graph = report.graph
    found = {
        split: sum(
            int(graph.bucket_counts(it, split).sum())
            for it in graph.edge_types
            if split in graph.splits(it)
        )
        for split in ("train", "valid", "test")
    }
    assert graph.num_nodes == counts.get("nodes", graph.num_nodes)
    assert {split: found[split] for split in counts if split != "nodes"} == {
        split: count for split, count in counts.items() if split != "nodes"
    }
    for node_type, size in TYPES.get(name, {}).items():
        assert int(graph.offsets(node_type)[-1]) == size


def test_fb15k237_from_ids(shared_data: Path, tmp_path: Path) -> None:
    folder = shared_data / "fb15k237-ids"
    graph = recipes.build("fb15k237", tmp_path / "g", folder=folder).graph
    edge_type = graph.edge_types[0]
    sizes = [
        int(graph.bucket_counts(edge_type, it).sum()) for it in ("train", "valid", "test")
    ]
    assert (graph.num_nodes, sizes) == (14_541, [272_115, 17_535, 20_466])


def test_every_verified_recipe_is_built_here() -> None:
    of_files = [it for it in recipes.names() if recipes.show(it).kind == "files"]
    verified = {it for it in of_files if not recipes.show(it).unverified}
    assert verified == set(FOLDERS)


def test_acm_has_features_labels_and_splits(shared_data: Path, tmp_path: Path) -> None:
    folder = shared_data / "heco-acm"
    graph = recipes.build("acm", tmp_path / "g", folder=folder).graph
    table = graph.nodes("paper", 0)
    assert graph.features("paper", 0, "x").shape == (4019, 1902)
    assert set(table["label"].to_pylist()) == {0, 1, 2}
    splits = [table[name].to_pylist() for name in ("split", "split_40", "split_60")]
    sizes = [[it.count(name) for name in ("train", "valid", "test")] for it in splits]
    assert sizes == [[60, 1000, 1000], [120, 1000, 1000], [180, 1000, 1000]]


def test_dblp_joins_labels_and_recodes_names(shared_data: Path, tmp_path: Path) -> None:
    folder = shared_data / "dblp-four-area"
    graph = recipes.build("dblp", tmp_path / "g", folder=folder).graph
    author, paper = graph.nodes("author", 0), graph.nodes("paper", 0)
    assert len(author) - author["label"].null_count == 4057
    assert any(not name.isascii() for name in paper["name"].to_pylist())
    labels = {it: graph.nodes(it, 0)["label"] for it in ("paper", "conf")}
    assert len(labels["paper"]) - labels["paper"].null_count == 100
    assert labels["conf"].null_count == 0


def test_a_damaged_copy_of_mutag_is_refused_unless_allowed(
    shared_data: Path, tmp_path: Path
) -> None:
    folder = shared_data / "tud-graphclass/MUTAG"
    with (
        pytest.warns(UserWarning, match="edges are listed at one of their ends alone"),
        pytest.raises(InputError, match="found 3727 train edges, expected 3721"),
    ):
        recipes.build("mutag", tmp_path / "g", folder=folder)
    assert not (tmp_path / "g").exists()
    with pytest.warns(UserWarning, match="another version"):
        report = recipes.build(
            "mutag", tmp_path / "g", folder=folder, allow_other_counts=True
        )
    assert report.graph.num_nodes_of("graph") == 188
