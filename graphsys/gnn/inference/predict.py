"""Predictions for nodes: classes with their probabilities, or the rows of the network."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from graphsys.core.errors import ConfigError
from graphsys.core.progress import IN_NOTEBOOKS, Progress
from graphsys.datasets.temporary import GraphLike
from graphsys.gnn.inference.trained_model import OpenedRun, open_run
from graphsys.training.question_tables import read_question_table

_ANSWER_BYTES = 64  # its id, class and probability


def predict(
    run: str | Path | OpenedRun,
    nodes: Sequence[Any] | None = None,
    *,
    relation: str | None = None,
    graph: GraphLike | None = None,
    device: str = "cpu",
    memory: int | str | None = None,
    progress: Progress = IN_NOTEBOOKS,
) -> pa.Table:
    """Predict for nodes.

    Args:
        run: A run or its folder.
        nodes: The users' ids; all nodes of the type by default.
        relation: Whose rows are wanted, of model gatne: the name of an edge type, or
            ``TYPE/RELATION``.
        graph: The graph trained on, if it is not where it was; or another one with the
            same features and edge types, for nodes that the training did not know.
        device: Where to compute, ``cpu`` or ``cuda``; an opened run has its own.
        memory: Budget of anonymous memory of the process, as ``"4GB"`` or in bytes; an
            opened run has its own.
        progress: Receives a stage per layer.

    Returns:
        A row per node, in the order given: ``id`` and, for classes, ``prediction`` (the
        most likely class; a list where a node may have several) and ``probability`` (of it,
        or of every class in the list); for numbers ``prediction``; for links ``embedding``
        (FixedSizeList<float32>).

    Raises:
        UnknownNameError: A node is not in the graph, or there is no such relation.
        ConfigError: There is no run, its graph is gone, or another does not fit; a
            relation is missing, or is given where there is one row per node.
        BudgetError: The budget is too small; the message names one that works.
    """
    opened = open_run(run, graph=graph, device=device, memory=memory)
    task = opened.context.task
    opened.require_relation(relation)
    node_type = opened.node_type
    ids = opened.graph.node_ids(node_type)
    numbers = None
    if nodes is not None:
        numbers = opened.graph.lookup(node_type, nodes).astype(np.int64)
        ids = opened.graph.ids_of(node_type, numbers)
    asked = len(ids)
    opened.require_room("predicting", [node_type], asked * _ANSWER_BYTES, numbers)
    found = opened.output(numbers, progress=progress)
    return pa.table({"id": ids, **task.answers(found, relation)})


def read_nodes(file: str | Path) -> list[str]:
    """Read ids of nodes: a line each (.txt), or the column ``id`` or only one of a table.

    Raises:
        ConfigError: The file is not there, is of another kind, has no such column, or a
            row of it names no node; there is none.
    """
    table = read_question_table(file, "id")
    if "id" not in table.column_names:
        if table.num_columns > 1:
            raise ConfigError(
                f"{file} has columns {', '.join(table.column_names)}, expected a column id"
            )
        table = table.rename_columns(["id"])
    ids = table.column("id").to_pylist()
    for row, value in enumerate(ids):
        if not isinstance(value, str | int) or isinstance(value, bool):
            raise ConfigError(
                f"{file}: row {row} of column id is {value!r}, expected text or an integer"
            )
    return [str(value) for value in ids]
