"""The tasks by name: what a config asks to be learned."""

from graphsys.gnn.config import GnnConfig
from graphsys.gnn.model_spec import spec_of
from graphsys.gnn.tasks.link_prediction import LinkPrediction, Recommendation
from graphsys.gnn.tasks.multiplex_links import MultiplexLinks
from graphsys.gnn.tasks.regression import NodeRegression
from graphsys.gnn.tasks.task import NodeClassification, Task
from graphsys.storage.reader import Graph


def make_task(graph: Graph, config: GnnConfig) -> Task:
    """Return the task that a config names.

    Raises:
        ConfigError: The task does not fit the graph.
    """
    if spec_of(config.model).is_skipgram:
        return MultiplexLinks(graph, config)
    if config.task == "link_prediction":
        return LinkPrediction(graph, config)
    if config.task == "recommendation":
        return Recommendation(graph, config)
    if config.task == "regression":
        return NodeRegression(graph, config)
    return NodeClassification(graph, config)
