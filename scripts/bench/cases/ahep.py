"""Train AHEP beside HEP, which reads all neighbors: time, memory and quality of both.

    scripts/bench/run ahep [--shared ../shared] [--only acm] [--seeds 1,2,3]
        [--set key=value]... [--save]

AliGraph's authors claim 2 to 3 times the speed with 60 % of the memory at equal quality
(VLDB 2019, section 4.2). A row is a preset and a seed, trained on one thread in a process
of its own. Time is that of the processor, for other processes share the machine.
``growth_bytes`` is how much the process grows at most in two epochs without evaluation,
once a small batch has loaded all code. --save writes results/ahep_<hardware>_<yyyymm>.json.
"""

import json
import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench import output
from bench.child import in_child
from bench.load import LoadMeter
from graphsys.datasets import recipes

NAME = "ahep"
SHUFFLES = 5


class Cell(NamedTuple):
    """A data set.

    Attributes:
        recipe: Its name, with which presets begin.
        source: Folder of its files below ``../shared/data``.
        metric: What is compared.
    """

    recipe: str
    source: str
    metric: str


CELLS = {
    "acm": Cell("acm", "heco-acm", "f1_micro"),
    "dblp": Cell("dblp", "dblp-four-area", "f1_micro@20%"),
    "gatne-amazon": Cell("gatne-amazon", "gatne-amazon", "mrr"),
}


def train(graph: str, preset: str, seed: int, overrides: list[str]) -> dict[str, Any]:
    """Train a preset and measure it, in a process of its own."""
    import graphsys
    from graphsys import gnn
    from graphsys.core.memory import release_free_memory, resident_bytes

    config = gnn.load_config(
        preset=preset, overrides=[f"seed={seed}", "threads=1", "prefetch=0", *overrides]
    )
    bare = replace(config, eval_every=0, keep="last", patience=0, epochs=2)
    first = replace(bare, model="ahep", fanouts=(4, 4), batch_size=8, epoch_batches=1)
    with tempfile.TemporaryDirectory() as name, graphsys.open(graph) as opened:
        run = Path(name) / "run"
        gnn.train(opened, first, Path(name) / "first")
        release_free_memory()
        before = resident_bytes()
        peak = gnn.train(opened, bare, Path(name) / "bare").metrics["peak_memory_bytes"]
        report = gnn.train(opened, config, run)
        state = gnn.open_run(run, graph=opened).state
        quality = (
            area_metrics(run, opened)
            if preset.startswith("dblp")
            else gnn.evaluate(run, graph=opened)["metrics"]
        )
    return {
        "epochs": report.epochs,
        "train_cpu_seconds": round(state.cpu_seconds, 2),
        "cpu_seconds_per_epoch": round(state.cpu_seconds / report.epochs, 3),
        "entries_per_epoch": state.num_edges // report.epochs,
        "growth_bytes": peak - before,
        "quality": {k: round(v, 4) for k, v in quality.items() if isinstance(v, float)},
    }


def area_metrics(run: Path, graph: Any) -> dict[str, float]:
    """Learn areas of authors from a fifth of the rows; return F1 of the others' areas.

    Logistic regression on rows of length 1, means over five shuffles.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import f1_score

    from graphsys import gnn

    rows = gnn.open_run(run, graph=graph).output(node_type="author")
    label = np.array(graph.node_column("author", "label"), dtype=np.float64)
    has_label = np.isfinite(label) & (label >= 0)
    rows, area = rows[has_label], label[has_label].astype(np.int64)
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    found = []
    for shuffle in range(SHUFFLES):
        order = np.random.default_rng(shuffle).permutation(len(rows))
        known, asked = np.split(order, [len(rows) // 5])
        model = LogisticRegression(C=10, max_iter=300).fit(rows[known], area[known])
        guess = model.predict(rows[asked])
        found.append([f1_score(area[asked], guess, average=h) for h in ("micro", "macro")])
    micro, macro = np.mean(found, axis=0)
    return {"f1_micro@20%": float(micro), "f1_macro@20%": float(macro)}


def compare(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return means over seeds, and how AHEP's are to HEP's."""
    found = []
    for name, cell in CELLS.items():
        told: dict[str, Any] = {"data": name, "metric": cell.metric}
        for model in ("hep", "ahep"):
            own = [row for row in rows if row["preset"] == f"{name}-{model}"]
            if not own:
                break
            told["seeds"] = len(own)
            told[model] = {
                "quality": _mean(row["quality"][cell.metric] for row in own),
                "cpu_seconds_per_epoch": _mean(row["cpu_seconds_per_epoch"] for row in own),
                "train_cpu_seconds": _mean(row["train_cpu_seconds"] for row in own),
                "growth_bytes": _mean(row["growth_bytes"] for row in own),
            }
        else:
            hep, ahep = told["hep"], told["ahep"]
            told["times_as_fast"] = _ratio(hep, ahep, "cpu_seconds_per_epoch")
            told["share_of_memory"] = _ratio(ahep, hep, "growth_bytes")
            told["share_of_quality"] = _ratio(ahep, hep, "quality")
            found.append(told)
    return found


def _mean(values: Any) -> float:
    return round(statistics.mean(values), 4)


def _ratio(one: dict[str, float], two: dict[str, float], name: str) -> float:
    return round(one[name] / two[name], 3)


def main(arguments: list[str]) -> int:
    parser = output.parser_of(__doc__)
    parser.add_argument("--shared", type=Path, default=output.ROOT.parent / "shared")
    parser.add_argument("--only", choices=sorted(CELLS), action="append")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    options = output.parsed(parser, arguments)
    known = output.known_rows(NAME) if options.save else {}
    command = " ".join(["scripts/bench/run", NAME, *arguments])
    with tempfile.TemporaryDirectory(prefix="ahep-") as folder:
        for name in options.only or CELLS:
            cell, path = CELLS[name], Path(folder) / name
            recipes.build(cell.recipe, path, folder=options.shared / "data" / cell.source)
            for seed in options.seeds.split(","):
                for model in ("hep", "ahep"):
                    preset = f"{name}-{model}"
                    with LoadMeter() as load:
                        done = in_child(
                            "bench.cases.ahep:train",
                            graph=str(path),
                            preset=preset,
                            seed=int(seed),
                            overrides=options.overrides,
                        )()
                    row = {"work": f"{preset}, seed {seed}", **output.stamp(command)}
                    row |= {"preset": preset, "seed": int(seed), **done.result}
                    row["load_average"] = load.load_average
                    row["other_cpu_share"] = load.other_cpu_share
                    known[row["work"]] = row
                    print(json.dumps(row), flush=True)
                    if options.save:
                        rows = list(known.values())
                        output.keep_record(NAME, rows, means=compare(rows))
    print(json.dumps(compare(list(known.values())), indent=1), file=sys.stderr)
    return 0
