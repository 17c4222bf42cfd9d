"""Known labels of nodes, from a store's node tables."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graphsys.core.errors import ConfigError
from graphsys.engine.topology import Topology


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
        raise ConfigError(
            f"no node of {topology.numbers.where} has a label; pass labels={{id: integer}}"
        )
    return np.concatenate(numbers), np.concatenate(labels)


def _labels_of(
    table: pa.Table, kind: str
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the rows of a node table that have a label, and their labels."""
    label = table["label"]
    if not pa.types.is_integer(label.type):
        raise ConfigError(
            f"labels of nodes {kind!r} are {label.type}, expected integers; "
            "pass labels={id: integer}"
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
