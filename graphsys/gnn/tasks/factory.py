"""The tasks by name: what a config asks to be learned."""

from graphsys.gnn.config import GnnConfig
from graphsys.gnn.model_spec import spec_of
from graphsys.gnn.part_specs import TASKS
from graphsys.gnn.tasks.multiplex_links import MultiplexLinks
from graphsys.gnn.tasks.task import Task
from graphsys.storage.reader import GraphReader


def make_task(graph: GraphReader, config: GnnConfig) -> Task:
    """Return the task that a config names.

    Raises:
        ConfigError: The task does not fit the graph.
    """
    if spec_of(config.model).is_skipgram:
        return MultiplexLinks(graph, config)
    made: Task = TASKS.get(config.task).make(graph, config)
    return made
