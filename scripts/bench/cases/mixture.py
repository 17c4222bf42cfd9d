"""Train several senses a node beside one of as many numbers: links of BlogCatalog.

    scripts/bench/run mixture [--shared ../shared] [--seeds 1,2,3] [--senses 1,4]
        [--set key=value]... [--save]

A row is a number of senses and a seed, on one thread, all on the same split of the edges.
The ROC-AUC is that of test edges against as many drawn pairs, the MRR that among all
bloggers. --save writes results/mixture_<hardware>_<yyyymm>.json after every training.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import graphsys
from bench import output
from bench.load import LoadMeter
from graphsys import gnn
from graphsys.datasets import recipes
from graphsys.gnn.data.positive_pairs import read_pairs
from graphsys.metrics.areas import roc_auc_of
from graphsys.storage import Graph

NAME, PRESET = "mixture", "blogcatalog-mixture"


def measure(graph: Graph, run: Path, overrides: list[str]) -> dict[str, Any]:
    """Train and measure one run."""
    config = gnn.load_config(preset=PRESET, overrides=["threads=1", *overrides])
    report = gnn.train(graph, config, run)
    opened = gnn.open_run(run, graph=graph)
    rows, name = opened.output(), graph.edge_type_name(graph.edge_types[0])
    scores, truth = [], []
    for split, is_edge in (("test", True), ("test_negative", False)):
        src, dst = read_pairs(graph, name, split).T
        scores.append(np.einsum("nd,nd->n", rows[src], rows[dst]))
        truth.append(np.full(len(src), is_edge))
    found = gnn.evaluate(opened)["metrics"]
    return {
        "roc_auc": round(roc_auc_of(np.concatenate(scores), np.concatenate(truth)), 4),
        "mrr": round(found["mrr"], 4),
        "hits@10": round(found["hits@10"], 4),
        "train_cpu_seconds": round(opened.state.cpu_seconds, 1),
        "peak_memory_bytes": report.metrics["peak_memory_bytes"],
    }


def main(arguments: list[str]) -> int:
    parser = output.parser_of(__doc__)
    parser.add_argument("--shared", type=Path, default=output.ROOT.parent / "shared")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--senses", default="1,4")
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    options = output.parsed(parser, arguments)
    known = output.known_rows(NAME) if options.save else {}
    command = " ".join(["scripts/bench/run", NAME, *arguments])
    with tempfile.TemporaryDirectory(prefix="mixture-") as name:
        folder = Path(name)
        recipes.build(
            "blogcatalog", folder / "whole", folder=options.shared / "data" / "blogcatalog"
        )
        graphsys.split(
            folder / "whole", folder / "graph", shares="0.9,0.05,0.05", negatives=1
        )
        for seed in options.seeds.split(","):
            for senses in options.senses.split(","):
                chosen = [f"seed={seed}", f"senses={senses}", *options.overrides]
                with LoadMeter() as load, graphsys.open(folder / "graph") as graph:
                    row = measure(graph, folder / f"{senses}-{seed}", chosen)
                told = {"work": f"senses {senses}, seed {seed}", **output.stamp(command)}
                told |= {"senses": int(senses), "seed": int(seed), **row}
                told["load_average"] = load.load_average
                told["other_cpu_share"] = load.other_cpu_share
                known[told["work"]] = told
                print(json.dumps(told), flush=True)
                if options.save:
                    output.keep_record(NAME, list(known.values()))
    return 0
