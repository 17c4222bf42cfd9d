"""Generators: the same edges whatever the threads and chunks; known edges."""

import hashlib
from collections import Counter
from typing import Any

import numpy as np
import pytest

from graphsys.core.errors import ConfigError, UnknownNameError
from graphsys.datasets.generators import demo, rmat
from graphsys.kernels.cpu.rows.rmat import scramble_range
from graphsys.storage.source import EdgeChunk, NodeChunk


def edges(scale: int, edge_factor: int = 16, **options: Any) -> np.ndarray[Any, Any]:
    chunks = rmat(scale, edge_factor, **options).chunks()
    parts = [
        np.stack([c.src, c.dst, *c.columns.values()], axis=1)
        for c in chunks
        if isinstance(c, EdgeChunk)
    ]
    return np.concatenate(parts)


def digest(array: np.ndarray[Any, Any]) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def test_chunks_and_threads_do_not_change_the_edges() -> None:
    whole = edges(10, seed=3)
    assert whole.shape == (16 << 10, 2)
    for chunk_edges, threads in ((1 << 30, 1), (1000, 2), (77, 3)):
        found = edges(10, seed=3, chunk_edges=chunk_edges, num_threads=threads)
        np.testing.assert_array_equal(found, whole)


def test_seeds_and_variants_differ() -> None:
    assert digest(edges(8, seed=1)) != digest(edges(8, seed=2))
    whole = edges(8, weights=True)
    assert whole[:, 2].min() == 1
    assert whole[:, 2].max() == 255
    parts = edges(8, weights=True, variant="graph500")
    assert 0 <= parts[:, 2].min() < 0.01
    assert 0.99 < parts[:, 2].max() < 1
    np.testing.assert_array_equal(whole[:, :2], parts[:, :2])


def test_known_edges() -> None:
    """Committed values: another result on any machine is a bug."""
    assert edges(20, 1, seed=0)[:3].tolist() == KNOWN_FIRST
    assert digest(edges(12)) == KNOWN_12
    assert digest(edges(9, 3, seed=7, scramble=False, weights=True)) == KNOWN_9


def test_quadrants_have_their_probabilities() -> None:
    found = edges(16, 8, scramble=False, a=0.5, b=0.3, c=0.1)
    for level in range(16):
        u, v = (found[:, k] >> level & 1 for k in (0, 1))
        share = np.bincount(2 * u + v, minlength=4) / len(found)
        np.testing.assert_allclose(share, [0.5, 0.3, 0.1, 0.1], atol=0.004)


@pytest.mark.parametrize("scale", range(1, 13))
def test_scrambled_labels_are_a_permutation(scale: int) -> None:
    out = np.empty(1 << scale, dtype=np.int64)
    scramble_range(0, scale, np.uint64(12345), out)
    assert sorted(out) == list(range(1 << scale))


def test_isolated_nodes_are_listed_on_request() -> None:
    chunks = list(rmat(4, 1, isolated=True).chunks())
    nodes = [chunk.ids for chunk in chunks if isinstance(chunk, NodeChunk)]
    assert np.concatenate(nodes).tolist() == list(range(16))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": 0}, "rmat.scale: got 0, expected an int of 1 to 48"),
        ({"scale": 4, "edge_factor": 0}, "rmat.edge_factor: got 0"),
        (
            {"scale": 4, "a": 0.9, "b": 0.2},
            "expected probabilities that add up to at most 1",
        ),
    ],
)
def test_parameters_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        rmat(**options)
    with pytest.raises(
        UnknownNameError, match=r"unknown variant 'gapp'.*did you mean 'gap'"
    ):
        rmat(4, variant="gapp")


def collect(**options: Any) -> tuple[dict[str, set[tuple[str, str]]], Counter[str]]:
    found: dict[str, set[tuple[str, str]]] = {}
    count: Counter[str] = Counter()
    for chunk in demo(**options).chunks():
        if not isinstance(chunk, EdgeChunk):
            count[chunk.node_type] += len(chunk.ids)
            continue
        count[chunk.split] += len(chunk.src)
        src, dst = chunk.src.to_pylist(), chunk.dst.to_pylist()
        names = [chunk.edge_type.relation] * len(src)
        if "relation" in chunk.columns:
            names = chunk.columns["relation"].to_pylist()
        for name, *pair in zip(names, src, dst, strict=True):
            for key in (name, f"{name} {chunk.split}"):
                found.setdefault(key, set()).add((pair[0], pair[1]))
    return found, count


def test_the_demo_follows_its_rules() -> None:
    found, count = collect(num_users=400, num_categories=20, items_per_style=3)
    inverse = {(user, item) for item, user in found["bought_by"]}
    assert inverse == found["buys"]
    assert {(b, a) for a, b in found["friend"]} == found["friend"]
    category = dict(found["belongs_to"])
    composed = {(user, category[item]) for user, item in found["buys"]}
    assert composed == found["interested_in"]
    mutual = {(a, b) for a, b in found["follows"] if (b, a) in found["follows"]}
    assert len(mutual) < len(found["follows"]) / 4
    assert all(a != b for a, b in found["follows"] | found["friend"])
    assert 0.04 < (count["valid"] + count["test"]) / count["train"] < 0.07
    for name in ("buys", "friend", "follows", "interested_in"):
        assert not found[f"{name} train"] & found[f"{name} test"]


def test_the_demo_has_its_size_and_every_node_trains() -> None:
    found, count = collect()
    assert count == KNOWN_DEMO
    ends = {
        end
        for key, pairs in found.items()
        if key.endswith("train")
        for p in pairs
        for end in p
    }
    assert len(ends) == count["user"] + count["item"] + count["category"]


def test_the_demo_is_the_same_everywhere() -> None:
    found, _ = collect(num_users=400, num_categories=20, items_per_style=3)
    text = "\n".join(f"{key} {sorted(pairs)}" for key, pairs in sorted(found.items()))
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == KNOWN_DEMO_DIGEST


def test_demo_parameters_are_checked() -> None:
    with pytest.raises(ConfigError, match=r"demo.num_users: got 3, expected an int >= 160"):
        demo(num_users=3)


KNOWN_FIRST = [[758505, 650368], [102063, 914772], [484946, 49811]]
KNOWN_12 = "fa12298e70c7a2b6"
KNOWN_9 = "a4dd4793cb833f9a"
KNOWN_DEMO = {
    "user": 6400,
    "item": 5600,
    "category": 160,
    "train": 249789,
    "valid": 6480,
    "test": 6512,
}
KNOWN_DEMO_DIGEST = "4034f741e868529a"
