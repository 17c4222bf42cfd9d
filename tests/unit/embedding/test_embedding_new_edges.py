"""Which edges are new, against sets of triples of ids."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.core.errors import ConfigError
from graphsys.embedding.data.id_join import match_ids
from graphsys.embedding.training.incremental import KnownEdges
from graphsys.storage import Graph
from tests.unit.embedding.triple_graphs import TRIPLE, Triples, read_triples, write


def origins(graph: Graph, old: Graph) -> list[Any]:
    """Return for every partition the numbers of its nodes in another graph."""
    result = []
    for part in range(graph.num_partitions("entity")):
        origin = np.full(int(np.diff(graph.offsets("entity"))[part]), -1, dtype=np.int64)
        for match in match_ids(graph, old, "entity", part):
            origin[match.here] = match.there + old.offsets("entity")[match.part]
        result.append(origin)
    return result


def new_triples(graph: Graph, old: Graph) -> list[tuple[Any, str, Any]]:
    """Return the new edges as sorted triples of ids."""
    origin, ids = origins(graph, old), graph.node_ids("entity").to_pylist()
    earlier = KnownEdges(graph, TRIPLE, "train", old)
    names = graph.relations(TRIPLE) or [""]
    offsets, result = graph.offsets("entity"), []
    for i, j in graph.buckets(TRIPLE):
        bucket = graph.bucket(TRIPLE, i, j)
        for row in earlier.new_rows(bucket, origin[i], origin[j]):
            name = names[bucket.relation[row] if bucket.relation is not None else 0]
            ends = bucket.src[row] + offsets[i], bucket.dst[row] + offsets[j]
            result.append((ids[ends[0]], name, ids[ends[1]]))
    return sorted(result)


def random_triples(
    rng: np.random.Generator, count: int, nodes: range, relations: list[str]
) -> list[tuple[int, str, int]]:
    ends = rng.integers(nodes.start, nodes.stop, size=(count, 2)).tolist()
    return [(a, str(rng.choice(relations)), b) for a, b in ends]


@pytest.mark.parametrize(("now", "before"), [(1, 1), (3, 2), (2, 5)])
def test_new_edges_are_those_whose_triple_the_old_graph_lacks(
    tmp_path: Path, rng: np.random.Generator, now: int, before: int
) -> None:
    old = random_triples(rng, 300, range(40), ["a", "b", "c"])
    more = random_triples(rng, 120, range(25, 60), ["b", "c", "d"])
    graph = write(tmp_path / "new", old[50:] + more, partitions=now)
    earlier = write(tmp_path / "old", old, partitions=before)
    known = set(old)
    expected = sorted(t for t in old[50:] + more if t not in known)
    assert new_triples(graph, earlier) == expected


def test_new_edges_of_a_real_graph(shared_data: Path, tmp_path: Path) -> None:
    triples = read_triples(shared_data / "umls", "train")
    old, known = triples[:4000], set(triples[:4000])
    graph = write(tmp_path / "new", triples, partitions=3)
    earlier = write(tmp_path / "old", old, partitions=2)
    assert new_triples(graph, earlier) == sorted(t for t in triples if t not in known)


def test_undirected_edges_are_the_same_in_either_direction(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    ends = rng.integers(0, 30, size=(200, 2)).tolist()
    old: Triples = [(a, None, b) for a, b in ends[:150]]
    now: Triples = [(b, None, a) for a, b in ends]
    graph = write(tmp_path / "new", now, partitions=3, directed=False)
    earlier = write(tmp_path / "old", old, partitions=2, directed=False)
    known = {frozenset((a, b)) for a, _, b in old}
    expected = sorted(sorted((a, b)) for a, _, b in now if frozenset((a, b)) not in known)
    found = [sorted((a, b)) for a, _, b in new_triples(graph, earlier)]
    assert sorted(found) == expected


def test_all_edges_of_a_split_that_the_old_graph_lacks_are_new(tmp_path: Path) -> None:
    triples: Triples = [(0, "a", 1), (1, "a", 2)]
    graph = write(tmp_path / "new", triples)
    earlier = write(tmp_path / "old", {"train": triples, "other": triples})
    bucket, origin = graph.bucket(TRIPLE, 0, 0), origins(graph, earlier)[0]
    lookup = KnownEdges(graph, TRIPLE, "elsewhere", earlier)
    assert lookup.new_rows(bucket, origin, origin).tolist() == [0, 1]


@pytest.mark.parametrize(("now", "before"), [(1, 4), (4, 1), (3, 5)])
def test_nodes_are_matched_by_id_across_partitions(
    tmp_path: Path, rng: np.random.Generator, now: int, before: int
) -> None:
    old = random_triples(rng, 200, range(50), ["a"])
    new = random_triples(rng, 200, range(30, 80), ["a"])
    graph = write(tmp_path / "new", new, partitions=now)
    earlier = write(tmp_path / "old", old, partitions=before)
    ids = [g.node_ids("entity").to_pylist() for g in (graph, earlier)]
    found = {
        ids[0][k]: None if origin < 0 else ids[1][origin]
        for k, origin in enumerate(np.concatenate(origins(graph, earlier)).tolist())
    }
    known = set(ids[1])
    assert found == {name: name if name in known else None for name in ids[0]}


def test_texts_and_integers_as_ids_do_not_match(tmp_path: Path) -> None:
    graph = write(tmp_path / "new", [(0, "a", 1)])
    earlier = write(tmp_path / "old", [("0", "a", "1")])
    with pytest.raises(ConfigError, match=r"'entity' are integers in .*new and texts in"):
        list(match_ids(graph, earlier, "entity", 0))
