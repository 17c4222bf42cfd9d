"""PyTorch-BigGraph's prepared data, written here in its documented layout."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.core.errors import InputError
from graphsys.datasets import ingest, open_source
from graphsys.storage.source import EdgeChunk

h5py = pytest.importorskip("h5py", reason="h5py comes with the extra all")

EDGES = {(0, 0): [(0, 0, 1)], (0, 1): [(1, 1, 0), (0, 0, 2)], (1, 0): [(2, 1, 1)]}


def write(root: Path, *, names: bool = True, **sizes: str) -> Path:
    folder = root / "edges"
    folder.mkdir(parents=True, exist_ok=True)
    for (i, j), rows in EDGES.items():
        with h5py.File(folder / f"edges_{i}_{j}.h5", "w") as file:
            file.attrs["format_version"] = 1
            for k, name in enumerate(("lhs", "rel", "rhs")):
                file[name] = np.array([row[k] for row in rows])
    for name, text in ({"all_0": "2", "all_1": "3"} | sizes).items():
        (root / f"entity_count_{name}.txt").write_text(text)
    if names:
        content = {"entities": {"all": list("abcde")}, "relations": ["r", "s"]}
        (root / "dictionary.json").write_text(json.dumps(content))
    return folder


def rows(folder: Path) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for it in open_source(folder).chunks():
        if isinstance(it, EdgeChunk):
            columns = (it.src, it.columns["relation"], it.dst)
            found += zip(*(column.tolist() for column in columns), strict=True)
    return found


def test_buckets_with_names(tmp_path: Path) -> None:
    folder = write(tmp_path)
    assert rows(folder) == [
        ("a", "r", "b"),
        ("b", "s", "c"),
        ("a", "r", "e"),
        ("e", "s", "b"),
    ]
    graph = ingest(folder, tmp_path / "g").graph
    assert (graph.num_nodes, graph.num_edges) == (5, 4)


def test_buckets_without_names(tmp_path: Path) -> None:
    found = rows(write(tmp_path, names=False))
    assert found == [(0, "0", 1), (1, "1", 2), (0, "0", 4), (4, "1", 1)]


@pytest.mark.parametrize(
    ("sizes", "names", "message"),
    [
        ({"all_1": "2"}, False, "an offset outside 0 to 1 of partition 1"),
        ({"all_1": "x"}, True, "found 'x', expected a number of entities"),
        ({"all_1": "9"}, True, "names 5 of 'all', expected 11"),
        ({"other_0": "2"}, True, r"of 2 types \(all, other\), expected one type"),
        ({"all_3": "2"}, True, "partitions of 'all' are not 0 to 2"),
    ],
)
def test_files_that_do_not_fit_are_refused(
    tmp_path: Path, sizes: dict[str, str], names: bool, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        rows(write(tmp_path, names=names, **sizes))


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    folder = write(tmp_path)
    (folder / "edges_0_1.h5").write_bytes(b"no HDF5")
    with pytest.raises(InputError, match=r"edges_0_1\.h5: cannot be read as a bucket"):
        rows(folder)
    (tmp_path / "dictionary.json").write_text("{}")
    with pytest.raises(InputError, match="expected PBG's dictionary"):
        rows(folder)


def test_names_of_the_newer_importer(tmp_path: Path) -> None:
    folder = write(tmp_path, names=False)
    for part, names in enumerate((["a", "b"], ["c", "d", "e"])):
        (tmp_path / f"entity_names_all_{part}.json").write_text(json.dumps(names))
    (tmp_path / "dynamic_rel_names.json").write_text('["r", "s"]')
    assert rows(folder)[0] == ("a", "r", "b")
    (tmp_path / "entity_names_all_1.json").write_text('["c"]')
    with pytest.raises(InputError, match=r"entity_names_all_1\.json: 1 names, expected 3"):
        rows(folder)


def test_several_edge_paths_are_splits(tmp_path: Path) -> None:
    folder = write(tmp_path)
    train, test = (folder.rename(tmp_path / "g_train"), tmp_path / "g_test")
    shutil.copytree(train, test)
    graph = ingest([train, test], tmp_path / "g").graph
    assert graph.splits(graph.edge_types[0]) == ["test", "train"]
    other = write(tmp_path / "other")
    with pytest.raises(InputError, match="edge paths of 2 entity paths, expected one"):
        open_source([train, other])
    other = other.rename(tmp_path / "other" / "g_train")
    with pytest.raises(InputError, match="two edge paths of one name"):
        open_source([train, other])


def test_a_config_tells_what_relations_of_several_types_join(tmp_path: Path) -> None:
    folder = write(tmp_path, names=False, user_0="2", user_1="3", item_0="3")
    for name in ("all_0", "all_1"):
        (tmp_path / f"entity_count_{name}.txt").unlink()
    (folder / "edges_0_1.h5").unlink()
    config: dict[str, Any] = {
        "entity_path": str(tmp_path),
        "edge_paths": ["edges"],
        "relations": [
            {"name": "likes", "lhs": "user", "rhs": "item"},
            {"name": "buys", "lhs": "user", "rhs": "item"},
        ],
    }
    path = tmp_path / "config.py"
    path.write_text(f"def get_torchbiggraph_config():\n    return {config!r}\n")
    graph = ingest(path, tmp_path / "g").graph
    assert graph.node_types == ["item", "user"]
    assert sorted(kind.relation for kind in graph.edge_types) == ["buys", "likes"]
    assert (graph.num_nodes_of("user"), graph.num_nodes_of("item")) == (5, 3)
    assert graph.num_edges == 2
    with pytest.raises(InputError, match="ingest PBG's config file instead"):
        open_source(folder)
    config["relations"] = config["relations"][:1] * 2
    path.write_text(f"def get_torchbiggraph_config():\n    return {config!r}\n")
    with pytest.raises(InputError, match="names a relation between the same types twice"):
        open_source(path)
    config["edge_paths"] = ["none"]
    path.write_text(f"def get_torchbiggraph_config():\n    return {config!r}\n")
    with pytest.raises(InputError, match=r"holds no edges_I_J\.h5 of PBG"):
        open_source(path)
    path.write_text("def get_torchbiggraph_config():\n    return {}\n")
    with pytest.raises(InputError, match="expected PBG's config with entity_path"):
        open_source(path)
