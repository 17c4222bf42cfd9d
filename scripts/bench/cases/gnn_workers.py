"""Train a network by one process and by workers of a cluster: accuracy, bytes, efficiency.

    scripts/bench/run gnn_workers [--seeds 1,2,3] [--workers 2,4]
        [--folder FOLDER] [--owners | --sharding] [--set key=value]... [--save]

Trains on Cora (files in FOLDER, by default those of ../shared/data/planetoid, else
downloaded), alone with 2 threads and by workers, with gradients as they are and in 8 bits,
one after the other for each seed. Efficiency is the time of an epoch alone over that of the
workers, start-up and evaluation apart, within a seed's round; with more workers than
processors it says what sharing them costs. Exit code 1 where the mean accuracy of workers
is further from one process's than twice the largest spread of seeds. --owners compares,
instead of gradients, who reads rows and features: each worker from the store, or their
owners, without a cache, and with a cache of nodes by degree and of the latest ones (2 MB,
an eighth of the features); the table has bytes a batch and the cache's hit rate. --sharding
compares what a worker has of weights, gradients and moments with shares of the moments and
of all three, in bytes of the worker that has the most. Beside that are the most bytes of
weights and gradients that were whole at once, and the peak of a worker that writes no
checkpoints; one process has everything in all cases. --save writes
results/gnn_workers_<hardware>_<yyyymm>.json, with --owners gnn_owners_..., with --sharding
gnn_sharding_....
"""

import json
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import output
from bench.__main__ import describe_run
from graphsys import gnn
from graphsys.core.machine import describe_machine
from graphsys.datasets import recipes
from graphsys.distributed import Cluster, train_gnn

SHARED = output.ROOT.parent / "shared" / "data" / "planetoid"
SETTINGS = [
    "model=sage",
    "dim=64",
    "fanouts=[10,10]",
    "batch_size=70",
    "epochs=60",
    "dropout=0.5",
    "weight_decay=5e-4",
    "eval_every=10",
    "checkpoint_seconds=3600",
]
Ways = dict[str, list[str]]
COMPRESSIONS: Ways = {how: [f"gradient_compression={how}"] for how in ("none", "int8")}
PLACES: Ways = {
    "store": [],
    "owners": ["sample_at=owners"],
    "owners, degree": ["sample_at=owners", "cache=degree", "cache_memory=2MB"],
    "owners, lru": ["sample_at=owners", "cache=lru", "cache_memory=2MB"],
}
SHARDINGS: Ways = {how: [f"sharding={how}"] for how in ("none", "optimizer", "parameters")}
PARTS = {"parameter": "parameters", "gradient": "gradients", "optimizer": "optimizer"}
STATE = (*(f"{part}_bytes" for part in PARTS), "gathered_bytes", "peak_memory_bytes")
READ = (
    "row_bytes_per_batch",
    "feature_bytes_per_batch",
    "far_row_share",
    "far_input_share",
    "far_cache_hit_rate",
)


def trainings(workers: list[int], ways: Ways) -> list[tuple[int, str]]:
    """Return numbers of workers and their ways; 1 is one process without Ray."""
    return [(1, next(iter(ways))), *((n, how) for n in workers for how in ways)]


def compare(
    seeds: list[str],
    workers: list[int],
    ways: Ways,
    source: Path | None,
    overrides: list[str],
) -> Iterator[dict[str, Any]]:
    """Yield a row per training."""
    with tempfile.TemporaryDirectory(prefix="gnn-workers-") as name:
        folder = Path(name)
        parts = max(workers) if ways is PLACES else 1
        recipes.build("cora", folder / "cora", folder=source, partitions=parts)
        warm = gnn.load_config(overrides=[*SETTINGS, *overrides, "epochs=1"])
        gnn.train(folder / "cora", warm, folder / "warm")  # compiles the kernels
        for seed in seeds:
            alone_s = 0.0
            for number, how in trainings(workers, ways):
                row = train(folder, seed, number, [*ways[how], *overrides])
                row = {"workers": number, name_of(ways): how, **row}
                alone_s = row["epoch_seconds"] if number == 1 else alone_s
                row["efficiency"] = round(alone_s / row["epoch_seconds"], 3)
                yield row


def name_of(ways: Ways) -> str:
    """Return what is compared."""
    if ways is SHARDINGS:
        return "sharding"
    return "sample_at" if ways is PLACES else "gradient_compression"


