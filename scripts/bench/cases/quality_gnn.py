"""Train the presets of graph neural networks over several seeds or splits; record quality.

    scripts/bench/run quality_gnn [--shared ../shared] [--only cora-gcn]
        [--seeds 1,2,3] [--set key=value]... [--runs FOLDER] [--again] [--save]

A run is a preset and a seed; of a data set with ten fixed splits, seed k is split k - 1.
--save writes results/gnn_quality_<hardware>_<yyyymm>.json after every run, and a later
call goes on with the runs that are missing or stale (--again: all of them). With --runs a
training that was killed goes on where it was.
"""

import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench import output
from bench.__main__ import describe_run
from bench.load import LoadMeter
from bench.quality.gnn_cells import CELLS
from bench.quality.tasks import content_metrics, label_metrics
from bench.staleness import fresh
from graphsys.core.machine import describe_machine
from graphsys.datasets import recipes
from graphsys.gnn import evaluate, load_config, open_run, train


def measure(
    preset: str, seed: int, shared: Path, folder: Path, overrides: list[str]
) -> dict[str, Any]:
    """Train and evaluate one run."""
    cell = CELLS[preset]
    chosen = [f"seed={seed}", *cell.settings(seed), *overrides]
    config = load_config(preset=preset, overrides=chosen)
    path = folder / cell.recipe
    if not path.exists():
        source = shared / "data" / cell.source if cell.source else None
        recipes.build(cell.recipe, path, folder=source)
    import graphsys

    run = folder / f"{preset}-{seed}"
    is_begun = (run / "run.json").exists()
    with LoadMeter() as load, graphsys.open(path) as graph:
        report = train(graph, config, run, resume=is_begun)
        if cell.is_of_rows:
            test = label_metrics(open_run(run, graph=graph).output(), graph)
        else:
            test = evaluate(run, graph=graph)["metrics"]
        if cell.has_content:
            test |= content_metrics(open_run(run, graph=graph))
    state = open_run(run).state
    row = {
        "preset": preset,
        "seed": seed,
        "overrides": overrides,
        "metric": cell.metric,
        "test": round(test[cell.metric], 4),
        "published": cell.published,
        "epochs": report.epochs,
        "best_epoch": report.metrics.get("best_epoch", 0),
        "train_seconds": round(report.seconds, 2),
        "train_cpu_seconds": round(state.cpu_seconds, 2),
        "peak_memory_bytes": report.metrics["peak_memory_bytes"],
        "load_average": load.load_average,
        "other_cpu_share": load.other_cpu_share,
    }
    if cell.others:
        row["others"] = {name: round(test[name], 4) for name in cell.others}
    if cell.has_curve:  # epoch, CPU seconds of training, watched metric
        row["curve"] = [
            [int(e), round(cpu, 1), round(m, 4)] for e, _, m, _, cpu in state.history
        ]
    return row


def main(arguments: list[str]) -> int:
    parser = output.parser_of(__doc__)
    parser.add_argument("--shared", type=Path, default=output.ROOT.parent / "shared")
    parser.add_argument("--only", choices=sorted(CELLS), action="append")
    parser.add_argument("--seeds")
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--runs", type=Path)
    parser.add_argument("--again", action="store_true")
    options = output.parsed(parser, arguments)
    chosen = options.only or list(CELLS)
    command = " ".join(["scripts/bench/run quality_gnn", *arguments])
    with tempfile.TemporaryDirectory(prefix="quality-gnn-") as name:
        folder = options.runs or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        machine = describe_run(describe_machine(Path(name)), [])
        machine["command"] = output.stamp(command)["command"]
        path = output.result_path("gnn_quality", machine["hardware"])
        before = json.loads(path.read_text()) if path.exists() else {"rows": []}
        rows = before["rows"]
        machine = before.get("machine", machine)  # of the first runs; later ones say theirs
        for preset in chosen:
            seeds = CELLS[preset].seeds
            if options.seeds:
                seeds = tuple(int(seed) for seed in options.seeds.split(","))
            for seed in seeds:
                known = [] if options.again else fresh(rows, "gnn_quality")
                if any((row["preset"], row["seed"]) == (preset, seed) for row in known):
                    continue
                row = measure(preset, seed, options.shared, folder, options.overrides)
                row = output.stamp(command) | row
                print(json.dumps(row), flush=True)
                if options.save and path.exists():  # others may have written meanwhile
                    rows = json.loads(path.read_text())["rows"]
                rows = [r for r in rows if (r["preset"], r["seed"]) != (preset, seed)]
                rows = sorted([*rows, row], key=lambda r: (r["preset"], r["seed"]))
                if options.save:
                    result = {"case": "gnn_quality", "machine": machine, "rows": rows}
                    path.parent.mkdir(exist_ok=True)
                    path.write_text(json.dumps(result, indent=1) + "\n")
    return 0 if all(is_reached(preset, rows) for preset in chosen) else 1


def is_reached(preset: str, rows: list[dict[str, Any]]) -> bool:
    """Say on stderr what the mean of a preset's runs is; tell whether it is enough."""
    values, cell = [row["test"] for row in rows if row["preset"] == preset], CELLS[preset]
    mean = statistics.mean(values)
    print(
        f"{preset}: {cell.metric} {mean:.4f} (mean of {len(values)}), published "
        f"{cell.published} ({cell.cited}), at least {cell.target}",
        file=sys.stderr,
    )
    return mean >= cell.target
