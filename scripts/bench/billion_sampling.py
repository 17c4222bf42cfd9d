"""Steps ``sage`` and ``pinsage`` of case ``billion``: seeds sampled batch by batch.

python -m bench.billion_sampling sage|pinsage GRAPH SEEDS OUT
"""

import json
import sys
import time
from pathlib import Path

import numpy as np

import graphsys as gs

_BATCH = 1024


def main(kind: str, path: str, num_seeds: int, out: Path) -> None:
    """Sample seeds drawn at random, and write how fast that was."""
    graph = gs.open(path)
    [node_type] = graph.node_types
    rng = np.random.default_rng(0)
    seeds = rng.integers(0, graph.num_nodes_of(node_type), size=num_seeds)
    if kind == "sage":
        sampler = gs.sampling.NeighborSampler(graph, [10, 5], seed=1)
    else:
        rows = gs.sampling.message_rows(graph, reverse=False)[0]
        sampler = gs.sampling.ImportanceSampler(rows, num_neighbors=(10, 10), seed=1)
    began, num_edges = time.perf_counter(), 0
    for batch, first in enumerate(range(0, num_seeds, _BATCH)):
        with sampler.sample(seeds[first : first + _BATCH], epoch=0, batch=batch) as sample:
            num_edges += sum(len(block.indices) for block in sample.blocks)
    seconds = time.perf_counter() - began
    told = json.dumps({"seconds": seconds, "seeds": num_seeds, "edges": num_edges})
    out.write_text(told)
    print(told)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
