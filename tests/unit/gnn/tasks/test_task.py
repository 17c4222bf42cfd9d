"""Classification of nodes: seeds, loss and what is watched, against NumPy."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from graphsys.core.errors import ConfigError
from graphsys.gnn.data.loader import Batch
from graphsys.gnn.part_specs import TASKS
from graphsys.gnn.tasks.factory import make_task
from graphsys.gnn.tasks.link_prediction import LinkPrediction, Recommendation
from graphsys.gnn.tasks.regression import NodeRegression
from graphsys.gnn.tasks.task import NodeClassification
from graphsys.metrics import roc_auc_of as roc_auc
from graphsys.storage import Graph
from tests.unit.gnn.conftest import NUM_NODES, Store
from tests.unit.gnn.tasks.test_link_prediction import config_of as link_config
from tests.unit.gnn.training.test_api import config_of

NODES = np.arange(NUM_NODES)
PART = NODES // 3 % 4  # 0 and 2 train, 1 is valid, 3 test
TWO = {"label": pa.array((NODES % 2).tolist())}
SEVERAL = [["a", "b"][: 1 + v % 2] + ["c"] * (v % 5 == 0) for v in NODES.tolist()]


def batch_of(nodes: Any, places: Any, number: int = 0) -> Batch:
    return Batch(
        number=number,
        seeds={"node": nodes},
        places={"node": torch.from_numpy(places)},
        hops=[],
        x={},
        num_edges=0,
    )


@pytest.mark.parametrize(("batch_size", "sizes"), [(10, [10, 10, 4]), (0, [24])])
def test_seeds_are_the_training_nodes_and_terms_are_counted(
    groups: Store, batch_size: int, sizes: list[int]
) -> None:
    found = make_task(groups(1), config_of(batch_size=batch_size))
    seeds = found.seeds(0)
    assert [len(part["node"]) for part in seeds] == sizes
    assert sorted(np.concatenate([part["node"] for part in seeds])) == sorted(
        NODES[PART % 2 == 0]
    )
    terms = [found.num_terms(batch_of(NODES[:1], NODES[:1], k)) for k in range(len(sizes))]
    assert terms == sizes
    if batch_size:
        assert found.seeds(1)[0]["node"].tolist() != seeds[0]["node"].tolist()
    assert found.trim is None
    assert found.decoder is None


def area_of(truth: Any, scores: Any) -> float:
    """Return how often a positive beats a negative, ties counting half."""
    gaps = scores[truth][:, None] - scores[~truth][None]
    return float(((gaps > 0) + 0.5 * (gaps == 0)).mean())


def outputs(num_classes: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(2).normal(size=(NUM_NODES, num_classes)))


def cross_entropy(rows: Any, classes: Any) -> float:
    chances = np.exp(rows) / np.exp(rows).sum(1, keepdims=True)
    return float(-np.log(chances[np.arange(len(rows)), classes]).mean())


def test_the_loss_of_a_batch_is_that_of_its_seeds(groups: Store) -> None:
    found = make_task(groups(1), config_of())
    rows, nodes, places = outputs(3), np.array([7, 1, 30]), np.array([2, 40, 5])
    loss = float(found.loss({"node": rows}, batch_of(nodes, places)))
    assert loss == pytest.approx(cross_entropy(rows.numpy()[places], nodes % 3))
    assert (found.metric, found.classes, found.num_out) == ("accuracy", [0, 1, 2], 3)


def watched(graph: Graph, rows: torch.Tensor, **changes: Any) -> tuple[str, Any]:
    found = make_task(graph, config_of(**changes))
    return found.metric, found.watch(lambda name, nodes: rows[nodes])


RARE = {"label": pa.array(np.where(NODES % 9 == 0, "rare", "often").tolist())}


def test_balanced_classes_count_alike_however_many_are_of_them(groups: Store) -> None:
    found = make_task(groups(1, columns=RARE), config_of(class_weights="balanced"))
    nodes = NODES[PART % 2 == 0]
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(len(nodes), 2))
    batch, given = batch_of(nodes, np.arange(len(nodes))), {"node": torch.from_numpy(rows)}
    target = (nodes % 9 == 0).astype(int)  # "often" is the first
    log = rows - np.log(np.exp(rows).sum(axis=1, keepdims=True))
    losses = -log[np.arange(len(nodes)), target]
    wanted = np.mean([losses[target == kind].mean() for kind in (0, 1)])
    assert float(found.loss(given, batch)) == pytest.approx(wanted, rel=1e-6)
    # halves add up to the whole: batches and processes share a step
    half = len(nodes) // 2
    parts = [
        float(found.loss(given, batch_of(nodes[part], np.arange(len(nodes))[part])))
        for part in (slice(None, half), slice(half, None))
    ]
    assert np.average(parts, weights=[half, len(nodes) - half]) == pytest.approx(wanted)
    plain = make_task(groups(1, columns=RARE), config_of())
    assert float(plain.loss(given, batch)) == pytest.approx(losses.mean(), rel=1e-6)

    def output(node_type: str, nodes: Any) -> torch.Tensor:
        assert node_type == "node"
        return torch.from_numpy(rows[: len(nodes)])

    assert found.watch(output) == plain.watch(output)


def test_of_several_classes_a_node_each_counts_alike(groups: Store) -> None:
    values = {"label": pa.array(SEVERAL)}
    found = make_task(groups(1, columns=values), config_of(class_weights="balanced"))
    nodes = NODES[PART % 2 == 0]
    truth = np.array([[c in SEVERAL[v] for c in "abc"] for v in nodes.tolist()])
    rows = np.random.default_rng(3).normal(size=truth.shape)
    given = {"node": torch.from_numpy(rows)}
    loss = float(found.loss(given, batch_of(nodes, np.arange(len(nodes)))))
    have = truth.sum(axis=0)
    weight = np.where(have < len(nodes), (len(nodes) - have) / have, 1.0)
    chance = 1 / (1 + np.exp(-rows))
    each = -(weight * truth * np.log(chance) + ~truth * np.log(1 - chance))
    assert loss == pytest.approx(each.mean(), rel=1e-5)


def test_smoothed_labels_are_spread_over_all_classes(groups: Store) -> None:
    found = make_task(groups(1), config_of(label_smoothing=0.3))
    assert isinstance(found, NodeClassification)
    nodes = NODES[PART % 2 == 0]
    rows = np.random.default_rng(3).normal(size=(len(nodes), len(found.classes)))
    given = {"node": torch.from_numpy(rows)}
    loss = float(found.loss(given, batch_of(nodes, np.arange(len(nodes)))))
    log = rows - np.log(np.exp(rows).sum(axis=1, keepdims=True))
    hot = np.eye(rows.shape[1])[found.labels.of(nodes)]
    smooth = 0.7 * hot + 0.3 / rows.shape[1]
    assert loss == pytest.approx(-(smooth * log).sum(axis=1).mean(), rel=1e-6)


def test_what_is_watched_of_several_classes_is_their_accuracy(groups: Store) -> None:
    rows = outputs(3)
    valid = NODES[PART == 1]
    metric, (loss, accuracy) = watched(groups(1), rows)
    assert metric == "accuracy"
    assert loss == pytest.approx(cross_entropy(rows.numpy()[valid], valid % 3))
    hits = rows.numpy()[valid].argmax(1) == valid % 3
    assert accuracy == pytest.approx(hits.mean())
    assert 0 < accuracy < 1


def test_what_is_watched_of_two_classes_is_the_area_under_their_curve(
    groups: Store,
) -> None:
    rows, valid = outputs(2), NODES[PART == 1]
    metric, (loss, area) = watched(groups(1, columns=TWO), rows)
    assert metric == "roc_auc"
    assert loss == pytest.approx(cross_entropy(rows.numpy()[valid], valid % 2))
    margin = rows.numpy()[valid] @ [-1, 1]
    assert area == pytest.approx(area_of(valid % 2 == 1, margin))
    assert area != pytest.approx(0.5)


def test_several_classes_a_node_are_told_one_by_one(groups: Store) -> None:
    graph, rows = groups(1, columns={"label": pa.array(SEVERAL)}), outputs(3)
    valid = NODES[PART == 1]
    target = np.array([[name in SEVERAL[v] for name in "abc"] for v in valid], float)
    scores = rows.numpy()[valid]
    metric, (loss, f1) = watched(graph, rows.float())
    assert metric == "f1_micro"
    each = np.logaddexp(0, scores) - target * scores
    assert loss == pytest.approx(each.mean(), rel=1e-5)
    hits = ((scores > 0) & (target > 0)).sum()
    assert f1 == pytest.approx(2 * hits / ((scores > 0).sum() + target.sum()))
    # nothing is there and nothing is said: no division by zero
    none = groups(1, columns={"label": pa.array([[]] * 46 + [["a"], ["b"]])})
    low = torch.full((NUM_NODES, 2), -1.0)
    _, (_, nothing) = watched(none, low)
    assert nothing == 0
    # one is there and is found, nothing else
    labels = [["a"] * (v == 3) for v in range(NUM_NODES - 1)] + [["b"]]
    one = groups(1, columns={"label": pa.array(labels)})
    high = low.clone()
    high[3, 0] = 1
    high[3, 1] = 0  # says nothing
    assert watched(one, high)[1][1] == 1


def test_answers_are_the_likeliest_class_or_all_above_one_half(groups: Store) -> None:
    rows = outputs(3).float().numpy()
    rows[0] = [0, 0, 2]
    found = make_task(groups(1), config_of()).answers(rows, None)
    chances = np.exp(rows) / np.exp(rows).sum(axis=1, keepdims=True)
    assert found["prediction"].to_pylist() == rows.argmax(axis=1).tolist()
    wanted = chances.max(axis=1).tolist()
    assert found["probability"].to_pylist() == pytest.approx(wanted, rel=1e-5)
    several = groups(1, columns={"label": pa.array(SEVERAL)})
    found = make_task(several, config_of()).answers(rows, None)
    likely = [["abc"[k] for k in np.flatnonzero(row > 0)] for row in rows]
    assert [] in likely  # a node may have none
    assert likely[0] == ["c"]  # one half is not enough
    assert found["prediction"].to_pylist() == likely
    sigmoid = 1 / (1 + np.exp(-rows))
    for own, row in zip(found["probability"].to_pylist(), sigmoid, strict=True):
        assert own == pytest.approx(row[row > 0.5].tolist(), rel=1e-5)


def test_a_split_is_measured_with_the_number_of_its_nodes(groups: Store) -> None:
    rows = outputs(3)
    found = make_task(groups(1), config_of()).measure("test", lambda _, nodes: rows[nodes])
    test = NODES[PART == 3]
    accuracy = (rows.numpy()[test].argmax(axis=1) == test % 3).mean()
    assert found["accuracy"] == pytest.approx(accuracy)
    assert found["num_nodes"] == len(test)


def test_nothing_is_watched_of_a_split_without_nodes(groups: Store) -> None:
    assert watched(groups(1), outputs(3), eval_split="nowhere")[1] is None


def test_ties_count_one_half_and_one_side_alone_tells_nothing() -> None:
    rng = np.random.default_rng(3)
    scores, truth = rng.integers(0, 5, 60).astype(float), rng.random(60) < 0.4
    assert roc_auc(scores, truth) == pytest.approx(area_of(truth, scores))
    assert np.isnan(roc_auc(scores, np.ones(60, bool)))
    assert np.isnan(roc_auc(scores, np.zeros(60, bool)))
    assert roc_auc(np.array([1.0, 0.0]), np.array([True, False])) == 1


def test_a_config_names_its_task(groups: Store, library: Graph) -> None:
    numbers = {"price": pa.array(NODES.astype(float).tolist())}
    regression = config_of(task="regression", label="price")
    found = make_task(groups(1, columns=numbers), regression)
    assert type(found) is NodeRegression
    assert type(make_task(groups(1), config_of())) is NodeClassification
    assert type(make_task(library, link_config())) is LinkPrediction
    recommended = link_config(task="recommendation")
    assert type(make_task(library, recommended)) is Recommendation


def test_classes_of_nodes_may_be_asked_at_times() -> None:
    assert TASKS.get("node_classification").has_times
    assert not TASKS.get("link_prediction").has_times


@pytest.mark.parametrize(
    "settings", [{"class_weights": "balanced"}, {"label_smoothing": 0.1}]
)
def test_what_concerns_classes_is_refused_where_there_are_none(settings: Any) -> None:
    told = "with task link_prediction, expected task .*node_classification"
    with pytest.raises(ConfigError, match=told):
        config_of(task="link_prediction", **settings)
