"""A part of the case ``sampling``: how many nodes samples have by LABOR, on a real graph.

Tolokers (12k nodes, 519k edges), batches of 128 seeds, two hops of 10 neighbors. Samples
are right if neighbor sampling has the most nodes, and each round of LABOR no more than the
one before. Without the data it is left out, and said.
"""

import itertools
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bench.harness import Contender, Outcome, Work, WrongResultError

FANOUTS = (10, 10)
BATCH_SIZE, BATCHES = 128, 40
ROUNDS = {"LABOR-0": 0, "LABOR-1": 1, "LABOR-2": 2, "LABOR-*": -1}


def labor_work(folder: Path) -> Work | None:
    """Return the work, or None where the graph's data does not lie."""
    import graphsys
    from graphsys.datasets import recipes
    from graphsys.sampling import LaborSampler, NeighborSampler, message_rows

    beside = Path(__file__).resolve().parents[4] / "shared"
    shared = Path(os.environ.get("GRAPHSYS_SHARED", beside))
    source = shared / "data" / "heterophilous"
    if not source.is_dir():
        print(f"no LABOR: {source.name} is not in ../shared/data", file=sys.stderr)
        return None
    recipes.build("tolokers", folder / "tolokers", folder=source)
    rows = message_rows(graphsys.open(folder / "tolokers"))
    size = rows[0].num_nodes
    chosen = np.random.default_rng(0).permutation(size)[: BATCH_SIZE * BATCHES]
    batches = chosen.reshape(-1, BATCH_SIZE)
    samplers: dict[str, Any] = {"neighbor": NeighborSampler(rows, FANOUTS)}
    for name, rounds in ROUNDS.items():
        samplers[name] = LaborSampler(rows, FANOUTS, iterations=rounds)
    return Work(
        name=f"samples by LABOR, 10/10, Tolokers {size / 1e3:.3g}k/519k",
        amount=float(batches.size),
        unit="seeds/s",
        contenders=[
            Contender(system=f"graphsys, {name}", run=_sampled(sampler, batches))
            for name, sampler in samplers.items()
        ],
        verify=_fewer_each,
    )


def _sampled(sampler: Any, batches: Any) -> Callable[[], Outcome]:
    def run() -> Outcome:
        nodes = edges = first = 0
        began = time.perf_counter()
        for number, batch in enumerate(batches):
            with sampler.sample(batch, batch=number) as found:
                nodes += len(found.input_nodes)
                first += found.blocks[-1].num_src
                edges += found.num_edges
        figures = {
            "nodes": nodes / len(batches),
            "nodes_after_one_hop": first / len(batches),
            "edges": edges / len(batches),
        }
        seconds = time.perf_counter() - began
        return Outcome(seconds=seconds, result={"figures": figures})

    return run


def _fewer_each(results: Mapping[str, Any]) -> None:
    nodes = [result["figures"]["nodes_after_one_hop"] for result in results.values()]
    if any(b > 1.01 * a for a, b in itertools.pairwise(nodes)):
        raise WrongResultError(f"nodes after a hop: {nodes}, expected fewer each")
