"""Edges as events: their order, which are held out, and stores that do not fit."""

from pathlib import Path

import numpy as np
import pytest

import graphsys as gs
from graphsys.core.errors import ConfigError
from graphsys.gnn.data.events import read_events, training_view
from graphsys.storage.ingest.split_spec import split_spec
from tests.unit.gnn.event_stores import config_of, event_store, favorites


def test_the_last_edges_are_held_out_in_order_of_time(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    events = [favorites()[k] for k in rng.permutation(480)]
    with event_store(tmp_path / "g", events, partitions=3) as graph:
        stream = read_events(graph, config_of("tgn"))
        ids = np.asarray(graph.node_ids("node").to_pylist())
    assert stream.spans == {"train": (0, 336), "valid": (336, 408), "test": (408, 480)}
    assert stream.time.tolist() == [10 * k for k in range(480)]
    pairs = list(zip(ids[stream.src].tolist(), ids[stream.dst].tolist(), strict=True))
    assert pairs == [(s, d) for s, d, _ in favorites()]


def test_edges_of_one_time_are_in_one_split_and_one_batch(tmp_path: Path) -> None:
    events = [(k % 5, 5 + k % 3, k // 4) for k in range(40)]
    with event_store(tmp_path / "g", events) as graph:
        stream = read_events(graph, config_of("tgn", valid_share=0.25, test_share=0.25))
    assert stream.spans == {"train": (0, 20), "valid": (20, 28), "test": (28, 40)}
    assert list(stream.batches(0, 20, 3)) == [(0, 4), (4, 8), (8, 12), (12, 16), (16, 20)]
    assert list(stream.batches(0, 10, 6)) == [(0, 8), (8, 10)]


def test_a_split_by_time_is_kept(tmp_path: Path) -> None:
    with event_store(
        tmp_path / "g", favorites(100), split=split_spec("0.5,0.2,0.3", by="time")
    ) as graph:
        stream = read_events(graph, config_of("tgn"))
    assert stream.spans == {"train": (0, 50), "valid": (50, 70), "test": (70, 100)}


def test_a_random_split_is_refused(tmp_path: Path) -> None:
    with (
        event_store(tmp_path / "g", favorites(100), split="0.5,0.2,0.3") as graph,
        pytest.raises(ConfigError, match=r"is not by time: an edge of .* `graphsys split"),
    ):
        read_events(graph, config_of("tgn"))


def test_edges_without_times_are_refused(tmp_path: Path) -> None:
    with (
        gs.ingest({"src": [1, 2], "dst": [2, 3]}, tmp_path / "g").graph as graph,
        pytest.raises(ConfigError, match=r"have no column 'time'.*ingest them with one"),
    ):
        read_events(graph, config_of("tgn"))


def test_shares_that_leave_nothing_are_refused(tmp_path: Path) -> None:
    with event_store(tmp_path / "g", [(0, 1, 5), (1, 2, 5), (2, 0, 5)]) as graph:
        with pytest.raises(ConfigError, match="which leave none of 3 edges to train"):
            read_events(graph, config_of("tgn", test_share=0.4))
        with pytest.raises(ConfigError, match=r"got 0.5 and 0.6, expected a sum below 1"):
            read_events(graph, config_of("tgn", valid_share=0.5, test_share=0.6))


def test_ends_of_two_types_are_counted_through(tmp_path: Path) -> None:
    table = {"src": [3, 4, 3], "dst": [3, 3, 9], "time": [1, 2, 3], "weight": [2.0, 1, 5]}
    edges = {("user", "likes", "item"): table}
    with gs.ingest(out=tmp_path / "g", edges=edges).graph as graph:
        stream = read_events(graph, config_of("tgn", valid_share=0, test_share=0.34))
        users, items = graph.num_nodes_of("user"), graph.num_nodes_of("item")
    assert (stream.first_dst, stream.num_dst, stream.num_nodes) == (users, items, 4)
    assert stream.dst.min() >= users
    assert stream.features.tolist() == [[2], [1], [5]]
    assert stream.numbers("item", np.array([0])).tolist() == [users]


def test_a_model_without_memory_sees_the_training_edges_alone(tmp_path: Path) -> None:
    with event_store(tmp_path / "g", favorites(100)) as graph:
        assert training_view(graph, config_of("sage")).num_edges == 70
        whole = config_of("sage", valid_share=0, test_share=0)
        assert training_view(graph, whole) is graph
