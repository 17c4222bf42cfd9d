"""Checks of a graph's edge weights, block by block for stores."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import InvalidGraphError
from graphsys.engine.topology import Topology
from graphsys.graph.csr import Csr

ONCE = "leave weighted=False to count every edge once"
"""The remedy of algorithms that read weights on request."""
HOPS = "leave the column out to count hops"
"""The remedy of searches."""
_AT_A_TIME = 1 << 20
"""Weights looked at in one go, so that a check of mapped weights takes little memory."""


def refuse_negative(
    topology: Topology,
    algorithm: str,
    *,
    only_nan: bool = False,
    remedy: str = "leave the column out to count each edge as 1",
) -> float:
    """Refuse weights that an algorithm cannot use.

    Args:
        topology: The graph; no weights are fine.
        algorithm: Its name for the message.
        only_nan: Let negative weights pass.
        remedy: What to do instead of changing the weights, for the message.

    Returns:
        The sum of all finite weights without their signs: no path is longer. It may be
        infinite.

    Raises:
        InvalidGraphError: negative weights, or NaN.
    """
    wrong, first, total = 0, 0.0, 0.0
    for weight in _weights(topology):
        with np.errstate(over="ignore"):
            total += float(np.abs(weight).sum(where=np.isfinite(weight), dtype=np.float64))
        is_fine = weight == weight if only_nan else weight >= 0
        if not is_fine.all():
            first = first if wrong else float(weight[~is_fine][0])
            wrong += int(np.count_nonzero(~is_fine))
    if wrong:
        what = "numbers" if only_nan else "weights of 0 or more"
        raise InvalidGraphError(
            f"{algorithm} needs {what}, but {wrong} weights are "
            f"{'NaN' if only_nan else 'negative or NaN'}, the first {first}; change the "
            f"weights, or {remedy}"
        )
    return total


def refuse_infinite(topology: Topology, algorithm: str) -> None:
    """Refuse infinite weights, of which no share can be taken.

    Raises:
        InvalidGraphError: an infinite weight.
    """
    wrong = sum(int(np.count_nonzero(np.isinf(weight))) for weight in _weights(topology))
    if wrong:
        raise InvalidGraphError(
            f"{algorithm} needs finite weights, but {wrong} are infinite; give those a "
            "number above the sum of the others"
        )


def refuse_capacities(topology: Topology, algorithm: str, what: str = "capacities") -> None:
    """Refuse weights that cannot be added up, negative ones among them.

    Raises:
        InvalidGraphError: negative weights, NaN, or a sum beyond float64.
    """
    if refuse_negative(topology, algorithm) == np.inf:
        raise InvalidGraphError(
            f"the {what} add up to more than float64 holds; scale the weights down"
        )


def refuse_overflow(out: Csr, distance: npt.NDArray[np.float64]) -> None:
    """Refuse a path whose length is infinite in float64: its end is not unreached.

    Args:
        out: Rows of out-neighbors with weights.
        distance: Distances, infinite where there is no path, or none so short ``[N]``.

    Raises:
        InvalidGraphError: an edge leads on from a reached node, to one that is not.
    """
    weight, begins = out.columns["weight"], out.begins_of("weight")
    for first, piece in out.pieces("weight"):
        for low in range(first, first + len(piece), _AT_A_TIME):
            places = np.arange(low, min(low + _AT_A_TIME, first + len(piece)))
            src = np.searchsorted(begins, places, side="right") - 1
            dst = out.indices[places - begins[src] + out.begins[src]]
            leads_on = np.isfinite(distance[src]) & np.isinf(distance[dst])
            if np.any(leads_on & np.isfinite(weight[places])):
                raise InvalidGraphError(
                    "the weights along a shortest path add up to more than float64 holds; "
                    "scale the weights down"
                )


def refuse_no_formula(topology: Topology) -> None:
    """Refuse a graph that is no formula: clauses, variables, and edges with signs.

    Raises:
        InvalidGraphError: a node has edges both ways, or a weight is 0 or NaN.
    """
    is_clause = np.asarray(topology.out_degree) > 0
    wrong = sum(int(np.count_nonzero(is_clause[dst])) for dst in _destinations(topology))
    if wrong:
        raise InvalidGraphError(
            f"survey_propagation needs edges from clauses to variables, but {wrong} edges "
            "lead to nodes that have edges themselves; ingest a formula (.cnf)"
        )
    unsigned = [weight[~(np.abs(weight) > 0)] for weight in _weights(topology)]
    if num := sum(map(len, unsigned)):
        first = next(weight[0] for weight in unsigned if len(weight))
        raise InvalidGraphError(
            "survey_propagation needs weights above or below 0, the signs of variables in "
            f"clauses, but {num} are not, the first {first}"
        )


def _destinations(topology: Topology) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the numbers of the nodes that edges lead to, some at a time."""
    if topology.graph is None:
        found = [(topology.csr("out").indices, 0)]
    else:
        found = [(b.index.indices, b.column_base) for b in topology.blocks("out")]
    for indices, base in found:
        for low in range(0, len(indices), _AT_A_TIME):
            yield indices[low : low + _AT_A_TIME].astype(np.int64) + base


def _weights(topology: Topology) -> Iterator[npt.NDArray[Any]]:
    if topology.graph is None:
        blocks: list[Any] = [topology.csr("out")]
    else:
        blocks = [block.index for block in topology.blocks("out")]
    for block in blocks:
        if block.weight is not None:
            for low in range(0, len(block.weight), _AT_A_TIME):
                yield block.weight[low : low + _AT_A_TIME]
