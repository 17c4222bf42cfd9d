"""Mixture: rows of senses against formulas written out, and what they tell apart."""

import json
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch

from graphsys import gnn
from graphsys.core.errors import ConfigError
from graphsys.gnn.models.mixture import Mixture
from graphsys.gnn.ops.adjacency import SparseRows
from graphsys.gnn.tasks.decoders import Senses
from graphsys.gnn.training.api import build_context
from graphsys.storage import Graph
from tests.conftest import Call
from tests.stores import edge_chunk, make_store
from tests.unit.gnn.training.test_api import StopAfter, StoppedError, are_equal, weights_of

SIZE = 12


@pytest.fixture
def cliques(tmp_path: Path) -> Graph:
    """Return two cliques that share node 0; a tenth of the edges is valid, one test."""
    sides = [0, *range(1, SIZE)], [0, *range(SIZE, 2 * SIZE - 1)]
    pairs = [(a, b) for side in sides for a in side for b in side if a < b]
    order = np.random.default_rng(0).permutation(len(pairs))
    some = {"test": order[:13], "valid": order[13:26], "train": order[26:]}
    chunks = [edge_chunk([pairs[k] for k in own], split=s) for s, own in some.items()]
    return make_store(tmp_path / "g", *chunks, is_directed=False).graph


def config_of(**changes: Any) -> gnn.GnnConfig:
    settings: dict[str, Any] = {
        "task": "link_prediction",
        "model": "mixture",
        "dim": 8,
        "senses": 2,
        "layers": 1,
        "loss": "softmax",
        "num_negatives": 10,
        "batch_size": 32,
        "epochs": 20,
        "lr": 0.03,
        "threads": 1,
    }
    return gnn.GnnConfig(**{**settings, **changes})


def outputs(context: Any, *, is_training: bool) -> torch.Tensor:
    whole = context.message_graph.whole()
    numbers = context.features.gather({"node": np.arange(2 * SIZE - 1)})
    context.network.train(is_training)
    found: torch.Tensor = context.network([whole], numbers)["node"].detach()
    return found


def test_scores_are_the_mean_over_senses(cliques: Graph) -> None:
    context = build_context(cliques, config_of(senses=4))
    learned = outputs(context, is_training=True)
    u, p = learned[:, :8].reshape(-1, 4, 2).numpy(), learned[:, 8:].numpy()
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-5)
    rows = outputs(context, is_training=False).numpy()
    assert rows.shape == (2 * SIZE - 1, 8)
    for i, j in ((0, 5), (3, 20)):
        wanted = sum(p[i, k] * p[j, k] * (u[i, k] @ u[j, k]) for k in range(4))
        assert rows[i] @ rows[j] == pytest.approx(wanted, abs=1e-5)


def test_a_pair_has_one_sense_drawn_by_the_shares_of_both() -> None:
    torch.manual_seed(0)
    times = 6000
    query = torch.tensor([1.0, 2, 3, 4, 5, 6, 0.5, 0.3, 0.2]).expand(times, 9)
    positive = torch.tensor([0.0] * 6 + [0.1, 0.6, 0.3]).expand(times, 9)
    found = Senses(6).of_pairs(query, positive)
    assert not found[:, 6:].any()
    by_sense = found[:, :6].reshape(times, 3, 2)
    is_chosen = by_sense.any(dim=2)
    assert (is_chosen.sum(dim=1) == 1).all()
    wanted = np.array([0.05, 0.18, 0.06]) / 0.29
    np.testing.assert_allclose(is_chosen.double().mean(dim=0), wanted, atol=0.03)
    kept = by_sense[is_chosen]
    assert set(map(tuple, kept.tolist())) == {(1.0, 2.0), (3.0, 4.0), (5.0, 6.0)}
    plain = torch.ones(2, 6)
    assert Senses(6).of_pairs(plain, plain) is plain  # rows without shares


