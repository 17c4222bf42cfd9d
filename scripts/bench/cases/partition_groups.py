"""What partitions cost in quality, and what groups of them give back, for how much memory.

    scripts/bench/run partition_groups [--only TEXT] [--dim 100]
        [--epochs 10] [--seeds 1,2,3] [--set KEY=VALUE]... [--save]

Trains ComplEx on FB15k-237 and WN18RR: as one partition, as 16 partitions apart with two in
memory, and as 64 in 8 groups, one in memory: an eighth of the tables either way. ``half``
and ``quarter`` hold more, ``ahead`` reads and writes beside the training, two of 11 groups
in memory. Everything else is the preset's, but for --set. Ranks are filtered, among all
nodes, of the split valid. --save writes results/partition_groups_<hardware>_<yyyymm>.json,
a row as soon as it is measured; what is there of the same commit is not measured again.
"""

import tempfile
from pathlib import Path
from typing import Any

from bench import output
from bench.load import LoadMeter
from graphsys.datasets import recipes
from graphsys.embedding import evaluate, load_config, train
from graphsys.storage import Graph

SHARED = output.ROOT.parent / "shared" / "data"
PRESETS = {
    "fb15k237-complex": ("fb15k237", "fb15k237-ids"),
    "wn18rr-complex": ("wn18rr", "wn18rr"),
}
DRAWN = {
    "fb15k237-complex": (
        "mode=sampled",
        "weigh_by_answers=false",
        "num_uniform_negatives=2000",
        "importance_weights=true",
        "batch_size=500",
        "lr=0.15",
        "dropout=0",
    )
}
"""What a preset over all nodes has here: in groups negatives are drawn."""
WAYS = {
    "one": (1, 0),
    "apart": (16, 0),
    "groups": (64, 8),
    "half": (4, 2),
    "quarter": (16, 4),
    "ahead": (121, 11),
}
"""Partitions of the store, and groups."""
NAME = "partition_groups"


def measure(
    graph: Graph, preset: str, way: str, folder: Path, settings: list[str]
) -> dict[str, Any]:
    """Train and evaluate once; return the figures."""
    ahead = str(way == "ahead").lower()
    apart = ["join_partitions=false", f"prefetch={ahead}", "eval_every=0"]
    given = [*apart, *DRAWN.get(preset, ()), f"partition_groups={WAYS[way][1]}", *settings]
    run = folder / "run"
    with LoadMeter() as load:
        config = load_config(preset=preset, overrides=given)
        report = train(graph, config, run, overwrite=run.exists())
    found = evaluate(run, split="valid")["metrics"]
    held = report.metrics["buffer_partitions"] + (way == "ahead")
    return {
        "mrr": round(found["mrr"], 4),
        "hits@10": round(found["hits@10"], 4),
        "train_seconds": round(report.seconds, 1),
        "swaps": report.metrics["swaps"],
        "bytes_read": report.metrics["bytes_read"],
        "bytes_written": report.metrics["bytes_written"],
        "peak_bytes": report.metrics["peak_memory_bytes"],
        "share_of_tables": round(held / (WAYS[way][1] or WAYS[way][0]), 4),
        "load_average": load.load_average,
        "other_cpu_share": load.other_cpu_share,
    }


def main(arguments: list[str]) -> int:
    """Measure everything that is not known."""
    parser = output.parser_of(__doc__)
    parser.add_argument("--only", default="", help="works whose name has this text")
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--set", action="append", default=[], help="another setting")
    parser.add_argument("--shared", type=Path, default=SHARED)
    options = output.parsed(parser, arguments)
    command = " ".join([f"scripts/bench/run {NAME}", *arguments])
    known = output.known_rows(NAME) if options.save else {}
    with tempfile.TemporaryDirectory(prefix="partition-groups-") as name:
        for preset, (recipe, source) in PRESETS.items():
            for way, (partitions, _) in WAYS.items():
                for seed in options.seeds.split(","):
                    settings = [
                        f"dim={options.dim}",
                        f"epochs={options.epochs}",
                        f"seed={seed}",
                    ]
                    settings += options.set
                    work = " ".join([preset, way, *settings])
                    row = known.get(work)
                    if options.only not in work or (
                        row and row["commit"] == output.commit()
                    ):
                        continue
                    path = Path(name) / f"{recipe}-{partitions}"
                    if not path.exists():
                        folder = options.shared / source
                        recipes.build(recipe, path, folder=folder, partitions=partitions)
                    with Graph(path) as graph:
                        found = measure(graph, preset, way, Path(name), settings)
                    known[work] = {"work": work, **found, **output.stamp(command)}
                    print(known[work], flush=True)
                    if options.save:
                        output.keep_record(NAME, list(known.values()))
    return 0
