"""Patterns counted by workers: counts are those of one machine."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys import mining
from graphsys.core.errors import ClusterError
from graphsys.core.types import EdgeType
from graphsys.distributed.mining_work import MiningWork, run_mining
from graphsys.distributed.transport.exchange import Exchange, Mailbox
from graphsys.distributed.worker import Worker
from tests.clusters import NearPeer, run_in_threads
from tests.conftest import Run
from tests.stores import edge_chunk, make_store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(3)
    path: Path = tmp_path_factory.mktemp("mining") / "graph"
    pairs = rng.integers(0, 120, (700, 2)) ** 2 // 120
    make_store(path, edge_chunk(map(tuple, pairs.tolist())), partitions=2)
    return path


@pytest.mark.parametrize(
    "wanted",
    [
        {"patterns": ("triangle", "house", "a-b b-c c-d d-a a-e", "5-clique")},
        {"patterns": ("a>b b>c", "triangle"), "induced": "vertex"},
        {"patterns": ("a-b c-d", "3-path"), "disconnected": True},
        {"motifs": 3, "induced": "edge"},
        {"motifs": 4, "induced": "vertex"},
        {"motifs": 5, "induced": "vertex"},
    ],
    ids=str,
)
def test_workers_count_what_one_process_counts(store: Path, wanted: dict[str, Any]) -> None:
    parts = run_in_threads([MiningWork(graph=str(store), threads=1, **wanted)] * 3)
    more = dict(wanted)
    if "motifs" in wanted:
        alone = mining.motif_census(str(store), more.pop("motifs"), **more)
    else:
        alone = mining.count_all(str(store), more.pop("patterns"), **more)
    assert [part["counts"] for part in parts] == [alone] * 3
    assert all(part["bytes"] > 0 for part in parts)


def test_labels_are_counted_too(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    kind = EdgeType("user", "buys", "item")
    pairs = [(a, 1000 + b) for a, b in rng.integers(0, 60, (500, 2)).tolist()]
    make_store(tmp_path / "typed", edge_chunk(pairs, kind), partitions=2)
    text = "a:user-b:item c:user-b a-d:item c-d"
    work = MiningWork(graph=str(tmp_path / "typed"), patterns=(text,), threads=1)
    parts = run_in_threads([work] * 2)
    alone = mining.count_all(str(tmp_path / "typed"), [text])
    assert parts[1]["counts"] == alone
    assert alone[text] > 0


def test_workers_that_count_something_else_are_found_out(store: Path) -> None:
    work, mailbox = MiningWork(graph=str(store), patterns=("triangle",)), Mailbox()
    mailbox.put(1, 1, ("another sum", np.zeros((1, 6), np.int64)))
    exchange = Exchange(0, [NearPeer(Worker())] * 2, mailbox)
    with pytest.raises(ClusterError, match="workers do not count the same: here 'graph"):
        run_mining(exchange, work)


def test_a_share_of_memory_that_is_too_small_is_said(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = "graphsys.distributed.mining_work"
    monkeypatch.setattr("graphsys.distributed.mining_work.scratch_is_memory", lambda: False)
    monkeypatch.setattr(f"{room}.available_bytes", lambda: 0)
    monkeypatch.setattr(f"{room}.resident_bytes", lambda: 1 << 20)
    work = MiningWork(graph=str(store), patterns=("triangle",), threads=1)
    with pytest.raises(ClusterError, match=r"its machine is 1\.0 MiB; take fewer workers"):
        run_in_threads([work])


@pytest.mark.e2e
def test_the_command_gives_what_one_machine_does(store: Path, run_cli: Run) -> None:
    found = []
    for more in ([], ["--cluster", "local:2"]):
        done = run_cli("mine", store, "--motifs", 4, "--json", *more)
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    assert found[0]["counts"] == found[1]["counts"]
    assert found[1].keys() - found[0].keys() == {"workers"}
    assert found[1]["workers"] == 2


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--pattern", "triangle", "--list"], "lists, frequent patterns, --explain, --per"),
        (["--frequent", "--support", "3"], "--cluster counts patterns and motifs of"),
        (["--motifs", "4", "--per-node"], "--per-node and --per-edge run without it"),
        (["--motifs", "4", "--memory", "1GB"], "--memory does not go with --cluster"),
        (["--motifs", "7"], "motifs of 7 nodes"),
        (["--pattern", "a-b c-d"], "the pattern is in several parts"),
    ],
)
def test_what_workers_do_not_count_is_said_in_one_line(
    words: list[str], message: str, store: Path, run_cli: Run
) -> None:
    done = run_cli("mine", store, *words, "--cluster", "local:2")
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: ")
    assert message in last
