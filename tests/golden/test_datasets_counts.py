"""Real graphs have their published counts (shared/data/README.md, column "exact")."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

from graphsys.datasets import open_source
from graphsys.storage.source import EdgeChunk, NodeChunk, Source

pytestmark = pytest.mark.shared


def count(source: Source) -> tuple[Counter[str], int]:
    """Count edges by split, and distinct nodes."""
    edges: Counter[str] = Counter()
    nodes: set[Any] = set()
    for chunk in source.chunks():
        if isinstance(chunk, NodeChunk):
            nodes.update(chunk.ids.tolist())
            continue
        edges[chunk.split] += len(chunk.src)
        for ids in (chunk.src, chunk.dst):
            distinct = np.unique(ids) if isinstance(ids, np.ndarray) else pc.unique(ids)
            nodes.update(distinct.tolist())
    return edges, len(nodes)


@pytest.mark.parametrize(
    ("path", "options", "nodes", "edges"),
    [
        ("wiki-Vote/wiki-Vote.txt", {}, 7115, 103_689),
        ("ego-facebook/facebook_combined.txt.gz", {"undirected": True}, 4039, 88_234),
        ("ca-GrQc/ca-GrQc.txt", {"skip": 1}, 5242, 28_980),
        ("email-Eu-core/email-Eu-core.txt", {"skip": 1}, 1005, 25_571),
        ("CollegeMsg/CollegeMsg.txt", {"skip": 1, "columns": "src,dst,time"}, 1899, 59_835),
        ("planetoid/ind.cora.graph", {}, 2708, 5278),
        ("planetoid/ind.citeseer.graph", {}, 3327, 4676),
    ],
)
def test_graphs(
    shared_data: Path, path: str, options: dict[str, Any], nodes: int, edges: int
) -> None:
    assert count(open_source(shared_data / path, **options)) == ({"train": edges}, nodes)


def pairs(source: Source) -> np.ndarray[Any, Any]:
    chunks = [chunk for chunk in source.chunks() if isinstance(chunk, EdgeChunk)]
    return np.concatenate([np.stack([chunk.src, chunk.dst]) for chunk in chunks], axis=1)


def test_collaborations_without_twins_and_loops(shared_data: Path) -> None:
    found = np.sort(pairs(open_source(shared_data / "ca-GrQc/ca-GrQc.txt", skip=1)), axis=0)
    distinct = np.unique(found, axis=1)
    loops = int((distinct[0] == distinct[1]).sum())
    assert (distinct.shape[1], loops) == (14_496, 12)


def test_autonomous_systems_behind_header_and_without_last_line(
    shared_data: Path, tmp_path: Path
) -> None:
    lines = (shared_data / "oregon1/oregon1_010331.txt").read_text().splitlines()
    assert lines[-1] == "-1"
    path = tmp_path / "oregon1.txt"
    path.write_text("\n".join(lines[:-1]))
    found = np.sort(pairs(open_source(path, skip=1)), axis=0)
    assert np.unique(found, axis=1).shape[1] == 22_002
    assert len(np.unique(found)) == 10_670


def test_messages_between_the_same_people_count_once_when_static(shared_data: Path) -> None:
    path = shared_data / "CollegeMsg/CollegeMsg.txt"
    found = pairs(open_source(path, format="csv", separator=" "))
    assert np.unique(found, axis=1).shape[1] == 20_296


@pytest.mark.parametrize(
    ("path", "nodes", "edges", "relations"),
    [
        ("codex-s", 2034, (32_888, 1827, 1828), 42),
        ("wn18rr", 40_943, (86_835, 3034, 3134), 11),
        ("umls", 135, (5216, 652, 661), 46),
        ("kinships", 104, (8544, 1068, 1074), 25),
        ("nations", 14, (1592, 199, 201), 55),
        ("fb15k237-text/FB15k-237.tar.gz", 14_541, (272_115, 17_535, 20_466), 237),
    ],
)
def test_knowledge_graphs(
    shared_data: Path, path: str, nodes: int, edges: tuple[int, int, int], relations: int
) -> None:
    source = open_source(shared_data / path)
    found, num_nodes = count(source)
    assert num_nodes == nodes
    assert found == dict(zip(("train", "valid", "test"), edges, strict=True))
    names: set[str] = set()
    for chunk in open_source(shared_data / path).chunks():
        assert isinstance(chunk, EdgeChunk)
        names.update(chunk.columns["relation"].dictionary.to_pylist())
    assert len(names) == relations


@pytest.mark.parametrize(
    ("name", "classes", "words", "splits", "unlabeled"),
    [
        ("cora", 7, 1433, {"train": 140, "valid": 500, "test": 1000, None: 1068}, 0),
        ("citeseer", 6, 3703, {"train": 120, "valid": 500, "test": 1000, None: 1707}, 15),
    ],
)
def test_citation_graphs(
    shared_data: Path,
    name: str,
    classes: int,
    words: int,
    splits: dict[str | None, int],
    unlabeled: int,
) -> None:
    source = open_source(shared_data / f"planetoid/ind.{name}.graph")
    assert not source.is_directed
    nodes = next(iter(source.chunks()))
    assert isinstance(nodes, NodeChunk)
    x = nodes.features["x"]
    assert x.dtype == np.float32
    assert x.shape == (len(nodes.ids), words)
    labels = nodes.columns["label"]
    assert labels.null_count == unlabeled
    assert len(pc.unique(labels.drop_null())) == classes
    assert Counter(nodes.columns["split"].to_pylist()) == splits
    empty = np.flatnonzero(labels.is_null().to_numpy(zero_copy_only=False))
    assert not x[empty].any()


def test_a_folder_with_several_citation_graphs_is_refused(shared_data: Path) -> None:
    with pytest.raises(
        ValueError, match="holds 3 citation graphs, expected one; name the file"
    ):
        open_source(shared_data / "planetoid")


@pytest.mark.parametrize(
    ("name", "graphs", "nodes", "entries", "tags"),
    [
        ("PTC", 344, 8792, 17_862, 19),
        ("PROTEINS", 1113, 43_471, 162_088, 3),
        ("IMDBBINARY", 1000, 19_773, 193_062, 1),
    ],
)
def test_sets_of_small_graphs(
    shared_data: Path, name: str, graphs: int, nodes: int, entries: int, tags: int
) -> None:
    source = open_source(shared_data / f"tud-graphclass/{name}/{name}.txt", format="gin")
    of_graphs, of_nodes, edges = source.chunks()
    assert isinstance(of_graphs, NodeChunk)
    assert isinstance(of_nodes, NodeChunk)
    assert isinstance(edges, EdgeChunk)
    assert (len(of_graphs.ids), len(of_nodes.ids)) == (graphs, nodes)
    assert 2 * len(edges.src) == entries
    assert len(np.unique(of_nodes.columns["tag"])) == tags
    assert set(of_graphs.columns["label"].tolist()) == {0, 1}


def test_a_copy_of_mutag_with_a_damaged_graph_is_told(shared_data: Path) -> None:
    """7,442 entries are published; this copy's first graph was edited."""
    path = shared_data / "tud-graphclass/MUTAG/MUTAG.txt"
    with pytest.warns(UserWarning, match="16 edges are listed at one of their ends alone"):
        of_graphs, of_nodes, edges = open_source(path, format="gin").chunks()
    assert isinstance(of_graphs, NodeChunk)
    assert isinstance(of_nodes, NodeChunk)
    assert isinstance(edges, EdgeChunk)
    assert (len(of_graphs.ids), len(of_nodes.ids), len(edges.src)) == (188, 3371, 3727)
    within = of_nodes.columns["graph_id"][edges.src] > 0
    assert np.count_nonzero(within) == 3721 - 27  # the others are as published
