"""Signed edges: the sign of a weight as a relation, and what embeddings learn of it."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import mannwhitneyu

import graphsys as gs
from graphsys.core.errors import InputError
from graphsys.datasets import ingest
from tests.conftest import Run

SIZE = 120
NAMES = ["positive", "negative"]


def edges_of(graph: Any) -> set[tuple[int, int, str, float]]:
    """Return (src, dst, relation, weight) of all edges."""
    found = [it for table in graph.edge_chunks() for it in table.to_pylist()]
    return {(it["src"], it["dst"], it["relation"], it["weight"]) for it in found}


def test_the_sign_is_the_relation_and_the_size_the_weight(tmp_path: Path) -> None:
    (tmp_path / "trust.csv").write_text("src,dst,weight\n1,2,4\n2,3,-10\n3,1,0.5\n")
    graph = ingest(tmp_path / "trust.csv", tmp_path / "g", signed=True).graph
    assert sorted(graph.relations(graph.edge_types[0]) or []) == sorted(NAMES)
    expected = {(1, 2, "positive", 4.0), (2, 3, "negative", 10.0), (3, 1, "positive", 0.5)}
    assert edges_of(gs.open(tmp_path / "g")) == expected


def test_pairs_of_both_signs_stay_two_edges(tmp_path: Path) -> None:
    given = {"src": [1, 1, 1], "dst": [2, 2, 2], "weight": [1, -1, 3]}
    made = ingest(given, tmp_path / "g", signed=True, coalesce=True)
    expected = {(1, 2, "positive", 4.0), (1, 2, "negative", 1.0)}
    assert edges_of(gs.open(made.graph.path)) == expected


def test_the_smallest_integer_has_a_size(tmp_path: Path) -> None:
    weight = np.array([np.iinfo(np.int8).min, 1], dtype=np.int8)
    given = {"src": [1, 2], "dst": [2, 1], "weight": weight}
    ingest(given, tmp_path / "g", signed=True)
    assert (1, 2, "negative", 128.0) in edges_of(gs.open(tmp_path / "g"))


def test_what_is_appended_has_signs_too(tmp_path: Path, run_cli: Run) -> None:
    (tmp_path / "trust.csv").write_text("src,dst,weight\n1,2,4\n2,3,-10\n")
    ingest(tmp_path / "trust.csv", tmp_path / "g", signed=True)
    (tmp_path / "new.csv").write_text("src,dst,weight\n3,1,-2\n1,2,-1\n")
    done = run_cli("append", "g", "new.csv", cwd=tmp_path)
    assert done.returncode == 2  # weights are no relations
    done = run_cli("append", "g", "new.csv", "--signed", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert edges_of(gs.open(tmp_path / "g")) == {
        (1, 2, "positive", 4.0),
        (2, 3, "negative", 10.0),
        (3, 1, "negative", 2.0),
        (1, 2, "negative", 1.0),
    }
    with gs.open(tmp_path / "g") as graph:
        graph.append({"src": [2], "dst": [1], "weight": [7.0]}, signed=True)
    assert (2, 1, "positive", 7.0) in edges_of(gs.open(tmp_path / "g"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("src,dst\n1,2\n", "--signed, but edges have no column weight; say which it is"),
        ("src,dst,weight\n1,2,3\n7,8,0\n", "the edge from 7 to 8 has weight 0, which"),
        ("src,dst,relation,weight\n1,2,a,3\n", "--signed, but edges have relations"),
        ("src,dst,weight\n1,2,nan\n", "weight"),
    ],
)
def test_what_has_no_sign_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "edges.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        ingest(tmp_path / "edges.csv", tmp_path / "g", signed=True)
    assert not (tmp_path / "g").exists()


def camps(folder: Path) -> Path:
    """Write friends within two camps and foes across them; one sign in ten is wrong."""
    rng = np.random.default_rng(5)
    camp = rng.integers(0, 2, SIZE)
    ends = rng.integers(0, SIZE, (3000, 2))
    ends = np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0)
    sign = np.where(camp[ends[:, 0]] == camp[ends[:, 1]], 1, -1)
    sign[rng.random(len(sign)) < 0.1] *= -1
    lines = [f"{u},{v},{s}" for (u, v), s in zip(ends.tolist(), sign.tolist(), strict=True)]
    path = folder / "camps.csv"
    path.write_text("\n".join(["src,dst,weight", *lines]) + "\n")
    return path


def test_signs_of_held_out_edges_are_predicted(tmp_path: Path, run_cli: Run) -> None:
    """Nine of ten signs follow the camps, so that .9 is about the most there is."""
    graph, run = tmp_path / "g", tmp_path / "run"
    words = ("ingest", camps(tmp_path), "-o", graph, "--signed", "--split", "0.9,0,0.1")
    done = run_cli(*words)
    assert done.returncode == 0, done.stderr
    settings: dict[str, Any] = {
        "dim": 16,
        "epochs": 30,
        "operator": "complex_diagonal",
        "operator_init": "random",
        "relation_prediction": 1.0,
        "num_uniform_negatives": 50,
        "deterministic": True,
    }
    config = gs.embedding.EmbeddingConfig(**settings)
    gs.embedding.train(gs.open(graph), config, run)
    test = pa.concat_tables(gs.open(graph).edge_chunks(split="test")).to_pydict()
    pairs = {"head": test["src"], "tail": test["dst"]}
    for_, against = (
        gs.embedding.score(run, {**pairs, "relation": [name] * len(test["src"])})
        for name in NAMES
    )
    is_positive = np.array(test["relation"]) == "positive"
    margin = for_ - against
    wins = mannwhitneyu(margin[is_positive], margin[~is_positive]).statistic
    auc = wins / (is_positive.sum() * (~is_positive).sum())
    assert auc > 0.75
    answers = run_cli(
        "predict", run, "--relation", "negative", "--top-k", 2, "-o", tmp_path / "foes.csv"
    )
    assert answers.returncode == 0, answers.stderr
