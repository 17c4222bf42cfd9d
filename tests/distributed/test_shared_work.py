"""Native loops that workers share: counts are those of one machine."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.core.errors import ClusterError, ConfigError
from graphsys.core.types import EDGE, EdgeType
from graphsys.distributed.cluster import Cluster
from graphsys.distributed.run import ClusterRun, combined
from graphsys.distributed.shared_work import SharedWork, result_of
from graphsys.engine.algorithms import get
from graphsys.engine.native_plan import NativeRun
from graphsys.engine.result import Result
from graphsys.graph.slices import Slice
from tests.clusters import run_in_threads
from tests.stores import edge_chunk, make_store

NUM_NODES = 400


@pytest.fixture(scope="module", params=["directed", "undirected", "typed"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(8)
    path: Path = tmp_path_factory.mktemp("graphs") / request.param
    pairs = rng.integers(0, NUM_NODES, (3000, 2)) ** 2 // NUM_NODES
    kinds = [EDGE, EDGE]
    if request.param == "typed":
        kinds = [EdgeType("user", "likes", "item"), EdgeType("user", "knows", "user")]
        pairs[:1500, 1] += 2 * NUM_NODES  # ids of items
    chunks = [
        edge_chunk(map(tuple, part.tolist()), kind)
        for kind, part in zip(kinds, (pairs[:1500], pairs[1500:]), strict=True)
    ]
    make_store(path, *chunks, is_directed=request.param != "undirected", partitions=4)
    return path


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("name", ["triangle_count", "lcc"])
def test_workers_count_what_one_machine_counts(
    store: Path, name: str, workers: int
) -> None:
    alone = get(name)(str(store))
    work = SharedWork(graph=str(store), algorithm=name, threads=1, neighbors=workers)
    parts = run_in_threads([work] * workers)
    prepared = get(name).prepare(str(store), implementation="native")
    assert isinstance(prepared, NativeRun)
    table, answer = result_of(prepared, parts, combined(parts))
    done = Result(source=table, algorithm=name, supersteps=alone.supersteps, seconds=0.0)
    # a --from goes on from both
    assert done.table.equals(alone.table, check_metadata=True)
    assert answer == alone.result
    sent = sum(part["bytes"][0] for part in parts)
    assert (sent > 0) == (workers > 1)
    # a zero costs as much as a place, so that at most twice the counts leave
    assert sum(part["bound"] for part in parts) <= sent <= 9 * NUM_NODES * workers


def test_shares_are_all_chunks_once_and_begin_in_turn() -> None:
    bounds = np.unique(np.random.default_rng(1).integers(0, 5000, 300))
    pieces = [Slice(rank, 3).of(bounds) for rank in range(3)]
    found = [
        (low, high)
        for own in pieces
        for piece in own
        for low, high in zip(piece[:-1].tolist(), piece[1:].tolist(), strict=True)
    ]
    whole = list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))
    assert sorted(found) == whole
    assert [own[0][0] for own in pieces] == sorted(own[0][0] for own in pieces)
    assert max(int(own[0][-1]) for own in pieces) <= 500  # everyone has some of the first


def test_workers_without_chunks_send_nothing(tmp_path: Path) -> None:
    make_store(tmp_path / "two", edge_chunk([(0, 1), (1, 2), (2, 0)]), partitions=4)
    work = SharedWork(graph=str(tmp_path / "two"), algorithm="triangle_count", threads=1)
    parts = run_in_threads([work] * 4)
    assert sum(p.sum() for part in parts for p in part["states"]["value"]) == 3


def test_a_share_of_memory_that_is_too_small_is_said(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphsys.distributed.mining_work.available_bytes", lambda: 0)
    monkeypatch.setattr("graphsys.distributed.mining_work.resident_bytes", lambda: 1 << 20)
    work = SharedWork(graph=str(store), algorithm="lcc", threads=1, neighbors=2)
    with pytest.raises(ClusterError, match=r"share of its machine is 1\.0 MiB; take fewer"):
        run_in_threads([work])


def test_what_a_cluster_run_tells_before_it_begins(store: Path) -> None:
    prepared: Any = get("lcc").prepare(str(store), implementation="native")
    run = ClusterRun.of(prepared, "lcc", {}, Cluster.parse("local:2"))
    assert run.implementation == "native"
    assert run.explanation().endswith("counts are added up by their owners")
    with pytest.raises(ConfigError, match="has 4 partitions, too few for 5 workers"):
        ClusterRun.of(prepared, "lcc", {}, Cluster.parse("local:5"))
