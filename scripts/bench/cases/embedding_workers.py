"""Train embeddings by one process and by workers of a cluster: MRR, bytes, efficiency.

    scripts/bench/run embedding_workers [--seeds 1,2,3] [--workers 2]
        [--partitions 4] [--folder FOLDER] [--rmat SCALE] [--exchanges server,all_reduce]
        [--set key=value]... [--save]

Trains on FB15k-237 (files in FOLDER, by default those of ../shared/data/fb15k237-text, else
downloaded) in partitions, each trained apart, alone with a thread a processor and by
workers, one after the other for each seed; MRR is filtered, on test. Efficiency is the time
of an epoch alone over that of the workers, start-up and evaluation apart, within a seed's
round; with more workers than processors it says what sharing them costs. What reading ahead
hides: --partitions 8 beside the same with --set prefetch=false. What all-reduce of
operators takes and costs beside a parameter server: --exchanges server,all_reduce. --rmat
20 takes an R-MAT graph of 2^20 nodes and 16 edges a node instead, which has no quality to
measure, and trains an epoch of dot products in dim 100 with 150 negatives, reading the
graph and compiling apart. Exit code 1 where workers lose more than .5 % of the mean MRR of
one process with as many partitions. --save writes
results/embedding_workers_<hardware>_<yyyymm>.json; what was measured with other partitions,
workers or settings stays there.
"""

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import graphsys as gs
from bench import output
from bench.__main__ import describe_run
from graphsys import embedding
from graphsys.core.machine import describe_machine
from graphsys.datasets import generators, recipes
from graphsys.distributed import Cluster, train_embedding

SHARED = output.ROOT.parent / "shared" / "data" / "fb15k237-text"
SETTINGS = [
    "dim=100",
    "operator=complex_diagonal",
    "reciprocal=true",
    "loss=softmax",
    "batch_size=500",
    "num_batch_negatives=0",
    "num_uniform_negatives=500",
    "importance_weights=true",
    "lr=0.15",
    "lr_schedule=linear",
    "regularizer=0.05",
    "epochs=8",
    "checkpoint_seconds=3600",
]
NAME = "embedding_workers"
RMAT_SETTINGS = [
    "dim=100",
    "loss=softmax",
    "batch_size=1000",
    "num_batch_negatives=100",
    "num_uniform_negatives=50",
    "lr=0.1",
    "epochs=1",
    "checkpoint_seconds=3600",
]
LOST = 0.005
TOLD = (
    "bytes_read",
    "bytes_written",
    "parameter_bytes",
    "compute_seconds",
    "io_seconds",
    "allreduce_bytes",
    "communication_seconds",
    "waiting_seconds",
    "staleness_mean",
    "staleness_max",
    "staleness_bound",
    "load_imbalance",
    "partitions_read",
    "partitions_ahead",
)


def compare(options: argparse.Namespace, workers: list[int]) -> Iterator[dict[str, Any]]:
    """Yield a row per training; 1 worker is one process without Ray."""
    exchanges = options.exchanges.split(",")
    kinds = [(1, exchanges[0]), *((n, how) for n in workers for how in exchanges)]
    with tempfile.TemporaryDirectory(prefix="embedding-workers-") as name:
        folder = Path(name)
        build(folder / "graph", options)
        settings = RMAT_SETTINGS if options.rmat else SETTINGS
        warm = embedding.load_config(overrides=[*settings, *options.overrides, "epochs=1"])
        embedding.train(folder / "graph", warm, folder / "w")
        for seed in options.seeds.split(","):
            alone_s = 0.0
            for number, how in kinds:
                own = [*settings, *options.overrides, f"parameter_exchange={how}"]
                row = train(folder, seed, number, own)
                alone_s = row["epoch_seconds"] if number == 1 else alone_s
                row["efficiency"] = round(alone_s / row["epoch_seconds"], 3)
                yield {
                    "work": work_of(options, row, seed),
                    "graph": graph_of(options),
                    "partitions": options.partitions,
                    "overrides": " ".join(options.overrides),
                    **row,
                }


def graph_of(options: argparse.Namespace) -> str:
    """Return the name of the graph."""
    return f"rmat{options.rmat}" if options.rmat else "fb15k237"


