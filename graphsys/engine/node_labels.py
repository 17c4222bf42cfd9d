"""Known labels of nodes, from a store's node tables."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphsys.core.errors import ConfigError
from graphsys.engine.topology import Topology


def stored_labels(topology: Topology) -> dict[Any, int]:
    """Return the column ``label`` by user id, where nodes have one.

    Where nodes have a column ``split`` too, only those of ``train``.

    Raises:
        ConfigError: no node has a label, or labels are not integers.
    """
    graph = topology.graph
    found: dict[Any, int] = {}
    for kind in graph.node_types if graph else ():
        for part in range(graph.num_partitions(kind) if graph else 0):
            table = graph.nodes(kind, part) if graph else pa.table({})
            if "label" not in table.column_names:
                continue
            if not pa.types.is_integer(table.schema.field("label").type):
                raise ConfigError(
                    f"labels of nodes {kind!r} are {table.schema.field('label').type}, "
                    "expected integers; pass labels={id: integer}"
                )
            chosen = pc.is_valid(table["label"])
            if "split" in table.column_names:
                chosen = pc.and_(chosen, pc.equal(table["split"], "train"))
            table = table.filter(pc.fill_null(chosen, False))
            ids, labels = table["id"].to_pylist(), table["label"].to_pylist()
            found.update(zip(ids, labels, strict=True))
    if not found:
        raise ConfigError(
            f"no node of {topology.numbers.where} has a label; pass labels={{id: integer}}"
        )
    return found
