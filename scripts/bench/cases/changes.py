"""Predict the links of the next snapshot: normal changes and bursts, three seeds.

    scripts/bench/run changes [--seeds 1,2,3] [--only PRESET]...
        [--folder FOLDER] [--set key=value]... [--save]

Trains the presets on CollegeMsg (its file in FOLDER, by default ../shared/data/CollegeMsg,
or $GRAPHSYS_SHARED/data/CollegeMsg): AliGraph's Evolving GNN beside static GraphSAGE and
the recency heuristic. 70 % of the messages train, 15 valid, 15 test, in order of time, in
snapshots of batch_size; what is said of a snapshot rests on those before it. Its links, and
for each a pair of the same source and kind that is none, are told apart; thresholds are
chosen on valid. A link is a burst where its ends neither met before nor had a partner in
common. --save writes results/changes_<hardware>_<yyyymm>.json.
"""

import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import output
from bench.__main__ import describe_run
from bench.load import LoadMeter
from graphsys import gnn, ingest
from graphsys.core.machine import describe_machine

ROOM = Path(os.environ.get("GRAPHSYS_SHARED", output.ROOT.parent / "shared"))
SHARED = ROOM / "data" / "CollegeMsg"
PRESETS = (
    "evolving-collegemsg",
    "sage-changes-collegemsg",
    "recency-changes-collegemsg",
)
KINDS = ("normal", "burst")
FIGURES = ("f1_micro", "f1_macro", "roc_auc")


def measure(
    graph: Path, preset: str, seed: int, folder: Path, overrides: list[str]
) -> dict[str, Any]:
    """Train and evaluate one run; return its row."""
    config = gnn.load_config(preset=preset, overrides=[f"seed={seed}", *overrides])
    run = folder / f"{preset}-{seed}"
    with LoadMeter() as load:
        report = gnn.train(graph, config, run)
        test = gnn.evaluate(run)["metrics"]
    figures = {f"{k}_{n}": round(test[k][n], 4) for k in KINDS for n in FIGURES}
    return {
        "preset": preset,
        "seed": seed,
        "valid_roc_auc": round(report.metrics["valid_roc_auc"], 4),
        **figures,
        **{f"all_{name}": round(value, 4) for name, value in test["all"].items()},
        **{f"num_{kind}_links": test[kind]["num_links"] for kind in KINDS},
        "num_snapshots": test["num_snapshots"],
        "state": f"before a snapshot of {test['batch_size']}",
        "epochs": report.epochs,
        "best_epoch": report.metrics["best_epoch"],
        "train_seconds": round(report.seconds, 1),
        "load_average": load.load_average,
    }


def rows_of(
    source: Path, seeds: list[int], chosen: list[str], overrides: list[str]
) -> Iterator[dict[str, Any]]:
    """Yield a row per run; a heuristic too has one a seed, which draws the pairs."""
    with tempfile.TemporaryDirectory(prefix="changes-") as name:
        folder = Path(name)
        ingest(source / "CollegeMsg.txt", folder / "graph", format="csv").graph.close()
        for preset in chosen:
            for seed in seeds:
                yield measure(folder / "graph", preset, seed, folder, overrides)


def table_of(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the means over seeds, and how far the macro-F1 of all are apart."""
    found = []
    names = [name for name in rows[0] if "_f1_" in name or name.endswith("_roc_auc")]
    for preset in dict.fromkeys(row["preset"] for row in rows):
        own = [row for row in rows if row["preset"] == preset]
        reached = [row["all_f1_macro"] for row in own]
        means = {n: round(statistics.mean(row[n] for row in own), 4) for n in names}
        spread = round(max(reached) - min(reached), 4)
        found.append({"preset": preset, "runs": len(own), **means, "spread": spread})
    return sorted(found, key=lambda row: -row["all_f1_macro"])


def main(arguments: list[str]) -> int:
    parser = output.parser_of(__doc__)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--only", choices=PRESETS, action="append")
    parser.add_argument("--folder", type=Path, default=SHARED)
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    options = output.parsed(parser, arguments)
    seeds = [int(seed) for seed in options.seeds.split(",")]
    command = " ".join(["scripts/bench/run changes", *arguments])
    rows: list[dict[str, Any]] = []
    chosen = options.only or list(PRESETS)
    for row in rows_of(options.folder, seeds, chosen, options.overrides):
        rows.append(output.stamp(command) | row)
        print(json.dumps(rows[-1]), flush=True)
    table = table_of(rows)
    for row in table:
        print(json.dumps(row), file=sys.stderr)
    if options.save:
        machine = describe_run(describe_machine(Path.cwd()), [])
        output.keep_record(
            "changes",
            rows,
            machine=machine | {"command": command},
            overrides=options.overrides,
            table=table,
        )
    return 0