def train(folder: Path, seed: str, workers: int, overrides: list[str]) -> dict[str, Any]:
    """Train and measure once."""
    config = gnn.load_config(overrides=[*SETTINGS, f"seed={seed}", *overrides])
    run = Path(tempfile.mkdtemp(dir=folder)) / "run"
    report: Any
    if workers == 1:
        report = gnn.train(folder / "cora", config, run)
    else:
        where = Cluster.parse(f"local:{workers}")
        report = train_gnn(folder / "cora", config, run, cluster=where)
    metrics = report.metrics
    steps = metrics["batches"]  # of a worker, as all have
    held = [{f"{p}_bytes": metrics["peak_memory_split"][name] for p, name in PARTS.items()}]
    held[0] |= {"peak_memory_bytes": metrics["peak_memory_bytes"]}
    held = metrics["per_worker"] if workers > 1 else held
    most = {f"{p}_bytes": max(each[f"{p}_bytes"] for each in held) for p in PARTS}
    return {
        "seed": int(seed),
        "accuracy": round(gnn.evaluate(run)["metrics"]["accuracy"], 4),
        "loss": round(metrics["loss"], 4),
        "epoch_seconds": round(report.seconds / report.epochs, 4),
        **most,
        "optimizer_bytes_of_all": sum(each["optimizer_bytes"] for each in held),
        "gathered_bytes": max(each.get("gathered_bytes", 0) for each in held),
        "peak_memory_bytes": max(each["peak_memory_bytes"] for each in held[1:] or held),
        "allreduce_bytes": metrics.get("allreduce_bytes", 0),
        "allreduce_bytes_per_step": round(
            metrics.get("allreduce_bytes", 0) / steps / workers
        ),
        "row_bytes_per_batch": round(metrics.get("row_bytes", 0) / steps),
        "feature_bytes_per_batch": round(metrics.get("feature_bytes", 0) / steps),
        "far_row_share": round(metrics.get("far_row_share", 0.0), 3),
        "far_input_share": round(metrics.get("far_input_share", 0.0), 3),
        "far_cache_hit_rate": round(metrics.get("far_cache_hit_rate", 0.0), 3),
        "communication_seconds": round(metrics.get("communication_seconds", 0.0), 3),
        "load_imbalance": round(metrics.get("load_imbalance", 1.0), 3),
    }


def means_of(
    rows: list[dict[str, Any]], workers: list[int], ways: Ways
) -> list[dict[str, Any]]:
    """Return the means over seeds of each training, and the spread of the accuracy."""
    found, name = [], name_of(ways)
    for number, how in trainings(workers, ways):
        own = [r for r in rows if (r["workers"], r[name]) == (number, how)]
        reached = [r["accuracy"] for r in own]
        found.append(
            {
                "workers": number,
                name: how,
                "accuracy": round(statistics.mean(reached), 4),
                "accuracy_spread": round(max(reached) - min(reached), 4),
                "efficiency": round(statistics.median(r["efficiency"] for r in own), 3),
                **{key: own[0][key] for key in STATE},
                "allreduce_bytes_per_step": own[0]["allreduce_bytes_per_step"],
                **{key: round(statistics.mean(r[key] for r in own), 3) for key in READ},
            }
        )
    return found


def main(arguments: list[str]) -> int:
    parser = output.parser_of(__doc__)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--workers", default="2,4")
    parser.add_argument("--folder", type=Path, default=SHARED if SHARED.is_dir() else None)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--owners", action="store_true")
    which.add_argument("--sharding", action="store_true")
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    options = output.parsed(parser, arguments)
    workers = [int(n) for n in options.workers.split(",")]
    command = " ".join(["scripts/bench/run gnn_workers", *arguments])
    rows: list[dict[str, Any]] = []
    case, ways = "gnn_workers", COMPRESSIONS
    if options.owners:
        case, ways = "gnn_owners", PLACES
    if options.sharding:
        case, ways = "gnn_sharding", SHARDINGS
    asked = (options.seeds.split(","), workers, ways, options.folder, options.overrides)
    for row in compare(*asked):
        rows.append(row | output.stamp(command))
        print(json.dumps(rows[-1]), flush=True)
    means = means_of(rows, workers, ways)
    print(json.dumps(means, indent=1), file=sys.stderr)
    if options.save:
        machine = describe_run(describe_machine(Path.cwd()), [])
        output.keep_record(
            case,
            rows,
            machine=machine | {"command": command},
            settings=SETTINGS,
            overrides=options.overrides,
            means=means,
        )
    noise = 2 * max(row["accuracy_spread"] for row in means)
    alone = means[0]["accuracy"]
    return 0 if all(abs(row["accuracy"] - alone) <= noise for row in means) else 1
