"""Sampling beside the data: the samples of one machine, from rows of several owners."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graphsys import gnn
from graphsys.core.errors import (
    ClusterError,
    ConfigError,
    TrainingFailedError,
    WorkerLostError,
)
from graphsys.core.progress import Progress
from graphsys.core.types import EdgeType
from graphsys.distributed import Cluster, train_gnn
from graphsys.distributed.gnn.worker import LocalGraph
from graphsys.distributed.transport.connections import Connection, Connections
from graphsys.distributed.transport.requests import RequestChannel
from graphsys.gnn import GnnConfig
from graphsys.gnn.data.features import InputFeatures
from graphsys.gnn.data.loader import Loader
from graphsys.gnn.data.message_graph import MessageGraph
from graphsys.gnn.process_group import ProcessGroup, deal
from graphsys.gnn.run import read_state
from graphsys.sampling import FeatureTable, NeighborSampler, rows_of
from graphsys.storage import Graph, NodeChunk
from tests.stores import edge_chunk, make_store

NUM_USERS, NUM_ITEMS, WORKERS = 90, 40, 3
KEY = b"k" * 32


@pytest.fixture
def shop(tmp_path: Path) -> Graph:
    """Return users with features and classes, who follow users and like items."""
    rng = np.random.default_rng(5)
    follows = np.unique(rng.integers(0, NUM_USERS, (700, 2)), axis=0)
    follows[rng.random(len(follows)) < 0.3, 0] = 7  # whom many follow
    likes = np.unique(rng.integers(0, [NUM_USERS, NUM_ITEMS], (400, 2)), axis=0)
    split = np.array(["train", "train", "valid"])[np.arange(NUM_USERS) % 3]
    columns = {"label": np.arange(NUM_USERS) % 2, "split": pa.array(split.tolist())}
    x, y = rng.random((NUM_USERS, 6), np.float32), rng.random((NUM_ITEMS, 4), np.float32)
    weight = rng.random(len(follows)).astype(np.float32)
    make_store(
        tmp_path / "shop",
        NodeChunk(
            ids=np.arange(NUM_USERS), node_type="user", columns=columns, features={"x": x}
        ),
        NodeChunk(ids=np.arange(NUM_ITEMS), node_type="item", features={"y": y}),
        edge_chunk(follows.tolist(), EdgeType("user", "follows", "user"), weight=weight),
        edge_chunk(
            likes.tolist(),
            EdgeType("user", "likes", "item"),
            weight=np.ones(len(likes), np.float32),
        ),
        partitions={"user": 5, "item": 3},
    )
    return Graph(tmp_path / "shop")


def at_once(work: Callable[[int], Any], size: int = WORKERS) -> list[Any]:
    """Do something for all workers, each in a thread; return what each found."""
    found: list[Any] = [None] * size

    def run(rank: int) -> None:
        try:
            found[rank] = work(rank)
        except Exception as err:
            found[rank] = err

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for each in found:
        if isinstance(each, Exception):
            raise each
    return found


@pytest.fixture
def ends() -> Iterator[list[Connections]]:
    made = [Connections("127.0.0.1") for _ in range(WORKERS)]
    yield made
    for it in made:
        it.close()


def meet(ends: list[Connections], requests: list[RequestChannel]) -> list[list[Connection]]:
    """Connect workers among each other, and have them answer."""
    addresses = [it.address for it in ends]

    def join(rank: int) -> list[Connection]:
        peers = ends[rank].open(rank, addresses, KEY, requests[rank])
        requests[rank].open(peers)
        return peers

    return at_once(join)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"frontier": "new", "replace": True, "cache": "degree", "cache_memory": "1200"},
        {"fanouts": (-1, 3), "weighted": True, "cache": "degree"},
        {"sampler": "labor", "cache": "lru", "cache_memory": "2000"},
    ],
)
def test_a_batch_is_that_of_the_shared_store(
    shop: Graph, ends: list[Connections], changes: dict[str, Any]
) -> None:
    """Workers make batches at once, each in two threads, and answer meanwhile."""
    config = GnnConfig(**({"fanouts": (4, 3)} | changes), sample_at="owners")
    alone = MessageGraph(shop, config, "user")
    stored = InputFeatures(shop, alone.node_types, GnnConfig())
    owned = [LocalGraph(shop, rank, WORKERS) for rank in range(WORKERS)]
    meet(ends, [it.requests for it in owned])
    seeds = [{"user": np.arange(k, NUM_USERS, 11), "item": np.array([k])} for k in range(8)]

    def work(rank: int) -> dict[str, float]:
        graph = MessageGraph(shop, config, "user")
        graph.sampler = owned[rank].sampler(graph.sampler)
        features = InputFeatures(shop, graph.node_types, config, owned[rank])
        for batch in Loader(graph, features, 2).batches(seeds, epoch=3):
            expected = alone.sample(seeds[batch.number], epoch=3, batch=batch.number)
            assert batch.sample is not None
            for own, other in zip(batch.sample.layers, expected.layers, strict=True):
                for name, block in own.items():
                    for part in ("indptr", "indices", "src_nodes", "dst_nodes"):
                        assert (getattr(block, part) == getattr(other[name], part)).all()
            for name, rows in stored.gather(expected.nodes).items():
                assert (batch.x[name] == rows).all()
        return {**features.figures(), **owned[rank].figures()}

    for found in at_once(work):
        assert 0 < found["far_rows"] < found["rows"]
        assert 0 < found["far_inputs"] < found["inputs"]
        assert found["row_bytes"] > 4 * found["far_rows"]
        row_bytes = 4 + 4 * 4  # of the narrower type: number and features
        assert found["feature_bytes"] >= row_bytes * (
            found["far_inputs"] - found.get("cache_hits", 0)
        )
        assert ("cache_hits" in found) is ("cache" in changes)
        if config.cache == "degree" and config.cache_memory == "256MB":
            assert found["cache_hit_rate"] == 1  # all of the others fit
        elif config.cache != "none":
            assert 0 < found["cache_hit_rate"] < 1
    reads = [owned[rank].parts("user") for rank in range(WORKERS)]
    assert [part for own in reads for part in own] == [0, 1, 2, 3, 4]


def test_a_worker_checks_its_own_features(
    shop: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    owned = LocalGraph(shop, 1, WORKERS)
    features = InputFeatures(shop, ["user"], GnnConfig(), owned)
    looked: list[Any] = []

    def find_odd(self: FeatureTable, parts: Any) -> tuple[int, list[int]]:
        looked.extend(parts)
        return 0, []

    monkeypatch.setattr(FeatureTable, "find_odd", find_odd)
    features.check()
    assert looked == list(owned.parts("user"))
    assert 0 < len(looked) < 5


def test_who_cannot_answer_says_so(ends: list[Connections]) -> None:
    def answer(question: Any) -> Any:
        if isinstance(question[0], str) and question[0] == "a":
            raise ValueError("no such rows")
        return np.arange(3), question[0]

    requests = [RequestChannel(rank, answer, timeout_s=30) for rank in range(WORKERS)]
    peers = meet(ends, requests)
    done: list[str] = []
    found, size = requests[0].ask(
        {1: ("b",), 2: (np.arange(2),)}, lambda: done.append("meanwhile")
    )
    assert done == ["meanwhile"]
    assert size == 3 * 8 + 3 * 8 + 2 * 8 + 2 * 8  # answers, the question and its echo
    assert [found[1][1], found[2][1].tolist()] == ["b", [0, 1]]
    with pytest.raises(
        TrainingFailedError,
        match=r"^worker 1 could not answer worker 0: ValueError: no such rows",
    ):
        requests[0].ask({1: ("a",)}, lambda: None)
    peers[2][0].close()  # as the system does for a process that dies
    with pytest.raises(WorkerLostError, match="the connection to worker 2 broke; look at"):
        requests[0].ask({2: ("b",)}, lambda: None)
    found, _ = requests[0].ask({1: ("c",)}, lambda: None)
    assert found[1][1] == "c"


def test_who_says_nothing_is_not_waited_for_forever(ends: list[Connections]) -> None:
    silent = threading.Event()

    def answer(question: Any) -> Any:
        silent.wait(60)
        return question

    requests = [RequestChannel(rank, answer, timeout_s=0.05) for rank in range(WORKERS)]
    meet(ends, requests)
    with pytest.raises(ClusterError, match="worker 1 answered nothing for 0 s; look at"):
        requests[0].ask({1: ("a",)}, lambda: None)
    silent.set()


def test_two_that_answer_each_other_with_much_both_go_on(ends: list[Connections]) -> None:
    much = np.zeros(1 << 20)  # beyond what the system takes at once
    requests = [RequestChannel(rank, lambda question: (much,)) for rank in range(WORKERS)]
    meet(ends, requests)

    def work(rank: int) -> int:
        others = {other: (much,) for other in range(WORKERS) if other != rank}
        return sum(requests[rank].ask(others, lambda: None)[1] for _ in range(3))

    assert at_once(work) == [3 * 4 * much.nbytes] * WORKERS


def test_seeds_are_dealt_out_to_their_owners_and_evenly() -> None:
    owners = np.array([0, 0, 0, 0, 1, 0, 2, 0])
    dealt = deal(owners, 3)
    assert dealt.tolist() == [0, 0, 0, 1, 1, 1, 2, 2]
    shares = []
    for rank in range(3):
        owned: Any = OwnersOf(owners)
        group = ProcessGroup(rank, 3, owners=owned)
        shares.append(group.share_at(np.arange(8), "user", np.arange(8)))
        assert len(shares[rank]) == group.num_own(8)
        assert group.share_at(np.arange(2), "user", np.arange(2)).tolist() == [rank % 2]
    assert sorted(np.concatenate(shares)) == list(range(8))


class OwnersOf:
    def __init__(self, owners: Any) -> None:
        self._owners = owners

    def owner_of(self, node_type: str, nodes: Any) -> Any:
        return self._owners[nodes]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "pinsage"}, "^model: got pinsage with sample_at owners, which draws a"),
        ({"sampler": "temporal"}, "^sampler: got temporal with sample_at owners, which dr"),
        ({"batch_size": 0}, "^batch_size: got 0 with sample_at owners, which draws a row"),
    ],
)
def test_what_is_not_drawn_node_by_node_is_refused(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        GnnConfig(**settings, sample_at="owners")


def test_what_owners_cannot_give_is_refused(shop: Graph, tmp_path: Path) -> None:
    config = GnnConfig(sample_at="owners")
    with pytest.raises(
        ConfigError, match=r"^sample_at: got owners without --cluster, but o"
    ):
        gnn.train(shop, config, tmp_path / "run")
    with pytest.raises(ConfigError, match="holds no run"):  # of one that is gone on with
        gnn.train(shop, config, tmp_path / "run", resume=True)
    owned = LocalGraph(shop, 0, 2)

    class Whole(NeighborSampler):
        picks_by_node = False

    with pytest.raises(ConfigError, match=r"^sample_at: got owners with Whole, which does"):
        owned.sampler(Whole([rows_of(shop, "follows")], [2]))
    many = Cluster.parse("local:6")
    with pytest.raises(ConfigError, match="has 5 partitions, too few for 6 workers"):
        train_gnn(shop, config, tmp_path / "run", cluster=many)
    assert not (tmp_path / "run").exists()


def test_bags_are_refused(tmp_path: Path) -> None:
    words = pa.array([[0, 1], [2], []], pa.large_list(pa.int64()))
    nodes = NodeChunk(ids=np.arange(3), features={"words": words})
    make_store(tmp_path / "g", nodes, edge_chunk([(0, 1), (1, 2)]), partitions=2)
    graph = Graph(tmp_path / "g")
    with pytest.raises(ConfigError, match="feature 'words' of node type 'node' is a bag"):
        InputFeatures(graph, ["node"], GnnConfig(), LocalGraph(graph, 0, 2))


def test_without_features_nothing_was_read(tmp_path: Path) -> None:
    make_store(tmp_path / "g", edge_chunk([(0, 1), (1, 2)]), partitions=2)
    graph = Graph(tmp_path / "g")
    features = InputFeatures(graph, ["node"], GnnConfig(), LocalGraph(graph, 0, 2))
    assert features.figures() == {"inputs": 0, "far_inputs": 0}


class Stop(Progress):
    """Ends a training when its second epoch begins."""

    def stage(self, name: str, total: int | None = None, unit: str = "") -> None:
        if name == "epoch 2":
            raise KeyboardInterrupt


def test_one_process_goes_on_with_what_owners_began(shop: Graph, tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "node_type": "user",
        "dim": 8,
        "batch_size": 20,
        "fanouts": (3, 3),
        "epochs": 2,
        "checkpoint_seconds": 0.0,
    }
    gnn.train(shop, GnnConfig(**settings), tmp_path / "store")
    owned, run = LocalGraph(shop, 0, 1), tmp_path / "owners"
    config = GnnConfig(**settings, sample_at="owners")
    with pytest.raises(KeyboardInterrupt):
        gnn.train(shop, config, run, owners=owned, progress=Stop())
    gnn.train(shop, None, run, resume=True)
    expected = read_state(tmp_path / "store").losses
    assert read_state(run).losses == pytest.approx(expected, rel=1e-5)


@pytest.mark.e2e
@pytest.mark.slow
def test_workers_train_what_they_do_from_the_store(shop: Graph, tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "node_type": "user",
        "dim": 8,
        "batch_size": 20,
        "fanouts": (3, 3),
        "epochs": 2,
        "cache": "degree",
        "cache_memory": "2000",
    }
    losses = []
    for place in ("store", "owners"):
        config = GnnConfig(**settings, sample_at=place)
        run = tmp_path / place
        report = train_gnn(shop, config, run, cluster=Cluster.parse("local:2"))
        losses.append(read_state(run).losses)
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    metrics = report.metrics
    own = metrics["per_worker"]
    assert [each["batches"] for each in own] == [6, 6]
    assert metrics["row_bytes"] == sum(each["row_bytes"] for each in own) > 0
    assert metrics["feature_bytes"] == sum(each["feature_bytes"] for each in own) > 0
    for name in ("far_row_share", "far_input_share", "far_cache_hit_rate"):
        assert 0 < metrics[name] < 1
    assert gnn.evaluate(run, split="valid")["metrics"]["num_nodes"] == 30  # by one process
