"""Whether what is asked of a network of links fits a budget of memory."""

from graphsys.core.types import true_splits
from graphsys.gnn.inference.trained_model import OpenedRun
from graphsys.gnn.tasks.link_task import LinkTask

_PAIR_BYTES = 64  # of an edge: as read, as a matrix by rows and by columns
_SCORE_BYTES = 16  # of a node, for one of those asked about: scores, what is better
_AT_A_TIME = 256


def require_room(run: OpenedRun, what: str, beside: int = 0) -> None:
    """Check that the rows that a task compares, and their scores, fit the run's budget.

    Raises:
        BudgetError: They do not; the message names an amount that works.
    """
    if run.budget is None:
        return
    task, graph = run.context.task, run.graph
    if not isinstance(task, LinkTask):
        run.require_room(what, [run.node_type], beside)
        return
    types = task.row_types(None)
    edges = max(
        sum(graph.num_edges_of(kind, split) for split in true_splits(graph.splits(kind)))
        for kind in graph.edge_types
    )
    scores = _SCORE_BYTES * _AT_A_TIME * max(map(graph.num_nodes_of, types))
    run.require_room(what, types, beside + scores + _PAIR_BYTES * edges)
