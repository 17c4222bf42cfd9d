"""Change prediction: kinds by hand, figures by hand, and nothing of the future."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import graphsys as gs
from graphsys.cli.main import main
from graphsys.core.errors import UnknownNameError
from graphsys.gnn.data.changes import changes_of
from graphsys.gnn.data.events import read_events
from graphsys.gnn.data.proximity import Proximity
from graphsys.gnn.tasks.change_prediction import measure_changes
from graphsys.gnn.training.api import build_context
from tests.unit.gnn.event_stores import Events, config_of, event_store, favorites

SMALL: Events = [(0, 1, 10), (2, 1, 20), (3, 4, 30), (0, 2, 40), (0, 3, 50), (4, 0, 60)]


def settings(model: str, **changes: Any) -> Any:
    """Return settings of the task for small streams."""
    return config_of(model, task="change_prediction", **changes)


def wide(num_events: int, size: int = 200) -> Events:
    """Return events of a ring so wide that links between strangers stay: one in five."""
    rng = np.random.default_rng(0)
    src = rng.integers(0, size, num_events)
    step = np.where(rng.random(num_events) < 0.8, 1, rng.integers(2, size, num_events))
    dst = (src + step) % size
    return list(zip(src.tolist(), dst.tolist(), range(num_events), strict=True))


def stream_of(path: Path, events: Events, **changes: Any) -> Any:
    """Return the events of a store, whose numbers are its ids."""
    with event_store(path, events, order="original") as graph:
        return read_events(graph, settings("recency", **changes))


def test_pairs_are_near_that_met_or_share_a_partner(tmp_path: Path) -> None:
    near = Proximity(stream_of(tmp_path / "g", SMALL))
    at_three = near.among_all(np.array([0, 3]), 3)  # 0-1, 2-1, 3-4
    assert at_three.tolist() == [
        [True, True, True, False, False],
        [False, False, False, True, True],
    ]
    src, dst = np.array([0, 0, 2, 3, 0]), np.array([1, 2, 1, 4, 3])
    assert near.of_pairs(src, dst, 3).tolist() == [True, True, True, True, False]
    assert near.of_pairs(src, dst, 1).tolist() == [True, False, False, False, False]
    assert near.of_pairs(src[:0], dst[:0], 1).tolist() == []
    # 0-3 met at 50: 0 and 4 then share 3
    pair = np.array([0]), np.array([4])
    assert not near.of_pairs(*pair, 4)[0]
    assert near.of_pairs(*pair, 5)[0]
    assert near.meetings(np.array([1, 0]), 4).tolist() == [
        [1, 0, 1, 0, 0],
        [0, 1, 1, 0, 0],
    ]


def test_of_two_node_types_three_hops_are_near(tmp_path: Path) -> None:
    src, dst = ["a", "b", "b", "c"], ["x", "x", "y", "z"]
    table = {"src": src, "dst": dst, "time": [1, 2, 3, 4]}
    edges = {("user", "likes", "item"): table}
    with gs.ingest(out=tmp_path / "g", edges=edges).graph as graph:
        events = read_events(graph, settings("recency"))
        user, item = graph.lookup("user", ["a", "c"]), graph.lookup("item", ["y", "z"])
    near = Proximity(events)
    src_, dst_ = user.astype(np.int64)[[0, 0]], item.astype(np.int64) + events.first_dst
    assert near.of_pairs(src_, dst_, 4).tolist() == [True, False]  # a, x, b, y
    found = near.among_all(user[:1].astype(np.int64), 4)[0]
    assert found[item.astype(np.int64)].tolist() == [True, False]
    assert found.shape == (3,)


def test_every_link_has_a_pair_of_its_kind_beside_it(tmp_path: Path) -> None:
    events = stream_of(tmp_path / "g", favorites())
    near = Proximity(events)
    found = changes_of(events, near, 60, 120, seed=1)
    half = len(found.src) // 2
    links = set(zip(events.src[60:120].tolist(), events.dst[60:120].tolist(), strict=True))
    pairs = list(zip(found.src.tolist(), found.dst.tolist(), strict=True))
    assert found.is_link.tolist() == [True] * half + [False] * half
    assert set(pairs[:half]) <= links
    assert not set(pairs[half:]) & links
    assert half > 20
    assert 0 < found.is_burst.sum() < len(pairs)
    assert np.array_equal(found.src[:half], found.src[half:])
    assert np.array_equal(found.is_burst[:half], found.is_burst[half:])
    assert np.array_equal(found.is_burst, ~near.of_pairs(found.src, found.dst, 60))
    assert (found.src != found.dst).all()
    again = changes_of(events, near, 60, 120, seed=1)
    assert np.array_equal(again.dst, found.dst)
    assert not np.array_equal(changes_of(events, near, 60, 120, seed=2).dst, found.dst)


def test_figures_are_those_of_thresholds_chosen_on_valid(tmp_path: Path) -> None:
    """A scorer that knows the answers has 1; one that says the same of all, chance."""
    events, config = stream_of(tmp_path / "g", wide(400)), settings("recency")
    ends = dict(events.batches(*events.spans["valid"], 20))
    ends |= events.batches(*events.spans["test"], 20)

    def knowing(src: Any, dst: Any, begin: int) -> Any:
        own = slice(begin, ends[begin])
        links = set(zip(events.src[own].tolist(), events.dst[own].tolist(), strict=True))
        pairs = zip(src.tolist(), dst.tolist(), strict=True)
        return np.array([float(pair in links) for pair in pairs])

    best = measure_changes(events, config, "test", knowing)
    for kind in ("normal", "burst"):
        assert {best[kind][n] for n in ("f1_micro", "f1_macro", "roc_auc")} == {1.0}
        assert best[kind]["threshold"] == 0.5
    assert best["all"] == {"f1_micro": 1.0, "f1_macro": 1.0}
    assert best["threshold_split"] == "valid"
    assert best["num_snapshots"] == 3
    same = measure_changes(events, config, "test", lambda s, d, b: np.zeros(len(s)))
    assert same["normal"]["f1_micro"] == same["normal"]["roc_auc"] == 0.5
    with pytest.raises(UnknownNameError, match="unknown split 'later'"):
        measure_changes(events, config, "later", knowing)


def test_kinds_that_do_not_occur_have_no_figures(tmp_path: Path) -> None:
    ring = [(k % 4, (k + 1) % 4, k) for k in range(80)]  # all that is left is near
    events = stream_of(tmp_path / "g", ring + [(0, 2, 100 + k) for k in range(4)])
    found = measure_changes(
        events, settings("recency"), "test", lambda s, d, b: np.zeros(len(s))
    )
    assert found["burst"] is None
    assert np.isfinite(found["roc_auc"])


def test_without_pairs_there_are_no_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of two nodes that meet again and again no other pair is near as well."""
    with event_store(tmp_path / "g", [(0, 1, k) for k in range(80)]) as graph:
        report = gs.gnn.train(graph, settings("recency"), tmp_path / "run")
    assert "valid_roc_auc" not in report.metrics
    found = gs.gnn.evaluate(tmp_path / "run", split="test")["metrics"]
    assert (found["roc_auc"], found["normal"], found["burst"]) == (None, None, None)
    assert main(["evaluate", str(tmp_path / "run"), "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["metrics"]["roc_auc"] is None
    assert "note: roc_auc, normal, burst: nothing of split 'test' says it" in said.err
    assert main(["evaluate", str(tmp_path / "run")]) == 0
    assert re.search(r"^roc auc +-$", capsys.readouterr().out, re.MULTILINE)


def test_without_a_threshold_there_is_no_f1(tmp_path: Path) -> None:
    """Bursts of test cannot be told from others by a threshold that valid has not."""
    ring = [(k % 4, (k + 1) % 4, k) for k in range(70)]
    more = [(4 + k, 20 - k, 70 + k) for k in range(8)]
    events = stream_of(tmp_path / "g", ring + more)
    found = measure_changes(
        events, settings("recency"), "test", lambda s, d, b: np.arange(len(s)) / 1
    )
    burst = found["burst"]
    assert burst["num_links"] > 0
    assert 0 <= burst["roc_auc"] <= 1
    assert [burst[name] for name in ("threshold", "f1_micro", "f1_macro")] == [None] * 3


@pytest.mark.parametrize("model", ["evolving", "sage", "recency"])
def test_a_planted_edge_of_the_future_does_not_help(model: str, tmp_path: Path) -> None:
    """Valid is told alike whether its links come again in the time after, or others do."""
    events, found = favorites(120), []
    valid = events[84:102]
    planted = [(s, d, events[102][2] + k) for k, (s, d, _) in enumerate(valid)]
    for k, later in enumerate((events[102:], planted)):
        with event_store(tmp_path / f"g{k}", events[:102] + later, partitions=2) as graph:
            gs.gnn.train(graph, settings(model), tmp_path / f"run{k}")
        result = gs.gnn.evaluate(tmp_path / f"run{k}", split="valid")["metrics"]
        assert result["normal"]["num_links"] + result["burst"]["num_links"] >= 10
        found.append(result)
    assert found[0] == found[1]


def test_a_planted_edge_of_the_past_helps(tmp_path: Path) -> None:
    """The check above can fail: the same edges planted before valid are told by recency."""
    events, found = favorites(120), {}
    valid = [(s, d, events[83][2]) for s, d, _ in events[84:102]]
    for name, extra in (("alone", []), ("planted", valid)):
        total = 120 + len(extra)
        config = settings("recency", valid_share=18 / total, test_share=18 / total)
        with event_store(tmp_path / name, events[:84] + extra + events[84:]) as graph:
            task: Any = build_context(graph, config).task
        found[name] = task.measure("valid", None)["all"]["f1_micro"]
    assert found["planted"] == 1.0 > found["alone"]


def test_a_ring_is_learned_and_rows_have_both_kinds(tmp_path: Path) -> None:
    with event_store(tmp_path / "g", wide(800, 60)) as graph:
        config = settings("evolving", epochs=4, batch_size=40)
        gs.gnn.train(graph, config, tmp_path / "run")
    metrics = gs.gnn.evaluate(tmp_path / "run")["metrics"]
    assert metrics["normal"]["roc_auc"] > 0.7  # four links in five are the ring's
    rows = gs.gnn.predict(tmp_path / "run", [3])
    assert len(rows.column("embedding")[0]) == 2 * 16


def test_normal_and_burst_links_move_a_state_each_by_its_own_weights(
    tmp_path: Path,
) -> None:
    with event_store(tmp_path / "g", favorites(120)) as graph:
        stream: Any = build_context(graph, settings("evolving")).task.decoder
    stream.eval()
    stream.advance(80)  # the last snapshot has both kinds
    normal, burst = stream._links(60, 80)
    assert normal.shape[1] > 0
    assert burst.shape[1] > 0
    assert normal.shape[1] + burst.shape[1] == 40
    with torch.no_grad():
        before = stream._states()
        for kind in range(2):
            weight = stream.convolutions[0].of_kind[kind].weight
            kept = weight.clone()
            weight.zero_()
            assert not torch.equal(stream._states(), before)
            weight.copy_(kept)


def test_draws_and_their_divergence_are_of_training_alone(tmp_path: Path) -> None:
    with event_store(tmp_path / "g", favorites(120)) as graph:
        context = build_context(graph, settings("evolving", kl_weight=0.5))
    task, network = context.task, context.network
    seeds: Any = task.seeds(0)
    network([], {"events": seeds[0]})
    found = network([], {"events": seeds[1]})
    assert found["penalty"].item() > 0
    stream: Any = task.decoder
    stream.train()
    one, two = (stream._rows()[0][0] for _ in range(2))
    assert not torch.equal(one, two)
    stream.eval()
    one, two = (stream._rows()[0][1] for _ in range(2))
    assert torch.equal(one, two)
