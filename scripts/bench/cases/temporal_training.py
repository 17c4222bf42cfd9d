"""Case ``temporal_training``: TGN beside TGM's, on messages and on facts with times.

Both train TGN for three epochs on the first 70 % of the events, in batches of 200 that
never end within a time, with memory and rows of 100 numbers, two heads and the 10 latest
neighbors; a batch computes rows of as many nodes in both. Each has its own network: ours
its preset's, with 200 negatives that a batch shares; TGM's that of its example, with a
negative an event, and the learning rate that did best on valid of .0001, .001 and .003. The
time is that of the epochs, in one thread each. Quality is the MRR of the last 15 % among
all nodes, other answers of the same source and time left out, the state that before the
batch. TGM has an environment of its own (scripts/bench/peer_environments).
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench import output
from bench.child import in_child
from bench.environments import peer_python
from bench.harness import OURS, Contender, Outcome, Work, WrongResultError
from bench.limits import Limits

MODULE = "bench.cases.temporal_training"
PEER = "bench.cases.temporal_peers"
PEERS = {"TGM": "tgm"}
THREADS = 1
SETTINGS = {"batch_size": 200, "epochs": 3, "dim": 100, "fanout": 10}


class Events(NamedTuple):
    """Events of a data set.

    Attributes:
        folder: Below the shared data.
        files: Its events, in order.
        columns: Which hold source, destination and time.
        lr: TGM's learning rate.
        skip: Lines before the first event.
    """

    folder: str
    files: tuple[str, ...]
    columns: tuple[int, int, int]
    lr: float
    skip: int = 0


INPUTS = {
    "CollegeMsg": Events("CollegeMsg", ("CollegeMsg.txt",), (0, 1, 2), 0.001, 1),
    "YAGO": Events("tkg-yago", ("train.txt", "valid.txt", "test.txt"), (0, 2, 3), 0.001),
}


def works(
    *,
    quick: bool,
    folder: Path,
    limits: Limits,
    missing: list[str],
    inputs: list[str] | None = None,
) -> Iterator[Work]:
    """Yield the works whose data lie in the shared folder."""
    shared = Path(os.environ.get("GRAPHSYS_SHARED", output.ROOT.parent / "shared")) / "data"
    if not shared.exists():
        missing.append("the shared data")
        return
    for name in inputs or (["CollegeMsg"] if quick else list(INPUTS)):
        events = INPUTS[name]
        path = _write_events(shared, events, folder / name)
        contenders = [
            Contender(system=OURS, run=in_child(f"{MODULE}:ours", events=path.parent))
        ]
        peer = peer_python("tgm")
        if peer and "TGM" not in missing:
            run = in_child(
                f"{PEER}:tgm",
                python=peer,
                events=path,
                lr=events.lr,
                split="test",
                **SETTINGS,
            )
            contenders.append(Contender(system="TGM", run=run))
        yield Work(
            name=f"TGN, {name}, {SETTINGS['epochs']} epochs",
            amount=SETTINGS["epochs"],
            unit="epochs/s",
            contenders=contenders,
            verify=_verify,
        )


def _verify(results: Any) -> None:
    found = {who: result["figures"]["ranked"] for who, result in results.items()}
    if len(set(found.values())) > 1:
        raise WrongResultError(f"other events were ranked: {found}")


def _write_events(shared: Path, events: Events, folder: Path) -> Path:
    """Write the events in order of time as text for us and as arrays for the peer."""
    folder.mkdir(parents=True, exist_ok=True)
    read = [
        np.loadtxt(
            shared / events.folder / name,
            dtype=np.int64,
            usecols=events.columns,
            skiprows=events.skip,
        )
        for name in events.files
    ]
    rows = np.concatenate(read)
    rows = rows[np.argsort(rows[:, 2], kind="stable")]
    when = rows[:, 2]
    # a split begins with a time, as the trainer's shares of .15 do
    bounds = [
        int(np.searchsorted(when, when[len(rows) - round(share * len(rows))]))
        for share in (0.3, 0.15)
    ]
    _, ids = np.unique(rows[:, :2], return_inverse=True)
    pairs = ids.reshape(-1, 2)
    path = folder / "events.npz"
    np.savez(path, src=pairs[:, 0], dst=pairs[:, 1], time=when, bounds=bounds)
    header = "src,dst,time"
    table = np.column_stack([pairs, when])
    np.savetxt(
        folder / "events.csv", table, fmt="%d", delimiter=",", header=header, comments=""
    )
    return path


def ours(events: str) -> Outcome:
    """Train the preset's network from the store, and rank test."""
    import graphsys
    from graphsys import gnn

    folder = Path(events)
    path = folder / "store"
    if not path.exists():
        graphsys.ingest(folder / "events.csv", path, time_unit="s").graph.close()
    settings = {
        "batch_size": SETTINGS["batch_size"],
        "epochs": SETTINGS["epochs"],
        "dim": SETTINGS["dim"],
        "fanouts": [SETTINGS["fanout"]],
        "num_negatives": SETTINGS["batch_size"],
        "heads": 2,
        "eval_every": 0,
        "keep": '"last"',
        "seed": 1,
        "threads": THREADS,
    }
    overrides = [f"{name}={value}" for name, value in settings.items()]
    config = gnn.load_config(preset="tgn-collegemsg", overrides=overrides)
    with graphsys.open(path) as graph:
        for number in range(2):  # the first one compiles
            run = folder / f"run{number}"
            report = gnn.train(graph, config, run, overwrite=True)
        test = gnn.evaluate(run, graph=graph)["metrics"]
    cpu = gnn.open_run(run).state.cpu_seconds
    figures = {
        "mrr": round(test["mrr"], 4),
        "ranked": test["num_edges"],
        "cpu_seconds": round(cpu, 2),
    }
    return Outcome(seconds=report.seconds, result={"figures": figures})
