"""What algorithms check about their parameters, and what several of them prepare."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError, InvalidGraphError
from graphsys.engine.edge_weights import ONCE
from graphsys.engine.topology import Topology
from graphsys.graph.csr import Csr, transpose


def require(is_fine: bool, name: str, found: object, expected: str) -> None:
    """Refuse the value of a parameter.

    Raises:
        ConfigError: ``is_fine`` is false.
    """
    if not is_fine:
        raise ConfigError(f"{name} is {found!r}, expected {expected}")


def require_count(name: str, found: int, least: int = 1) -> None:
    """Refuse what is not a whole number of at least ``least``.

    Raises:
        ConfigError: it is not.
    """
    is_whole = isinstance(found, (int, np.integer)) and not isinstance(found, bool)
    require(is_whole and found >= least, name, found, f"a whole number >= {least}")


def refuse_weight(begins: npt.NDArray[Any], weight: npt.NDArray[Any], place: int) -> None:
    """Refuse a weight that an algorithm cannot use, naming its node.

    Args:
        begins: Where each row begins in the weights ``[N]``.
        weight: The weights.
        place: Which one, or -1.

    Raises:
        InvalidGraphError: ``place`` is not -1.
    """
    if place >= 0:
        row = int(np.searchsorted(begins, place, side="right")) - 1
        raise InvalidGraphError(
            f"an edge of node number {row} weighs {weight[place]}, but this algorithm "
            f"needs finite weights >= 0; {ONCE}"
        )


def refuse_size(topology: Topology, name: str, most: int, num_entries: int = 0) -> None:
    """Refuse a graph of more nodes, or entries of rows, than an algorithm can number.

    Raises:
        InvalidGraphError: it has more than ``most``.
    """
    found = {"nodes": topology.num_nodes, "entries": num_entries}
    for what, number in found.items():
        if number > most:
            raise InvalidGraphError(
                f"{name} takes at most {most} {what}, but there are {number}; take the "
                "part that matters, graph.subgraph(ids)"
            )


def weight_of(csr: Csr) -> npt.NDArray[Any]:
    """Return the weights in row order; ones where the graph has none."""
    return np.ones(csr.num_edges) if csr.weight is None else csr.weight


def edges_by_rank(
    topology: Topology,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return the ranks of both ends of every entry of the out rows, and its weight ``[E]``.

    Weights are ones where the graph has none. 24 bytes an entry, of rows in memory.
    """
    out, rank = topology.csr("out"), topology.rank
    src = np.repeat(np.arange(out.num_nodes), out.degrees())
    dst = out.indices.astype(np.int64)
    weight = weight_of(out).astype(np.float64)
    if rank is not None:
        src, dst = rank[src].astype(np.int64), rank[dst].astype(np.int64)
    return src, dst, weight


def rows_by_rank(topology: Topology, csr: Csr) -> Csr:
    """Renumber the nodes of sorted rows by their rank, so that only ids matter.

    Returns:
        ``csr`` itself where numbers are ranks; else new rows, sorted, with the columns.

    Complexity:
        O(N + E).
    """
    rank, by_rank = topology.rank, topology.by_rank
    if rank is None or by_rank is None:
        return csr
    # rows are moved in one transpose each: rank -> rows, then rank -> columns
    by_column = transpose(_with_columns(csr, rank), csr.num_nodes)
    return transpose(_with_columns(by_column, rank), csr.num_nodes)


def _with_columns(csr: Csr, rank: npt.NDArray[Any]) -> Csr:
    """Reorder the rows of ``csr`` by rank; the neighbors keep their numbers."""
    lengths = csr.degrees()
    order = np.empty(csr.num_nodes, dtype=np.int64)
    order[rank] = np.arange(csr.num_nodes)
    indptr = np.concatenate([[0], np.cumsum(lengths[order])])
    shift = csr.indptr[:-1].astype(np.int64)[order] - indptr[:-1]
    places = np.arange(csr.num_edges) + np.repeat(shift, lengths[order])
    columns = {name: column[places] for name, column in csr.columns.items()}
    return Csr(indptr=indptr, indices=csr.indices[places], **columns)
