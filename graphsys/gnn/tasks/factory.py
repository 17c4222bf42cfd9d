"""The tasks by name: what a config asks to be learned."""

from graphsys.gnn.config import GnnConfig
from graphsys.gnn.model_spec import spec_of
from graphsys.gnn.part_specs import TASKS
from graphsys.gnn.tasks.multiplex_links import MultiplexLinks
from graphsys.gnn.tasks.task import Learned, Task
from graphsys.storage.reader import GraphReader


def make_task(
    graph: GraphReader, config: GnnConfig, learned: Learned | None = None
) -> Task:
    """Return the task that a config names.

    Args:
        graph: The graph.
        config: The settings.
        learned: What a run learned of the labels of another graph: those of this one are
            not looked at, and there may be none.

    Raises:
        ConfigError: The task does not fit the graph.
    """
    if spec_of(config.model).is_skipgram:
        return MultiplexLinks(graph, config)
    spec = TASKS.get(config.task)
    given = {"learned": learned} if spec.has_labels else {}
    made: Task = spec.make(graph, config, **given)
    return made
