"""Train the presets of the quality table: what they reach beside published figures.

    scripts/bench/run quality_embedding [CELL...] [--partitions 1,4] [--seeds 1,2,3]
        [--set key=value]... [--again] [--save] [--list] [--table]

A cell is a preset, trained and evaluated on test once for every seed; a row has the means,
and how far seeds are apart. With --save each cell is written as
soon as it is done to results/embedding_quality_<hardware>_<yyyymm>.json, and cells that are
there with the same settings are not run again unless --again: a stopped table goes on where
it was. --table prints the newest row of every cell, whichever machine measured it. A preset
that was tuned, on the split valid, says so in its file.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import mean
from typing import Any

from bench import output
from bench.__main__ import describe_run
from bench.load import LoadMeter
from bench.quality.cells import CELLS, Cell
from bench.quality.table import markdown, saved_rows
from bench.quality.tasks import TASKS
from bench.quality.walk_pairs import pair_graph
from bench.staleness import fresh
from graphsys.core.machine import describe_machine
from graphsys.core.memory import MemoryMeter
from graphsys.datasets import recipes
from graphsys.embedding import load_config, preset_names, train


def measure(
    cell: Cell,
    partitions: int,
    shared: Path,
    folder: Path,
    overrides: Sequence[str],
    seeds: Sequence[int],
) -> dict[str, Any]:
    """Train and evaluate one cell, seed by seed; return the means and spreads."""
    runs = [_one(cell, partitions, shared, folder, overrides, seed) for seed in seeds]
    tests = [run["test"] for run in runs]
    return runs[-1] | {
        "seeds": list(seeds),
        "train_seconds": round(mean(run["train_seconds"] for run in runs), 1),
        "train_cpu_seconds": round(mean(run["train_cpu_seconds"] for run in runs), 1),
        "peak_bytes": max(run["peak_bytes"] for run in runs),
        "test": {name: round(mean(it[name] for it in tests), 4) for name in tests[0]},
        "spread": {
            name: round(max(it[name] for it in tests) - min(it[name] for it in tests), 4)
            for name in tests[0]
        },
        "is_reached": all(
            mean(it[name] for it in tests) >= value for name, value in cell.target.items()
        ),
    }


def _one(
    cell: Cell,
    partitions: int,
    shared: Path,
    folder: Path,
    overrides: Sequence[str],
    seed: int,
) -> dict[str, Any]:
    """Train and evaluate one cell with one seed."""
    config = load_config(preset=cell.preset, overrides=[*overrides, f"seed={seed}"])
    path, run = folder / f"{cell.recipe}-{partitions}", folder / f"{cell.preset}-run"
    with recipes.build(
        cell.recipe,
        path,
        folder=shared / "data" / cell.source,
        partitions=partitions,
        overwrite=True,
    ).graph as graph:
        trained = pair_graph(graph, cell.walks, folder) if cell.walks else graph
        cpu = time.process_time()
        with LoadMeter() as load, MemoryMeter() as memory:
            report = train(trained, config, run, overwrite=run.exists())
            cpu = time.process_time() - cpu
            found = TASKS[cell.task](run, graph)
    return {
        "preset": cell.preset,
        "partitions": partitions,
        "overrides": list(overrides),
        "settings": preset_text(cell.preset),
        "task": cell.task,
        "walks": cell.walks and asdict(cell.walks),
        "dim": config.dim,
        "epochs": report.epochs,
        "train_seconds": round(report.seconds, 1),
        "train_cpu_seconds": round(cpu, 1),
        "edges_per_second": round(report.edges_per_second),
        "peak_bytes": memory.peak_bytes,
        "test": {name: round(value, 4) for name, value in found.items()},
        "published": dict(cell.published),
        "cited": cell.cited,
        "target": dict(cell.target),
        "load_average": load.load_average,
        "other_cpu_share": load.other_cpu_share,
    }


def preset_text(name: str) -> str:
    """Return the settings of a preset, without remarks."""
    presets = output.ROOT / "graphsys" / "embedding" / "presets"
    lines = (presets / f"{name}.toml").read_text().splitlines()
    return "; ".join(line for line in lines if line.strip() and not line.startswith("#"))


def is_done(
    rows: list[dict[str, Any]],
    cell: Cell,
    partitions: int,
    sets: list[str],
    seeds: list[int],
) -> bool:
    """Return whether a cell was measured with the same settings and seeds."""
    walks = cell.walks and asdict(cell.walks)
    key = (cell.preset, partitions, sets, preset_text(cell.preset), walks, seeds)
    names = ("preset", "partitions", "overrides", "settings", "walks")
    return any(
        (*(row.get(name) for name in names), row.get("seeds", [0])) == key for row in rows
    )


def list_cells() -> None:
    """Print what there is."""
    for cell in CELLS.values():
        known = "" if cell.preset in preset_names() else " (no preset yet)"
        print(f"{cell.preset}\t{cell.task}\t{dict(cell.published)}{known}")


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cells", nargs="*", metavar="CELL", help="all by default")
    parser.add_argument("--shared", type=Path, default=output.ROOT.parent / "shared")
    parser.add_argument("--partitions", default="1")
    parser.add_argument("--seeds", default="0", help="such as 1,2,3")
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--again", action="store_true", help="measured cells, too")
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--table", action="store_true", help="only print what is saved")
    parser.add_argument("--list", action="store_true", help="only list the cells")
    options = parser.parse_args(arguments)
    for name in options.cells:
        if name not in CELLS:
            parser.error(f"no cell {name!r}; the cells are {', '.join(CELLS)}")
    return options


def main(arguments: list[str]) -> int:
    """Measure cells, one after the other."""
    options = parse(arguments)
    seeds = [int(seed) for seed in options.seeds.split(",")]
    if options.list:
        list_cells()
        return 0
    if options.save:
        output.refuse_dirty_tree()
    command = " ".join(["scripts/bench/run quality_embedding", *arguments])
    with tempfile.TemporaryDirectory(prefix="quality-embedding-") as name:
        machine = describe_run(describe_machine(Path(name)), [])
        machine["command"] = output.stamp(command)["command"]
        path = output.result_path("embedding_quality", machine["hardware"])
        rows = _rows(path)
        if options.table:
            print(markdown(saved_rows()))
            return 0
        measured = []
        for preset in options.cells or CELLS:
            cell = CELLS[preset]
            for partitions in map(int, options.partitions.split(",")):
                known = [] if options.again else fresh(rows, "embedding_quality")
                if is_done(known, cell, partitions, options.overrides, seeds):
                    print(f"{preset}, {partitions} partitions: measured before")
                    continue
                folder, sets = Path(name), options.overrides
                row = measure(cell, partitions, options.shared, folder, sets, seeds)
                row = output.stamp(command) | row
                print(json.dumps(row), flush=True)
                measured.append(row)
                if options.save:
                    _keep(row, path, machine)
    return 0 if all(row["is_reached"] for row in measured) else 1


def _rows(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text())["rows"] if path.exists() else []


def _keep(row: dict[str, Any], path: Path, machine: dict[str, Any]) -> None:
    """Put a row into the file as it is now: other cells may run beside this one."""
    key = (row["preset"], row["partitions"])
    rows = [it for it in _rows(path) if (it["preset"], it["partitions"]) != key] + [row]
    rows.sort(key=lambda it: (it["preset"], it["partitions"]))
    result = {"case": "embedding_quality", "machine": machine, "rows": rows}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")
