"""PageRank from the last scores: the same iteration to the same tolerance."""

from typing import Any

import numpy as np

from graphsys.core.errors import ConfigError
from graphsys.engine.algorithms.pagerank import pagerank as anew
from graphsys.engine.last_result import AGAIN, LastResult
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from graphsys.kernels.cpu.algorithms import pagerank as kernels

__all__ = ["kernels", "pagerank"]


def pagerank(topology: Topology, *, last: LastResult, **options: Any) -> Result:
    """Compute what :func:`graphsys.engine.algorithms.pagerank` tells of.

    New nodes start with 1/N, the others with their scores, scaled so that all sum to 1.

    Raises:
        ConfigError: a number of iterations, which counts from 1/N, is given.
    """
    if options.get("iterations") is not None:
        raise ConfigError(f"iterations count from even scores; leave them out, or {AGAIN}")
    start = np.full(topology.num_nodes, 1.0 / max(topology.num_nodes, 1))
    known = last.values.to_numpy().astype(np.float64)
    total = known.sum()
    if total > 0:
        start[: len(known)] = known * (start[: len(known)].sum() / total)
    return anew.native(topology, start=start, **options)
