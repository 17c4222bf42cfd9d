"""Classify whole graphs by the presets, over ten folds; record accuracy, time and memory.

    scripts/bench/run graph_classes [--shared ../shared] [--only ptc-gin]
        [--set key=value]... [--runs FOLDER] [--again] [--save]

A row is a preset: ten trainings, each without one fold, and the accuracy after the epoch at
which its mean over the folds is best, as Xu et al. (ICLR 2019) report it. --save writes
results/graph_classes_<hardware>_<yyyymm>.json after every preset, and a later call goes on
with those that are missing (--again: all of them). With --runs trainings that are complete
are not done again, and one that was killed goes on where it was.

The copy of MUTAG in the shared folder is damaged in the first of its 188 graphs; its row
says so (``is_damaged``).
"""

import json
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import graphsys
from bench import output
from bench.load import LoadMeter
from graphsys import gnn
from graphsys.datasets import recipes

NAME = "graph_classes"
XU = "Xu et al., ICLR 2019, table 1, recalled"


class Cell(NamedTuple):
    """A preset's data set, and what others report.

    Attributes:
        recipe: The data set.
        source: Folder of its files below ``../shared/data/tud-graphclass``.
        published: Accuracy over ten folds.
        cited: Where that stands.
        is_damaged: Whether those files are another version than the recipe's.
    """

    recipe: str
    source: str
    published: float
    cited: str
    is_damaged: bool = False


CELLS = {
    "mutag-gin": Cell("mutag", "MUTAG", 0.894, XU, is_damaged=True),
    "ptc-gin": Cell("ptc", "PTC", 0.646, XU),
    "imdb-binary-gin": Cell("imdb-binary", "IMDBBINARY", 0.751, XU),
    "proteins-gin": Cell("proteins", "PROTEINS", 0.762, XU),
    "proteins-sagpool": Cell(
        "proteins", "PROTEINS", 0.7186, "Lee et al., ICML 2019, hierarchical, recalled"
    ),
    "proteins-diffpool": Cell(
        "proteins", "PROTEINS", 0.7625, "Ying et al., NeurIPS 2018, table 1, recalled"
    ),
}


def measure(
    preset: str, shared: Path, folder: Path, overrides: list[str]
) -> dict[str, Any]:
    """Train a preset without each fold in turn; return its row."""
    cell = CELLS[preset]
    path = folder / cell.recipe
    if not path.exists():
        source = shared / "data" / "tud-graphclass" / cell.source
        recipes.build(cell.recipe, path, folder=source, allow_other_counts=cell.is_damaged)
    runs, reports = [], []
    with LoadMeter() as load, graphsys.open(path) as graph:
        num_folds = gnn.load_config(preset=preset, overrides=overrides).folds
        for fold in range(num_folds):
            chosen = [*overrides, f"fold={fold}"]
            config = gnn.load_config(preset=preset, overrides=chosen)
            run = folder / f"{preset}-{fold}"
            is_begun = (run / "run.json").exists()
            reports.append(gnn.train(graph, config, run, resume=is_begun))
            runs.append(run)
    found = gnn.average_folds(runs)
    cpu_seconds = [gnn.open_run(run, graph=path).state.cpu_seconds for run in runs]
    return {
        "preset": preset,
        "overrides": overrides,
        "accuracy": round(found["accuracy"], 4),
        "accuracy_std": round(found["accuracy_std"], 4),
        "epoch": found["epoch"],
        "published": cell.published,
        "cited": cell.cited,
        **({"is_damaged": True} if cell.is_damaged else {}),
        "train_seconds": round(sum(report.seconds for report in reports), 1),
        "train_cpu_seconds": round(sum(cpu_seconds), 1),
        "peak_memory_bytes": max(it.metrics["peak_memory_bytes"] for it in reports),
        "load_average": load.load_average,
        "other_cpu_share": load.other_cpu_share,
    }


def main(arguments: list[str]) -> int:
    parser = output.parser_of(__doc__)
    parser.add_argument("--shared", type=Path, default=output.ROOT.parent / "shared")
    parser.add_argument("--only", choices=sorted(CELLS), action="append")
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--runs", type=Path)
    parser.add_argument("--again", action="store_true")
    options = output.parsed(parser, arguments)
    known = output.known_rows(NAME) if options.save else {}
    command = " ".join(["scripts/bench/run", NAME, *arguments])
    with tempfile.TemporaryDirectory(prefix="graph-classes-") as name:
        folder = options.runs or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        for preset in options.only or CELLS:
            if preset in known and not options.again:
                continue
            row = measure(preset, options.shared, folder, options.overrides)
            known[preset] = {"work": preset, **output.stamp(command), **row}
            print(json.dumps(row), flush=True)
            if options.save:
                output.keep_record(NAME, list(known.values()))
    return 0
