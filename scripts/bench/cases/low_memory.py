"""What a network's training holds, takes and reaches with each way to less memory.

    scripts/bench/run low_memory [--shared ../shared] [--seeds 0,1,2] [--save]

Preset cora-gcn as it is, with each way alone and with all together. Bytes are those of the
report's parts: weights, gradients, moments, activations and the batch, without what the
process had before and what operators drop. --save writes
results/low_memory_<hardware>_<yyyymm>.json.
"""

import argparse
import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

from bench import output
from bench.__main__ import describe_run
from bench.load import LoadMeter
from graphsys.core.machine import describe_machine
from graphsys.datasets import recipes
from graphsys.gnn import evaluate, load_config, open_run, train

PRESET = "cora-gcn"
TWICE = "epochs=400"  # what is sparse learns longer, as RigL's authors have it
WAYS = {
    "dense": [],
    "dense, 400 epochs": [TWICE],
    "sparsity 0.8": ["sparsity=0.8"],
    "sparsity 0.8, 400 epochs": ["sparsity=0.8", TWICE],
    "sparsity 0.9": ["sparsity=0.9"],
    "sparsity 0.9, 400 epochs": ["sparsity=0.9", TWICE],
    "recomputation": ["recompute=all"],
    "bfloat16": ["precision=bfloat16"],
    "all, 400 epochs": ["sparsity=0.9", "recompute=all", "precision=bfloat16", TWICE],
}


def measure(way: str, seed: int, folder: Path) -> dict[str, Any]:
    """Train and evaluate one run."""
    import graphsys

    config = load_config(preset=PRESET, overrides=[f"seed={seed}", *WAYS[way]])
    run = folder / f"{way}-{seed}"
    with LoadMeter() as load, graphsys.open(folder / "cora") as graph:
        report = train(graph, config, run)
        test = evaluate(run, graph=graph)["metrics"]
    split = dict(report.metrics["peak_memory_split"])
    for name in ("process", "temporary"):
        del split[name]
    state = open_run(run).state
    zeros = 0.0
    if config.sparsity:
        weights = [w for w in open_run(run).context.network.parameters() if w.dim() == 2]
        zero = sum(int((w == 0).sum()) for w in weights)
        zeros = zero / sum(w.numel() for w in weights)
    return {
        "preset": PRESET,
        "way": way,
        "seed": seed,
        "accuracy": round(test["accuracy"], 4),
        "zero_weights": round(zeros, 4),
        "held_bytes": sum(split.values()),
        "activation_bytes": split["activations"],
        "epochs": report.epochs,
        "train_cpu_ms_per_epoch": round(1e3 * state.cpu_seconds / report.epochs, 2),
        "load_average": load.load_average,
        "other_cpu_share": load.other_cpu_share,
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shared", type=Path, default=output.ROOT.parent / "shared")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args(arguments)
    if options.save:
        output.refuse_dirty_tree()
    command = " ".join(["scripts/bench/run low_memory", *arguments])
    rows = []
    with tempfile.TemporaryDirectory(prefix="low-memory-") as name:
        folder = Path(name)
        source = options.shared / "data" / "planetoid"
        recipes.build("cora", folder / "cora", folder=source)
        machine = describe_run(describe_machine(folder), [])
        machine["command"] = command
        for seed in map(int, options.seeds.split(",")):
            for way in WAYS:  # side by side, so that a noisy minute hits all
                row = output.stamp(command) | measure(way, seed, folder)
                print(json.dumps(row), flush=True)
                rows.append(row)
    for way in WAYS:
        own = [row for row in rows if row["way"] == way]
        means = {
            name: statistics.mean(row[name] for row in own)
            for name in ("accuracy", "train_cpu_ms_per_epoch", "held_bytes")
        }
        print(f"{way:<26} {means}")
    if options.save:
        path = output.result_path("low_memory", machine["hardware"])
        result = {"case": "low_memory", "machine": machine, "rows": rows}
        path.write_text(json.dumps(result, indent=1) + "\n")
    return 0
