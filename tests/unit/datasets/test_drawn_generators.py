"""Generators: the same graph for any chunks and threads; the structure they promise."""

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graphsys.core.errors import ConfigError
from graphsys.datasets import generators, recipes
from graphsys.datasets.generators.draws import Draws, as_normals
from graphsys.storage.source import EdgeChunk, NodeChunk, Source

SMALL: dict[str, dict[str, Any]] = {
    "activity": {"num_people": 50, "num_messages": 3000},
    "communities": {"num_nodes": 700},
    "grid": {"rows": 20, "cols": 31},
    "ksat": {"num_variables": 90},
    "pins": {"num_pins": 500, "num_boards": 60, "held_out": 0.0},
    "planted": {"num_nodes": 500},
    "road": {"rows": 20, "cols": 31},
    "rules": {"num_people": 400, "num_towns": 30, "num_countries": 7},
    "uniform": {"num_nodes": 100, "num_edges": 3000, "weights": True},
}
KNOWN = {
    "activity": "b4236b6fcb26e102",
    "communities": "d1b42e985a5cd864",
    "grid": "d031ef4ed8e1d686",
    "ksat": "aba6d531821f41e0",
    "pins": "ebb04a28ad45090c",
    "planted": "e5fdecb140a68848",
    "road": "f64f6ca61824c6b6",
    "rules": "5d11400f9029c72a",
    "uniform": "86b321634b3c1f5f",
}


def columns(chunk: NodeChunk | EdgeChunk) -> dict[str, Any]:
    if isinstance(chunk, NodeChunk):
        return {"id": chunk.ids, **chunk.columns, **chunk.features}
    split = pa.array([chunk.split] * len(chunk.src))
    return {"src": chunk.src, "dst": chunk.dst, "split": split, **chunk.columns}


def tables(source: Source) -> dict[str, dict[str, list[Any]]]:
    """Return all rows by table and column; edges sorted, as splits come apart."""
    found: dict[str, dict[str, list[Any]]] = {}
    for chunk in source.chunks():
        key = chunk.node_type if isinstance(chunk, NodeChunk) else str(chunk.edge_type)
        table = found.setdefault(key, {})
        for name, values in columns(chunk).items():
            table.setdefault(name, []).extend(values.tolist())
    for key, table in found.items():
        if key.startswith("("):
            rows = sorted(zip(*table.values(), strict=True))
            table.update(zip(table, map(list, zip(*rows, strict=True)), strict=True))
    return found


def digest(found: dict[str, dict[str, list[Any]]]) -> str:
    return hashlib.sha256(repr(found).encode()).hexdigest()[:16]


def make(name: str, **options: Any) -> Source:
    source: Source = getattr(generators, name)(**{**SMALL[name], **options})
    return source


@pytest.mark.parametrize("name", SMALL)
def test_chunks_and_threads_do_not_change_the_graph(name: str) -> None:
    whole = tables(make(name))
    assert digest(whole) == KNOWN[name]
    assert tables(make(name, chunk_rows=97, num_threads=3)) == whole
    if name != "grid":
        assert digest(tables(make(name, seed=1))) != KNOWN[name]


def test_every_generator_has_a_card_with_its_parameters() -> None:
    made = {it for it in recipes.names() if recipes.show(it).kind == "generator"}
    assert made == set(SMALL) | {"demo", "rmat"}


def test_nearly_normal_draws() -> None:
    values = as_normals(Draws("x").words(200_000))
    np.testing.assert_allclose([values.mean(), values.std()], [0, 1], atol=0.01)


