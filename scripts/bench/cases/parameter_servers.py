"""Time exchanges of parameters with several servers, and fit the model that chooses one.

    scripts/bench/run parameter_servers [--megabytes 4,32,128]
        [--workers 2,4] [--dim 100] [--rounds 5] [--save]

Tables of a type with one partition (rows of --dim numbers and their states) are at 1, 2 and
4 servers, actors of Ray on this machine; all workers exchange at once, an eighth of the
rows changed by each, as `train embedding --cluster` times them before it chooses. Figures
are medians of the rounds, each of which starts servers anew. --save writes
results/parameter_servers_<hardware>_<yyyymm>.json.
"""

import json
import statistics
from pathlib import Path
from typing import Any

import numpy as np

from bench import output
from bench.__main__ import describe_run
from graphsys.core.machine import describe_machine
from graphsys.distributed import Cluster
from graphsys.distributed.cluster import connected
from graphsys.distributed.embedding.parameter_server import ExchangeModel
from graphsys.distributed.embedding.worker_pool import exchange_model


def measured(megabytes: int, workers: int, dim: int, rounds: int) -> dict[str, Any]:
    """Return what exchanges took, and the model of the medians."""
    nodes = int(megabytes * 1e6) // (4 * dim + 4)
    tables = {
        "rows/node": np.zeros((nodes, dim), dtype=np.float32),
        "state/node": np.zeros(nodes, dtype=np.float32),
    }
    models = [exchange_model(tables, workers) for _ in range(rounds)]
    every = {n: [model.measured[n] for model in models] for n in models[0].measured}
    model = ExchangeModel({n: statistics.median(times) for n, times in every.items()})
    return {
        "megabytes": megabytes,
        "workers": workers,
        "nodes": nodes,
        "dim": dim,
        "seconds": every,
        "median_s": model.measured,
        "fixed_s": model.fixed_s,
        "shared_s": model.shared_s,
        "call_s": model.call_s,
        "best": model.best(max(workers, *model.measured)),
        "best_of_each_round": [it.best(max(workers, *it.measured)) for it in models],
    }


def main(arguments: list[str]) -> int:
    parser = output.parser_of(__doc__)
    parser.add_argument("--megabytes", default="4,32,128")
    parser.add_argument("--workers", default="2,4")
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    options = output.parsed(parser, arguments)
    command = " ".join(["scripts/bench/run parameter_servers", *arguments])
    rows: list[dict[str, Any]] = []
    with connected(Cluster.parse("local:2")):
        for megabytes in map(int, options.megabytes.split(",")):
            for workers in map(int, options.workers.split(",")):
                row = measured(megabytes, workers, options.dim, options.rounds)
                rows.append(row | output.stamp(command))
                print(json.dumps(rows[-1]), flush=True)
    if options.save:
        machine = describe_run(describe_machine(Path.cwd()), [])
        output.keep_record(
            "parameter_servers", rows, machine=machine | {"command": command}
        )
    return 0