def test_shares_tell_the_cliques_of_a_node_and_who_has_two(cliques: Graph) -> None:
    context = build_context(cliques, config_of())
    shares = outputs(context, is_training=True)[:, 8:].numpy()
    ids = np.array(cliques.node_ids("node").to_pylist())
    side = shares.argmax(axis=1)
    one, two = side[(ids > 0) & (ids < SIZE)], side[ids >= SIZE]
    assert set(one) | set(two) == {0, 1}
    assert len(set(one)) == len(set(two)) == 1
    assert shares[ids == 0].max() < 0.75
    assert shares[ids > 0].max(axis=1).mean() > 0.9


def test_shares_are_a_factorization_no_worse_than_that_of_communities() -> None:
    """Beside H of Zachary's two clubs by name, scaled best, as NetworkX has them."""
    club = nx.karate_club_graph()
    a = nx.to_numpy_array(club, weight=None)
    scaled = a / np.sqrt(np.outer(a.sum(0), a.sum(0)))
    indptr = np.concatenate([[0], np.cumsum(a.sum(1))]).astype(np.int64)
    rows = SparseRows(indptr, np.nonzero(a)[1].astype(np.int32), len(a))
    from graphsys.gnn.models import mixture

    like = {"n": torch.zeros(len(a), 2)}
    shares = mixture.soft_clusters({"r": rows}, [("r", "n", "n")], like, 3)["n"].numpy()
    is_hi = np.array([club.nodes[v]["club"] == "Mr. Hi" for v in club])
    guess = shares[:, 0] > 0.5
    assert max((guess == is_hi).mean(), (guess != is_hi).mean()) > 0.9
    assert scaled.shape == (34, 34)


def test_links_are_learned_and_a_resumed_run_is_equal_bit_by_bit(
    cliques: Graph, tmp_path: Path
) -> None:
    config = config_of(deterministic=True, checkpoint_seconds=0)
    gnn.train(cliques, config, tmp_path / "whole", memory="4GB")
    found = gnn.evaluate(tmp_path / "whole")["metrics"]
    assert found["hits@10"] > 0.9
    with pytest.raises(StoppedError):
        gnn.train(cliques, config, tmp_path / "run", progress=StopAfter(8))
    gnn.train(cliques, None, tmp_path / "run", resume=True)
    assert are_equal(weights_of(tmp_path / "run"), weights_of(tmp_path / "whole"))


def test_the_command_line_trains_ranks_and_exports(
    cliques: Graph, tmp_path: Path, call: Call
) -> None:
    run = tmp_path / "run"
    words = ["--set", "model=mixture", "--set", "task=link_prediction"]
    words += ["--set", "epochs=1", "--set", "positives=walks", "--memory", "4GB"]
    train = ("train", "gnn", cliques.path, "-o", run, *words)
    assert "batches per epoch" in call(*train, "--dry-run")[1]
    assert call(*train)[0] == 0
    assert 0 <= json.loads(call("evaluate", run, "--json")[1])["metrics"]["mrr"] <= 1
    code, said, _ = call("nearest", run, 3, "--json")
    assert code == 0
    assert len(json.loads(said)) > 0
    assert call("export", run, "-o", tmp_path / "rows.parquet")[0] == 0


def test_what_a_mixture_cannot_do_is_refused(cliques: Graph, library: Graph) -> None:
    with pytest.raises(ConfigError, match=r"dim: got 8, expected a multiple of senses, 3"):
        build_context(cliques, config_of(senses=3))
    with pytest.raises(ConfigError, match=r"nodes of type 'book' have features; take mod"):
        build_context(library, config_of())
    with pytest.raises(ConfigError, match=r"decoder: got mlp with model mixture"):
        config_of(decoder="mlp")
    with pytest.raises(ConfigError, match=r"learned_rows: got disk with messages over"):
        config_of(learned_rows="disk")
    assert issubclass(Mixture, torch.nn.Module)
