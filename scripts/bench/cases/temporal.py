"""Predict who writes to whom next: heuristics beside models, against all destinations.

    scripts/bench/run temporal [--seeds 1,2,3] [--only tgn-collegemsg]...
        [--folder FOLDER] [--set key=value]... [--by-event] [--save]

Trains the presets on CollegeMsg (its file in FOLDER, by default ../shared/data/CollegeMsg),
70 % of the messages train, 15 valid, 15 test, in order of time; heuristics once, for they
draw nothing. Ranks are among all nodes, other answers of the same source and second left
out; the state of all is that before a batch of 200 events (batch_size). --save writes
results/temporal_<hardware>_<yyyymm>.json. --by-event: the heuristics alone, with the state
before each event (or the first of its second), which is another question; saved as
temporal_by_event.
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
from bench.load import LoadMeter
from graphsys import gnn, ingest
from graphsys.core.machine import describe_machine

SHARED = output.ROOT.parent / "shared" / "data" / "CollegeMsg"
HEURISTICS = (
    "edgebank-collegemsg",
    "edgebank-window-collegemsg",
    "recency-collegemsg",
)
MODELS = ("sage-collegemsg", "jodie-collegemsg", "tgn-collegemsg")
SHOWN = ("mrr", "hits@1", "hits@10")


def measure(
    graph: Path, preset: str, seed: int, folder: Path, overrides: list[str]
) -> dict[str, Any]:
    """Train and evaluate one run; return its row."""
    config = gnn.load_config(preset=preset, overrides=[f"seed={seed}", *overrides])
    run = folder / f"{preset}-{seed}"
    with LoadMeter() as load:
        report = gnn.train(graph, config, run)
        test = gnn.evaluate(run)["metrics"]
    by_pair = {name: round(value["mrr"], 4) for name, value in test["by_pair"].items()}
    return {
        "preset": preset,
        "seed": seed,
        "valid_mrr": round(report.metrics["valid_mrr"], 4),
        **{name: round(test[name], 4) for name in SHOWN},
        "unfiltered_mrr": round(test["unfiltered"]["mrr"], 4),
        **{f"mrr_{name}_pairs": value for name, value in by_pair.items()},
        "num_edges": test["num_edges"],
        "num_candidates": test["num_candidates"],
        "state": f"before a batch of {test['batch_size']}",
        "epochs": report.epochs,
        "best_epoch": report.metrics["best_epoch"],
        "train_seconds": round(report.seconds, 1),
        "load_average": load.load_average,
    }


def rows_of(
    source: Path, seeds: list[int], chosen: list[str], overrides: list[str]
) -> Iterator[dict[str, Any]]:
    """Yield a row per run."""
    with tempfile.TemporaryDirectory(prefix="temporal-") as name:
        folder = Path(name)
        ingest(source / "CollegeMsg.txt", folder / "graph", format="csv").graph.close()
        for preset in chosen:
            for seed in seeds[:1] if preset in HEURISTICS else seeds:
                yield measure(folder / "graph", preset, seed, folder, overrides)


def table_of(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the means over seeds, the best test MRR first, and the spread of it."""
    found = []
    for preset in dict.fromkeys(row["preset"] for row in rows):
        own = [row for row in rows if row["preset"] == preset]
        reached = [row["mrr"] for row in own]
        names = ("valid_mrr", *SHOWN, "mrr_seen_pairs", "mrr_new_pairs", "train_seconds")
        means = {n: round(statistics.mean(row[n] for row in own), 4) for n in names}
        spread = round(max(reached) - min(reached), 4)
        found.append({"preset": preset, "runs": len(own), **means, "mrr_spread": spread})
    return sorted(found, key=lambda row: -row["mrr"])


def main(arguments: list[str]) -> int:
    parser = output.parser_of(__doc__)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--only", choices=(*HEURISTICS, *MODELS), action="append")
    parser.add_argument("--folder", type=Path, default=SHARED)
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--by-event", action="store_true")
    options = output.parsed(parser, arguments)
    seeds = [int(seed) for seed in options.seeds.split(",")]
    command = " ".join(["scripts/bench/run temporal", *arguments])
    chosen = options.only or [*HEURISTICS, *MODELS]
    if options.by_event:
        chosen = [preset for preset in chosen if preset in HEURISTICS]
        options.overrides.append("batch_size=1")
    rows: list[dict[str, Any]] = []
    for row in rows_of(options.folder, seeds, chosen, options.overrides):
        rows.append(output.stamp(command) | row)
        print(json.dumps(rows[-1]), flush=True)
    table = table_of(rows)
    for row in table:
        print(json.dumps(row), file=sys.stderr)
    if options.save:
        machine = describe_run(describe_machine(Path.cwd()), [])
        output.keep_record(
            "temporal_by_event" if options.by_event else "temporal",
            rows,
            machine=machine | {"command": command},
            overrides=options.overrides,
            table=table,
        )
    return 0
