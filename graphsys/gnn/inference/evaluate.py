"""How good a run is on held-out nodes or edges."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from graphsys.core.progress import IN_NOTEBOOKS, Progress
from graphsys.datasets.temporary import GraphLike
from graphsys.gnn.inference.memory_check import require_room
from graphsys.gnn.inference.trained_model import OpenedRun, open_run

Ints = npt.NDArray[np.int64]


def evaluate(
    run: str | Path | OpenedRun,
    *,
    split: str = "test",
    graph: GraphLike | None = None,
    device: str = "cpu",
    memory: int | str | None = None,
    progress: Progress = IN_NOTEBOOKS,
) -> dict[str, Any]:
    """Measure a run on a split, from all neighbors of its nodes.

    Args:
        run: A run or its folder.
        split: The split.
        graph: The graph trained on, if it is not where it was.
        device: Where to compute, ``cpu`` or ``cuda``; an opened run has its own.
        memory: Budget of anonymous memory of the process, as ``"4GB"`` or in bytes; an
            opened run has its own.
        progress: Receives a stage per layer.

    Returns:
        ``split`` and ``metrics``. Classes of nodes: ``accuracy``, ``f1_micro``,
        ``f1_macro``, ``loss``, ``num_nodes``, and ``roc_auc`` (of two classes, the second's
        score; with several classes a node their mean). Numbers of nodes: see
        :meth:`graphsys.gnn.tasks.regression.NodeRegression.measure`. Links: see
        :func:`graphsys.gnn.tasks.link_ranking.rank_pairs`, of model gatne
        :func:`graphsys.gnn.tasks.multiplex_links.tell_edges`; recommendations:
        :func:`graphsys.gnn.tasks.link_ranking.recommend_pairs`; edges in order of time:
        :func:`graphsys.gnn.tasks.event_ranking.rank_events`.

    Raises:
        UnknownNameError: There is no such split.
        ConfigError: There is no run, or its graph is gone.
        BudgetError: The budget is too small; the message names one that works.
    """
    opened = open_run(run, graph=graph, device=device, memory=memory)
    opened.require_same_graph()
    require_room(opened, "evaluating")

    def output(node_type: str, nodes: Ints) -> torch.Tensor:
        found = opened.output(nodes, node_type=node_type, progress=progress)
        return torch.from_numpy(found)

    return {"split": split, "metrics": opened.context.task.measure(split, output)}
