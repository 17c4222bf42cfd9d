"""Known labels of nodes, from a store's node tables."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graphsys.core.errors import ConfigError
from graphsys.engine.topology import Topology

_PASS: Final = "pass labels={id: integer} (--param labels=ID=0,ID=1)"


def stored_labels(
    topology: Topology,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return which nodes have a column ``label``, and what it says.

    Where nodes have a column ``split`` too, only those of ``train``.

    Returns:
        The engine's numbers of the nodes, ascending, and their labels; int64 ``[K]`` both.

    Raises:
        ConfigError: no node has a label, or labels are not integers, or are negative.
    """
    graph = topology.graph
    numbers, labels = [], []
    for kind in graph.node_types if graph else ():
        assert graph is not None  # else there were no types
        bases = graph.offsets(kind) + topology.numbers.base(kind)
        for part in range(graph.num_partitions(kind)):
            table = graph.nodes(kind, part)
            if "label" not in table.column_names:
                continue
            found, values = _labels_of(table, kind)
            numbers.append(found + int(bases[part]))
            labels.append(values)
    if not sum(map(len, numbers)):
        raise ConfigError(f"no node of {topology.numbers.where} has a label; {_PASS}")
    return np.concatenate(numbers), np.concatenate(labels)


def _labels_of(
    table: pa.Table, kind: str
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the rows of a node table that have a label, and their labels."""
    label = table["label"]
    if pa.types.is_floating(label.type):  # integers, some of which are missing
        label = _whole(label)
    if not pa.types.is_integer(label.type):
        raise ConfigError(
            f"labels of nodes {kind!r} are {label.type}, expected integers; {_PASS}"
        )
    chosen = pc.is_valid(label)
    if "split" in table.column_names:
        chosen = pc.and_(chosen, pc.fill_null(pc.equal(table["split"], "train"), False))
    rows = pc.indices_nonzero(chosen).to_numpy().astype(np.int64)
    values = label.filter(chosen).to_numpy().astype(np.int64, copy=False)
    if len(values) and values.min() < 0:
        row = int(np.argmax(values < 0))
        node = table["id"][int(rows[row])].as_py()
        raise ConfigError(f"label of {node!r} is {values[row]}, expected an int >= 0")
    return rows, values


def _whole(label: Any) -> Any:
    """Return numbers that are whole, or missing, as integers; others as they are."""
    values = label.to_numpy()
    is_given = ~np.isnan(values)
    given = values[is_given]
    if not (np.isfinite(given) & (given == np.rint(given))).all():
        return label
    codes = np.where(is_given, values, 0).astype(np.int64)
    return pa.chunked_array([pa.array(codes, mask=~is_given)])
