"""Run vertex programs by one process and by workers of a cluster: sameness, bytes, speed.

    scripts/bench/run bsp_workers [--scale 20] [--workers 2,4,8]
        [--algorithms pagerank,bfs,...] [--partitions 16] [--rounds 5] [--folder DIR]
        [--save]

The graph is R-MAT, 16 edges a node, undirected, weighted, ids dealt out by hash. One
process with a thread a processor runs each algorithm as users get it and as a program; then
workers of ``local:N``, in turns, ``--rounds`` times. Values must be equal, floats within
1e-9 relative. Seconds are those of the supersteps, start-up and compiling apart.
``efficiency`` is the program's time in one process over the workers', ``of_default`` that
of what users get; with more workers than processors they tell what sharing those costs.
``bytes`` are of the largest superstep, ``bound`` what one in which all nodes send must
move. ``imbalance`` is the most entries of a worker over the mean. ``per_worker`` splits the
median seconds of every worker into those of work, of sending, and of waiting for the
others. --save writes results/bsp_workers_<hardware>_<yyyymm>.json, a row as soon as it is
measured.
"""

import argparse
import json
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import graphsys as gs
from bench import output
from bench.load import LoadMeter
from graphsys.datasets import generators
from graphsys.distributed import Cluster, ClusterRun
from graphsys.distributed.ownership import Ownership
from graphsys.engine.topology import Topology

NAME = "bsp_workers"
PARAMETERS: dict[str, dict[str, Any]] = {
    "pagerank": {"iterations": 10},
    "bfs": {"source": None},
    "sssp": {"source": None},
    "wcc": {},
    "cdlp": {"iterations": 5},
}


def main(arguments: list[str]) -> int:
    """Measure; 1 where a value differs."""
    parser = output.parser_of(__doc__)
    parser.add_argument("--scale", type=int, default=20)
    parser.add_argument("--workers", default="2,4,8")
    parser.add_argument("--algorithms", default=",".join(PARAMETERS))
    parser.add_argument("--partitions", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="keeps the graph")
    options = output.parsed(parser, arguments)
    command = " ".join([f"scripts/bench/run {NAME}", *arguments])
    kept = output.known_rows(NAME) if options.save else {}
    with tempfile.TemporaryDirectory(prefix=f"{NAME}-", dir=options.folder) as name:
        store = (options.folder or Path(name)) / f"rmat{options.scale}-{options.partitions}"
        if not store.exists():
            source = generators.rmat(options.scale, 16, seed=1, weights=True)
            gs.ingest(
                source, store, partitions=options.partitions, partitioner="hash"
            ).graph.close()
        for row in measure(store, options):
            kept[row["work"]] = row | output.stamp(command)
            print(json.dumps(kept[row["work"]]), flush=True)
            if options.save:
                output.keep_record(NAME, list(kept.values()))
    return 0 if all(row["equal"] for row in kept.values()) else 1


def measure(store: Path, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield a row per algorithm and number of workers."""
    numbers = [int(text) for text in options.workers.split(",")]
    topology = Topology.of(store)
    source = int(topology.ids()[int(np.argmax(topology.rows("out").degrees()))].as_py())
    for algorithm in options.algorithms.split(","):
        given = {k: source if v is None else v for k, v in PARAMETERS[algorithm].items()}
        for number in numbers:
            with LoadMeter() as load:
                rounds = [
                    once(store, algorithm, given, number) for _ in range(options.rounds + 1)
                ][1:]
            yield row_of(f"{algorithm} rmat{options.scale}", number, rounds) | {
                "imbalance": imbalance(topology, number),
                "load_average": load.load_average,
                "other_cpu_share": load.other_cpu_share,
            }


def once(
    store: Path, algorithm: str, given: dict[str, Any], workers: int
) -> dict[str, Any]:
    """Run it the three ways; return seconds, bytes and whether the values agree."""
    listed = gs.algorithms.get(algorithm)
    default = listed(store, **given)
    program = listed.prepare(store, implementation="program", **given)
    alone = program.run()
    among = ClusterRun.of(
        program, algorithm, given, Cluster.parse(f"local:{workers}")
    ).run()
    values = [
        np.ma.filled(np.ma.masked_invalid(it.to_numpy()["value"]), -1)
        for it in (default, alone, among)
    ]
    return {
        "default": default.seconds,
        "program": alone.seconds,
        "workers": among.seconds,
        "equal": all(np.allclose(values[2], v, rtol=1e-9, atol=0) for v in values[:2]),
        "bytes": int(among.bytes_sent.max(initial=0)),
        "bytes_all": int(among.bytes_sent.sum()),
        "bytes_setup": among.bytes_setup,
        "bound": among.bytes_bound,
        "waited": among.waited_seconds,
        "per_worker": among.per_worker,
        "supersteps": among.supersteps,
    }


def row_of(work: str, workers: int, rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """Return medians, and the first round's counts."""
    middle = {
        key: round(statistics.median(one[key] for one in rounds), 4)
        for key in ("default", "program", "workers", "waited")
    }
    shares = [one["program"] / one["workers"] for one in rounds]
    of_default = [one["default"] / one["workers"] for one in rounds]
    return {
        "work": f"{work}, {workers} workers",
        "workers": workers,
        **{f"{key}_seconds": value for key, value in middle.items()},
        "efficiency": round(statistics.median(shares), 3),
        "spread": [round(min(shares), 3), round(max(shares), 3)],
        "of_default": round(statistics.median(of_default), 3),
        "equal": all(one["equal"] for one in rounds),
        **{k: rounds[0][k] for k in ("bytes", "bytes_all", "bytes_setup", "bound")},
        "supersteps": rounds[0]["supersteps"],
        "per_worker": [
            {
                key: round(
                    statistics.median(one["per_worker"][rank][key] for one in rounds), 4
                )
                for key in rounds[0]["per_worker"][rank]
            }
            for rank in range(workers)
        ],
    }


def imbalance(topology: Topology, workers: int) -> float:
    """Return the most entries of a worker over the mean."""
    degrees = topology.rows("out").degrees()
    entries = [
        sum(int(degrees[low:high].sum()) for low, high in spans)
        for spans in Ownership.of(topology, workers).spans
    ]
    return round(max(entries) * workers / sum(entries), 3)
