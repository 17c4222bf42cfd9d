"""What is advised at the limits of a budget, a machine or a store leads somewhere right."""

import errno
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from graphsys.gnn.training.step import Stepper
from graphsys.storage.dynamic import new_nodes
from tests.advice.case import advised
from tests.advice.conftest import Command

PAIRS = 200_000
"""Edges of a graph that needs more than the least budget leaves for what is kept."""


def test_rows_of_appended_edges(folder: Path, command: Command) -> None:
    (folder / "a.txt").write_text("1 2\n2 3\n3 1\n")
    assert command("ingest a.txt -o g --partitions 2").code == 0
    assert command("append g a.txt").code == 0
    advice = advised(
        command("run pagerank g --explain").out,
        "graphsys/engine/united_rows.py",
        r"edges were appended \(`(graphsys compact)` merges their files\)",
    )
    assert command(f"{advice[1]} g").code == 0
    assert "were appended" not in command("run pagerank g --explain").out


def test_files_that_are_open(folder: Path, command: Command) -> None:
    (folder / "a.txt").write_text("1 2\n2 3\n")
    assert command("ingest a.txt -o g").code == 0

    def full(*_: object, **__: object) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", full)  # which limit it is met at, the system decides
        refused = command("info g")
    assert refused.code == 2
    advice = advised(
        refused.said, "graphsys/cli/main.py", r"allow more with `(ulimit -n 1024)`$"
    )
    info = command(f"$ {advice[1]}; GRAPHSYS info g --json")
    assert json.loads(info.out)["num_edges"] == 2


def test_files_that_may_not_be_so_large(folder: Path, command: Command) -> None:
    pairs = (f"{2 * n} {2 * n + 1}\n" for n in range(PAIRS))
    (folder / "pairs.txt").write_text("".join(pairs))
    limited, line = "$ ulimit -S -f 400", "GRAPHSYS ingest pairs.txt -o g --json"
    advice = advised(
        command(f"{limited}; {line}").said,
        "graphsys/core/errors.py",
        r"file too large; allow larger files, `(ulimit -f unlimited)`, or choose another",
    )
    done = command(f"{limited}; {advice[1]}; {line}")
    assert json.loads(done.out)["num_edges"] == PAIRS


def least(command: Command, line: str) -> str:
    """Return the least ``--memory`` with which an ingest begins, as it says itself."""
    found = re.search(r"give (--memory \w+)", command(f"{line} --memory 9MB").said)
    assert found is not None
    return found[1]


def more(memory: str, found: re.Match[str]) -> int:
    """Return a budget in MB that is larger by what was lacking."""
    needed, left = (float(found[k]) * 1.048576 for k in ("needed", "left"))
    return int(memory.split()[1][:-2]) + int(needed - left) + 3


def test_an_order_and_a_partitioner_that_need_the_graph_in_memory(
    folder: Path, command: Command
) -> None:
    pytest.importorskip("pymetis")
    pairs = (f"{2 * n} {2 * n + 1}\n" for n in range(PAIRS))
    (folder / "pairs.txt").write_text("".join(pairs))
    line = "$ GRAPHSYS ingest pairs.txt -o g --json"
    memory = least(command, line)
    order = advised(
        command(f"{line} --order rabbit {memory}").said,
        "graphsys/storage/ingest/orders.py",
        r"about (?P<needed>\S+) MiB .* the budget is (?P<left>\S+) MiB; "
        r"raise (--memory) or take (--order degree)$",
    )
    cut = advised(
        command(f"{line} --partitions 2 --partitioner metis {memory}").said,
        "graphsys/storage/ingest/node_stream.py",
        r"about (?P<needed>\S+) MiB .* the budget is (?P<left>\S+) MiB; "
        r"raise (--memory) or take (--partitioner reldg)$",
    )
    taken = command(f"{line} {order[4]} {cut[4]} --partitions 2 {memory}")
    assert json.loads(taken.out)["num_edges"] == PAIRS
    raised = max(more(memory, it) for it in (order, cut))
    both = f"--order rabbit --partitioner metis --partitions 2 {cut[3]} {raised}MB"
    done = command(f"{line} --overwrite {both}")
    assert json.loads(done.out)["num_edges"] == PAIRS


def test_a_batch_that_does_not_fit(
    folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = "".join(f"{n},{n % 2},train\n" for n in range(150))
    (folder / "n.csv").write_text(f"id,label,split\n{rows}")
    pairs = "".join(f"{n},{(n + 1) % 150}\n" for n in range(150))
    (folder / "e.csv").write_text(f"src,dst\n{pairs}")
    assert command("ingest --nodes user=n.csv --edges user,t,user=e.csv -o g").code == 0
    train = Stepper.train

    def small(self: Stepper, epoch: int, batch: Any, num_batches: int) -> Any:
        if sum(len(x) for x in batch.x.values()) > 60:
            raise MemoryError
        return train(self, epoch, batch, num_batches)

    monkeypatch.setattr(Stepper, "train", small)
    words = "train gnn g -o run --set epochs=1 --set dim=4"
    settings = ""
    for _ in range(12):  # each refusal halves it
        done = command(f"{words}{settings} --overwrite")
        if not done.code:
            break
        advice = advised(
            done.said, "graphsys/gnn/training/memory_watch.py", r"try (--set \w+=\d+), or"
        )
        settings = f" {advice[1]}"
    assert done.code == 0
    assert "batch_size" in settings


def test_a_store_of_the_most_partitions(
    folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(new_nodes, "MAX_PARTITIONS", 2)
    for number in range(3):
        (folder / f"{number}.txt").write_text(f"{number} {number + 1}\n")
    assert command("ingest 0.txt -o g").code == 0
    assert command("append g 1.txt").code == 0
    refused = command("append g 2.txt")
    assert refused.code == 2
    advice = advised(
        refused.said,
        "graphsys/storage/dynamic/new_nodes.py",
        "the most that there can be; run `(graphsys compact) (g)` first",
    )
    assert command(f"{advice[1]} {advice[2]}").code == 0
    assert command("append g 2.txt").code == 0
    assert json.loads(command("info g --json").out)["num_nodes"] == 4


def test_a_machine_that_cannot_be_measured(
    folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("graphsys.planning.rates.sys.executable", "/bin/false")
        refused = command("plan --nodes 10 --edges 20 --calibrate")
    assert refused.code == 2
    advice = advised(
        refused.said,
        "graphsys/planning/rates.py",
        "expected rates; see `(graphsys doctor)`",
    )
    assert f"Python {sys.version_info[0]}." in command(advice[1]).out
