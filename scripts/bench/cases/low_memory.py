"""What a training holds, takes and reaches with each way to less memory.

    scripts/bench/run low_memory [--shared ../shared] [--seeds 0,1,2] [--only PRESET]
        [--save]

A preset of networks and one of embeddings as they are, with each way alone and with all
together. Bytes are those of the report's parts: weights or rows, gradients, states of the
optimizer, activations and the batch, without what the process had before and what operators
drop. --save writes results/low_memory_<hardware>_<yyyymm>.json; with --only the other
preset's rows stay.
"""

import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import graphsys
from bench import output
from bench.__main__ import describe_run
from bench.load import LoadMeter
from graphsys import embedding, gnn
from graphsys.core.machine import describe_machine
from graphsys.datasets import recipes

NETWORK, EMBEDDING = "cora-gcn", "codex-s-complex"
TWICE = "epochs=400"  # what is sparse learns longer, as RigL's authors have it
MICRO = ("batch_size=35", "accumulate=4", "fanouts=[-1,-1]")
WAYS: dict[str, dict[str, list[str]]] = {}
WAYS[NETWORK] = {
    "dense": [],
    "dense, 400 epochs": [TWICE],
    "sparsity 0.8": ["sparsity=0.8"],
    "sparsity 0.8, 400 epochs": ["sparsity=0.8", TWICE],
    "sparsity 0.9": ["sparsity=0.9"],
    "sparsity 0.9, 400 epochs": ["sparsity=0.9", TWICE],
    "recomputation": ["recompute=all"],
    "bfloat16": ["precision=bfloat16"],
    "micro-batches": [*MICRO],
    "all but those, 400 epochs": [
        "sparsity=0.9",
        "recompute=all",
        "precision=bfloat16",
        TWICE,
    ],
}
WAYS[EMBEDDING] = {
    "float32": [],
    "bfloat16 rows": ["row_dtype=bfloat16"],
    "float16 rows": ["row_dtype=float16"],
    "int8 rows": ["row_dtype=int8"],
    "micro-batches": ["batch_size=125"],
    "bfloat16 and micro-batches": ["row_dtype=bfloat16", "batch_size=125"],
    "int8 and micro-batches": ["row_dtype=int8", "batch_size=125"],
}


def measure_network(way: str, seed: int, folder: Path) -> dict[str, Any]:
    """Train and evaluate one run of a network."""
    overrides = [f"seed={seed}", *WAYS[NETWORK][way]]
    config = gnn.load_config(preset=NETWORK, overrides=overrides)
    run = folder / f"{way}-{seed}"
    with LoadMeter() as load, graphsys.open(folder / NETWORK) as graph:
        report = gnn.train(graph, config, run)
        test = gnn.evaluate(run, graph=graph)["metrics"]
        opened = gnn.open_run(run, graph=graph)
    zeros = 0.0
    if config.sparsity:
        weights = [w for w in opened.context.network.parameters() if w.dim() == 2]
        zero = sum(int((w == 0).sum()) for w in weights)
        zeros = zero / sum(w.numel() for w in weights)
    return {
        "preset": NETWORK,
        "way": way,
        "seed": seed,
        "accuracy": round(test["accuracy"], 4),
        "zero_weights": round(zeros, 4),
        **_held(report, opened.state.cpu_seconds),
        "load_average": load.load_average,
        "other_cpu_share": load.other_cpu_share,
    }


def measure_embedding(way: str, seed: int, folder: Path) -> dict[str, Any]:
    """Train and evaluate one run of embeddings."""
    overrides = [f"seed={seed}", "threads=1", *WAYS[EMBEDDING][way]]
    config = embedding.load_config(preset=EMBEDDING, overrides=overrides)
    run = folder / f"{way}-{seed}"
    with LoadMeter() as load, graphsys.open(folder / EMBEDDING) as graph:
        began = time.process_time()
        report = embedding.train(graph, config, run)
        cpu_seconds = time.process_time() - began
        test = embedding.evaluate(run, graph=graph)["metrics"]
    return {
        "preset": EMBEDDING,
        "way": way,
        "seed": seed,
        "mrr": round(test["mrr"], 4),
        **_held(report, cpu_seconds),
        "load_average": load.load_average,
        "other_cpu_share": load.other_cpu_share,
    }


def _held(report: Any, cpu_seconds: float) -> dict[str, Any]:
    split = dict(report.metrics["peak_memory_split"])
    for name in ("process", "temporary"):
        del split[name]
    return {
        "held_bytes": sum(split.values()),
        "row_bytes": split["parameters"],
        "activation_bytes": split["activations"],
        "epochs": report.epochs,
        "train_cpu_ms_per_epoch": round(1e3 * cpu_seconds / report.epochs, 2),
    }


MEASURE = {NETWORK: measure_network, EMBEDDING: measure_embedding}
SOURCES = {NETWORK: ("cora", "planetoid"), EMBEDDING: ("codex-s", "codex-s")}
QUALITY = {NETWORK: "accuracy", EMBEDDING: "mrr"}


def main(arguments: list[str]) -> int:
    parser = output.parser_of(__doc__)
    parser.add_argument("--shared", type=Path, default=output.ROOT.parent / "shared")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--only", choices=list(WAYS), action="append")
    options = output.parsed(parser, arguments)
    chosen = options.only or list(WAYS)
    command = " ".join(["scripts/bench/run low_memory", *arguments])
    rows = []
    with tempfile.TemporaryDirectory(prefix="low-memory-") as name:
        folder = Path(name)
        machine = describe_run(describe_machine(folder), [])
        machine["command"] = output.stamp(command)["command"]
        for preset in chosen:
            recipe, source = SOURCES[preset]
            recipes.build(recipe, folder / preset, folder=options.shared / "data" / source)
            for seed in map(int, options.seeds.split(",")):
                for way in WAYS[preset]:  # side by side, so that a noisy minute hits all
                    row = output.stamp(command) | MEASURE[preset](way, seed, folder)
                    print(json.dumps(row), flush=True)
                    rows.append(row)
    for preset in chosen:
        for way in WAYS[preset]:
            own = [row for row in rows if (row["preset"], row["way"]) == (preset, way)]
            shown = (QUALITY[preset], "train_cpu_ms_per_epoch", "held_bytes")
            means = {name: statistics.mean(row[name] for row in own) for name in shown}
            print(f"{preset:<16} {way:<26} {means}")
    if options.save:
        path = output.result_path("low_memory", machine["hardware"])
        known = json.loads(path.read_text())["rows"] if path.exists() else []
        rows = [row for row in known if row["preset"] not in chosen] + rows
        result = {"case": "low_memory", "machine": machine, "rows": rows}
        path.write_text(json.dumps(result, indent=1) + "\n")
    return 0