def build(store: Path, options: argparse.Namespace) -> None:
    """Make the graph."""
    if not options.rmat:
        recipes.build(
            "fb15k237", store, folder=options.folder, partitions=options.partitions
        )
        return
    source = generators.rmat(options.rmat, 16, seed=1)
    gs.ingest(
        source, store, partitions=options.partitions, partitioner="hash"
    ).graph.close()


def work_of(options: argparse.Namespace, row: dict[str, Any], seed: str) -> str:
    """Return the name of a training."""
    words = [
        graph_of(options),
        f"{options.partitions} partitions",
        f"{row['workers']} workers",
    ]
    words += [row["parameter_exchange"], *options.overrides, f"seed {seed}"]
    return ", ".join(filter(None, words))


def train(folder: Path, seed: str, workers: int, overrides: list[str]) -> dict[str, Any]:
    """Train and measure once."""
    config = embedding.load_config(overrides=[*overrides, f"seed={seed}"])
    run = folder / f"run-{seed}-{workers}-{config.parameter_exchange}"
    report: Any
    if workers == 1:
        report = embedding.train(folder / "graph", config, run)
    else:
        where = Cluster.parse(f"local:{workers}")
        report = train_embedding(folder / "graph", config, run, cluster=where)
    with gs.open(folder / "graph") as graph:
        has_test = any("test" in graph.splits(kind) for kind in graph.edge_types)
    found = embedding.evaluate(run)["metrics"] if has_test else {}
    metrics = report.metrics
    return {
        "workers": getattr(report, "workers", 1),
        "parameter_exchange": config.parameter_exchange if workers > 1 else "",
        "seed": int(seed),
        **{name: round(found[name], 4) for name in ("mrr", "hits@10") if name in found},
        "loss": round(metrics["loss"], 4),
        "epochs": report.epochs,
        "epoch_seconds": round(report.seconds / report.epochs, 3),
        "edges_per_second": round(report.edges_per_second),
        **{name: round(metrics[name], 3) for name in TOLD if name in metrics},
    }


def means_of(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return means over seeds of the same training, and the spread of the MRR.

    ``mrr_lost`` is the share that one process with these partitions and settings has more.
    """
    found: list[dict[str, Any]] = []
    names = ("graph", "partitions", "overrides", "workers", "parameter_exchange")
    for kind in dict.fromkeys(tuple(row[name] for name in names) for row in rows):
        own = [row for row in rows if tuple(row[name] for name in names) == kind]
        found.append(
            {
                **dict(zip(names, kind, strict=True)),
                "efficiency": round(statistics.median(row["efficiency"] for row in own), 3),
                **{
                    name: round(statistics.mean(row[name] for row in own), 4)
                    for name in (
                        "mrr",
                        "parameter_bytes",
                        "allreduce_bytes",
                        "communication_seconds",
                    )
                    if name in own[0]
                },
            }
        )
        reached = [row["mrr"] for row in own if "mrr" in row]
        if reached:
            alone = next(
                it for it in found if it["workers"] == 1 and is_like(it, found[-1])
            )
            found[-1]["mrr_spread"] = round(max(reached) - min(reached), 4)
            found[-1]["mrr_lost"] = round(1 - found[-1]["mrr"] / alone["mrr"], 4)
    return found


def is_like(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether two trainings differ in who trained alone."""
    return all(one[name] == other[name] for name in ("graph", "partitions", "overrides"))


def main(arguments: list[str]) -> int:
    parser = output.parser_of(__doc__)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--workers", default="2")
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--folder", type=Path, default=SHARED if SHARED.is_dir() else None)
    parser.add_argument("--rmat", type=int, help="scale of a graph to train on instead")
    parser.add_argument("--exchanges", default="server")
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    options = output.parsed(parser, arguments)
    workers = [int(n) for n in options.workers.split(",")]
    command = " ".join([f"scripts/bench/run {NAME}", *arguments])
    kept = output.known_rows(NAME) if options.save else {}
    for row in compare(options, workers):
        kept[row["work"]] = row | output.stamp(command)
        print(json.dumps(kept[row["work"]]), flush=True)
    rows = list(kept.values())
    means = means_of(rows)
    print(json.dumps(means, indent=1), file=sys.stderr)
    if options.save:
        machine = describe_run(describe_machine(Path.cwd()), [])
        settings = {"fb15k237": SETTINGS, "rmat": RMAT_SETTINGS}
        output.keep_record(NAME, rows, machine=machine, settings=settings, means=means)
    return 0 if all(row.get("mrr_lost", 0) <= LOST for row in means) else 1
