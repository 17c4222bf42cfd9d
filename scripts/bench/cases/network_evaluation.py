"""Rows of a network's layers by one process and by workers that share them.

    scripts/bench/run network_evaluation [--scale 18] [--workers 2]
        [--rounds 5] [--save]

A two-layer GraphSAGE of 64 is trained on R-MAT (20 edges and 100 features a node) and looks
at all of its nodes after each epoch: alone with 2 threads, and by workers of a cluster, of
which the first evaluates alone after the first epoch, and all together after the second.
Then the run's rows are computed as `evaluate` does it, by one process and by workers
(`evaluate --cluster`), start-up apart, and compared. Ratios are one process's seconds over
the others', within a round.
--save writes results/network_evaluation_<hardware>_<yyyymm>.json.
"""

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bench import output
from bench.__main__ import describe_run
from bench.cases.gnn_inputs import Labeled
from graphsys import gnn
from graphsys.core.machine import describe_machine
from graphsys.distributed import Cluster, opened_network, train_gnn
from graphsys.storage.ingest.ingest import ingest

EDGE_FACTOR = 20
SETTINGS = [
    "model=sage",
    "dim=64",
    "layers=2",
    "fanouts=[5,5]",
    "batch_size=4096",
    "epochs=1",
    "eval_every=1",
    "eval_split=train",
    "checkpoint_seconds=3600",
    "reverse_edges=false",
]


def rounds_of(scale: int, workers: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Yield a row per round."""
    cluster = Cluster.parse(f"local:{workers}")
    config = gnn.load_config(overrides=SETTINGS)
    with tempfile.TemporaryDirectory(prefix="network-evaluation-") as name:
        folder = Path(name)
        graph = ingest(
            Labeled(scale, EDGE_FACTOR), folder / "graph", order="original"
        ).graph.path
        gnn.train(graph, config, folder / "warm")  # compiles the kernels
        for number in range(rounds):
            shared = folder / f"shared-{number}"
            one = gnn.train(graph, config, folder / f"alone-{number}").metrics
            first = train_gnn(
                graph, config, folder / f"first-{number}", cluster=cluster
            ).metrics
            both = train_gnn(
                graph, replace(config, epochs=2), shared, cluster=cluster
            ).metrics
            alone_s, first_s = one["evaluate_seconds"], first["evaluate_seconds"]
            shared_s = both["evaluate_seconds"] - first_s
            yield {
                "round": number + 1,
                "workers": workers,
                "evaluate_seconds_alone": round(alone_s, 3),
                "evaluate_seconds_first_worker": round(first_s, 3),
                "evaluate_seconds_shared": round(shared_s, 3),
                "evaluation_bytes": both["evaluation_bytes"],
                "first_worker_ratio": round(alone_s / first_s, 3),
                "shared_ratio": round(alone_s / shared_s, 3),
                **asked(shared, cluster),
            }


def asked(run: Path, cluster: Cluster) -> dict[str, Any]:
    """Return how long all rows of a run take, by one process and by workers."""
    opened = gnn.open_run(run)
    opened.output(np.arange(1))  # opens what it reads
    expected, alone_s = timed(opened.output)
    with opened_network(run, cluster=cluster) as far:
        far.output(np.arange(1))
        found, far_s = timed(far.output)
    return {
        "output_seconds_alone": round(alone_s, 3),
        "output_seconds": round(far_s, 3),
        "output_ratio": round(alone_s / far_s, 3),
        "output_difference": float(np.abs(found - expected).max()),
    }


def timed(work: Any) -> tuple[Any, float]:
    """Return what some work gave, and its seconds."""
    began = time.perf_counter()
    found = work()
    return found, time.perf_counter() - began


def main(arguments: list[str]) -> int:
    parser = output.parser_of(__doc__)
    parser.add_argument("--scale", type=int, default=18)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    options = output.parsed(parser, arguments)
    command = " ".join(["scripts/bench/run network_evaluation", *arguments])
    rows: list[dict[str, Any]] = []
    for row in rounds_of(options.scale, options.workers, options.rounds):
        rows.append(row | output.stamp(command))
        print(json.dumps(rows[-1]), flush=True)
    medians = {
        name: statistics.median(row[name] for row in rows)
        for name in ("first_worker_ratio", "shared_ratio", "output_ratio")
    }
    print(json.dumps(medians, indent=1), file=sys.stderr)
    if options.save:
        machine = describe_run(describe_machine(Path.cwd()), [])
        output.keep_record(
            "network_evaluation",
            rows,
            machine=machine | {"command": command},
            settings=SETTINGS,
            medians=medians,
        )
    return 0 if all(row["output_difference"] < 1e-4 for row in rows) else 1