def test_planted_classes_show_in_edges_and_features() -> None:
    found = tables(make("planted", num_nodes=2000, noise=0.5))
    edges, nodes = found["(node, edge, node)"], found["node"]
    label, x = np.array(nodes["label"]), np.array(nodes["x"])
    src, dst = np.array(edges["src"]), np.array(edges["dst"])
    assert len(src) == 10_000
    np.testing.assert_allclose((label[src] == label[dst]).mean(), 0.8 + 0.2 / 8, atol=0.02)
    centers = np.stack([x[label == k].mean(axis=0) for k in range(8)])
    nearest = ((x[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == label).mean() > 0.99
    share = np.mean(np.array(nodes["split"]) == "train")
    assert 0.55 < share < 0.65


def test_communities_are_of_different_sizes_and_mix_as_told() -> None:
    found = tables(make("communities", num_nodes=5000, mixing=0.3))
    nodes, edges = found["node"], found["(node, edge, node)"]
    label = np.empty(5000, dtype=int)
    label[nodes["id"]] = nodes["label"]
    sizes = np.bincount(label)
    assert sorted(nodes["id"]) == list(range(5000))
    assert sizes.min() >= 20
    assert sizes.max() > 3 * np.median(sizes)
    src, dst = np.array(edges["src"]), np.array(edges["dst"])
    assert 0.68 < (label[src] == label[dst]).mean() < 0.76
    degrees = np.bincount(np.concatenate([src, dst]), minlength=5000)
    assert degrees.max() > 8 * degrees.mean()


def test_pins_on_a_board_share_topics_and_words() -> None:
    found = tables(make("pins", num_pins=2000, num_boards=300))
    topic = np.array(found["pin"]["label"])
    edges = found["(board, holds, pin)"]
    board, pin = np.array(edges["src"]), np.array(edges["dst"])
    assert len(board) == 300 * 50
    first = np.array(found["board"]["label"])
    assert 0.45 < (topic[pin] == first[board]).mean() < 0.65
    words = np.array(found["pin"]["text"])
    assert words.shape == (2000, 12)
    assert 0.65 < (words // 64 == topic[:, None]).mean() < 0.8


def test_a_pin_is_held_out_of_a_board_wherever_it_is_drawn() -> None:
    found = tables(make("pins", num_pins=500, num_boards=300, held_out=0.1))
    edges = found["(board, holds, pin)"]
    whole = tables(make("pins", num_pins=500, num_boards=300, held_out=0.0))
    assert sorted(zip(edges["src"], edges["dst"], strict=True)) == sorted(
        zip(*(whole["(board, holds, pin)"][end] for end in ("src", "dst")), strict=True)
    )
    split = np.array(edges["split"])
    for name, share in (("train", 0.8), ("valid", 0.1), ("test", 0.1)):
        assert abs((split == name).mean() - share) < 0.01
    by_edge: dict[tuple[int, int], set[str]] = {}
    for src, dst, name in zip(*edges.values(), strict=True):
        by_edge.setdefault((src, dst), set()).add(name)
    assert len(by_edge) < len(split)  # some are drawn twice
    assert {len(names) for names in by_edge.values()} == {1}


def test_pins_of_a_theme_share_boards_and_half_of_their_words() -> None:
    sizes = {"num_pins": 2000, "num_boards": 300, "num_topics": 25, "topics_per_theme": 10}
    found = tables(make("pins", **sizes))
    topic = np.array(found["pin"]["label"])
    edges = found["(board, holds, pin)"]
    board, pin = np.array(edges["src"]), np.array(edges["dst"])
    first = np.array(found["board"]["label"])
    is_own = topic[pin] == first[board]
    is_of_theme = topic[pin] // 10 == first[board] // 10
    assert 0.73 < is_own.mean() < 0.83
    assert 0.87 < is_of_theme.mean() < 0.97
    kind = np.array(found["pin"]["text"]) // 64  # a topic, or after those a theme
    assert 0.3 < (kind == topic[:, None]).mean() < 0.45
    assert 0.3 < (kind == 25 + topic[:, None] // 10).mean() < 0.4


def test_facts_follow_their_rules() -> None:
    edges = tables(make("rules"))["(entity, triple, entity)"]
    facts: dict[str, set[tuple[int, int]]] = {}
    for src, dst, relation in zip(
        edges["src"], edges["dst"], edges["relation"], strict=True
    ):
        facts.setdefault(relation, set()).add((src, dst))
    lives, lies = dict(facts["lives_in"]), dict(facts["lies_in"])
    assert {(b, a) for a, b in facts["lives_in"]} == facts["home_of"]
    assert facts["citizen_of"] == {(p, lies[town]) for p, town in lives.items()}
    assert {(b, a) for a, b in facts["married_to"]} == facts["married_to"]
    held = [
        relation
        for relation, split in zip(edges["relation"], edges["split"], strict=True)
        if split != "train"
    ]
    assert set(held) == {"home_of", "citizen_of", "married_to"}
    assert 0.02 < len(held) / len(edges["src"]) < 0.06


def test_grids_and_roads() -> None:
    edges = tables(make("grid", rows=3, cols=4))["(node, edge, node)"]
    pairs = set(zip(edges["src"], edges["dst"], strict=True))
    across = {(4 * r + c, 4 * r + c + 1) for r in range(3) for c in range(3)}
    down = {(4 * r + c, 4 * r + c + 4) for r in range(2) for c in range(4)}
    assert pairs == across | down
    found = tables(make("road", rows=64, cols=64, removed=0.2))
    weight = np.array(found["(node, edge, node)"]["weight"])
    assert 0.78 < len(weight) / (2 * 64 * 63) < 0.86
    assert (weight.min(), weight.max()) == (20, 120)
    assert found["node"]["y"][65] == 1


def test_messages_rise_in_time_and_repeat() -> None:
    source = make("activity", num_messages=5000)
    chunks = [it for it in source.chunks() if isinstance(it, EdgeChunk)]
    time = np.concatenate([it.columns["time"] for it in chunks])
    src = np.concatenate([it.src for it in chunks])
    dst = np.concatenate([it.dst for it in chunks])
    assert (np.diff(time) >= 0).all()
    hours = time % 86_400 // 3600
    assert (hours.min(), hours.max()) == (8, 23)
    assert (src != dst).all()
    assert len(np.unique(src * 50 + dst)) < 0.35 * len(src)
    assert np.bincount(src, minlength=50)[:5].sum() > 0.4 * len(src)


def test_clauses_have_different_variables_and_both_signs() -> None:
    source = make("ksat", num_variables=30, ratio=100.0, k=4)
    chunks = [it for it in source.chunks() if isinstance(it, EdgeChunk)]
    src, dst = (
        np.concatenate([getattr(it, name) for it in chunks]) for name in ("src", "dst")
    )
    weight = np.concatenate([it.columns["weight"] for it in chunks])
    assert np.array_equal(np.bincount(src), [0] * 30 + [4] * 3000)
    assert len(np.unique(src * 30 + dst)) == len(src)
    counts = np.bincount(dst, minlength=30)
    assert counts.min() > 320  # of 400 each, with a deviation of 19
    assert counts.max() < 480
    assert set(weight.tolist()) == {-1, 1}
    assert abs(int(weight.sum())) < 700


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("uniform", {"num_nodes": 0}, "uniform.num_nodes: got 0, expected an int of 1"),
        ("planted", {"homophily": 1.5}, "planted.homophily: got 1.5, expected a number"),
        ("planted", {"homophily": True}, "planted.homophily: got True"),
        ("communities", {"max_community": 3}, "communities.max_community: got 3"),
        ("pins", {"num_pins": 3}, "pins.num_pins: got 3, expected an int of 20"),
        ("pins", {"held_out": 0.5}, "pins.held_out: got 0.5, expected at most 0.4"),
        ("pins", {"topics_per_theme": 21}, "topics_per_theme: got 21, expected an int"),
        ("rules", {"num_people": 7}, "expected an even number of people"),
        ("grid", {"rows": 1, "cols": 1}, "got 1 x 1, expected 2 to"),
        ("road", {"removed": -1}, "road.removed: got -1"),
        ("ksat", {"num_variables": 2}, "ksat.k: got 3, expected an int of 1 to 2"),
        ("ksat", {"ratio": 0.0}, "ksat.ratio: got 0.0, expected a number above 0"),
        ("activity", {"num_days": 0}, "activity.num_days: got 0"),
    ],
)
def test_parameters_are_checked(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make(name, **options)
