"""Compare PinSage trained with hard negatives and with random ones, on generated pins.

    scripts/bench/run pinsage_negatives [--pins 20000] [--seeds 1,2,3]
        [--set key=value]... [--save]

Both train on the same boards for as many epochs, with 20 and with 500 random negatives that
a batch shares: 500 of two billion pins are all far away, 500 of 20,000 are not. Asked are
pairs of pins on boards drawn with another seed, which no training saw: the hit rate is the
share of pairs whose second pin is among the 500 nearest to the first, the MRR that of
ranks in hundreds, as in Ying et al., KDD 2018, section 4.2. Exit code 1 if hard negatives
are no better by both means beside the 20.
--save writes results/pinsage_negatives_<hardware>_<yyyymm>.json.
"""

import itertools
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench import output
from bench.__main__ import describe_run
from graphsys import gnn, open
from graphsys.core.machine import describe_machine
from graphsys.datasets import recipes
from graphsys.gnn.data.positive_pairs import read_pairs
from graphsys.storage import Graph

TOP, RANKS_AT_A_TIME = 500, 100
PRESET = "pins-pinsage"
SHARED = (20, 500)
HARD = {"random": 0, "hard": 5}


def pairs_of_boards(graph: Graph, count: int) -> npt.NDArray[np.int64]:
    """Return pairs of pins of one board, by their numbers ``[count, 2]``."""
    edges = read_pairs(graph, "holds")
    edges = edges[np.argsort(edges[:, 0], kind="stable")]
    starts = np.flatnonzero(np.diff(edges[:, 0], prepend=-1))
    sizes = np.diff(np.append(starts, len(edges)))
    rng = np.random.default_rng(0)
    board = rng.integers(0, len(starts), count)
    places = (rng.random((count, 2)) * sizes[board, None]).astype(np.int64)
    pairs = edges[starts[board, None] + places, 1]
    ids = np.array(graph.node_ids("pin").to_pylist())
    found: npt.NDArray[np.int64] = ids[pairs[pairs[:, 0] != pairs[:, 1]]]
    return found


def measure(run: Path, pairs: npt.NDArray[np.int64]) -> dict[str, float]:
    """Return hit rate and MRR of pairs, given by the ids of pins."""
    table = gnn.predict(run)
    rows = np.array(table["embedding"].to_pylist(), dtype=np.float32)
    place = {pin: k for k, pin in enumerate(table["id"].to_pylist())}
    ends = np.array([[place[a], place[b]] for a, b in pairs.tolist()])
    scores = rows[ends[:, 0]] @ rows.T
    line = np.arange(len(ends))
    own = scores[line, ends[:, 1]][:, None].copy()
    scores[line, ends[:, 0]] = -np.inf  # the query itself
    rank = 1 + (scores > own).sum(axis=1) + ((scores == own).sum(axis=1) - 1) / 2
    hundreds = np.ceil(rank / RANKS_AT_A_TIME)
    return {
        f"hit_rate@{TOP}": round(float((rank <= TOP).mean()), 4),
        "mrr": round(float((1 / hundreds).mean()), 4),
        "mean_rank": round(float(rank.mean()), 1),
    }


def compare(pins: int, seeds: list[str], overrides: list[str]) -> Iterator[dict[str, Any]]:
    """Yield a row per training."""
    sizes = {
        "num_pins": pins,
        "num_boards": pins // 10,
        "num_topics": pins // 100,
        "topics_per_theme": 10,
        "held_out": 0.0,
    }
    with tempfile.TemporaryDirectory(prefix="pinsage-") as name:
        folder = Path(name)
        for seed in (0, 1):
            recipes.build("pins", folder / f"pins{seed}", **sizes, seed=seed)
        with open(folder / "pins1") as other:
            pairs = pairs_of_boards(other, 4000)
        ranks = f"hard_ranks=[{pins // 100},{3 * pins // 100}]"
        for shared, seed, kind in itertools.product(SHARED, seeds, HARD):
            chosen = [
                ranks,
                f"num_negatives={shared}",
                f"hard_negatives={HARD[kind]}",
                f"seed={seed}",
                "threads=1",
                *overrides,
            ]
            config = gnn.load_config(preset=PRESET, overrides=chosen)
            run = folder / f"{kind}-{shared}-{seed}"
            with open(folder / "pins0") as graph:
                report = gnn.train(graph, config, run)
            row: dict[str, Any] = {"num_negatives": shared, "negatives": kind}
            row |= {"seed": int(seed), **measure(run, pairs)}
            row["train_cpu_seconds"] = round(gnn.open_run(run).state.cpu_seconds, 1)
            yield row | {"loss": round(report.metrics["loss"], 4)}


def means_of(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the means over seeds, with and without hard negatives."""
    return [
        {"num_negatives": shared, "metric": metric}
        | {
            kind: round(
                statistics.mean(r[metric] for r in rows if kinds(r) == (shared, kind)), 4
            )
            for kind in HARD
        }
        for shared in SHARED
        for metric in (f"hit_rate@{TOP}", "mrr")
    ]


def kinds(row: dict[str, Any]) -> tuple[int, str]:
    return row["num_negatives"], row["negatives"]


def main(arguments: list[str]) -> int:
    parser = output.parser_of(__doc__)
    parser.add_argument("--pins", type=int, default=20000)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    options = output.parsed(parser, arguments)
    command = " ".join(["scripts/bench/run pinsage_negatives", *arguments])
    rows: list[dict[str, Any]] = []
    for row in compare(options.pins, options.seeds.split(","), options.overrides):
        rows.append(row | output.stamp(command))
        print(json.dumps(rows[-1]), flush=True)
    means = means_of(rows)
    print(json.dumps(means, indent=1), file=sys.stderr)
    if options.save:
        machine = describe_run(describe_machine(Path.cwd()), [])
        output.keep_record(
            "pinsage_negatives",
            rows,
            machine=machine | {"command": command},
            preset=PRESET,
            pins=options.pins,
            overrides=options.overrides,
            means=means,
        )
    few = [row for row in means if row["num_negatives"] == SHARED[0]]
    return 0 if all(row["hard"] > row["random"] for row in few) else 1
