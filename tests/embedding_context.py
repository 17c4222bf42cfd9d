"""A training's context for tests that make its parts one by one."""

from pathlib import Path

from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.context import EmbeddingContext
from graphsys.embedding.data.schedule import Layout
from graphsys.embedding.model import relation_sets
from graphsys.embedding.run import EmbeddingRunState, describe_graph
from graphsys.embedding.training.edge_sets import list_steps
from graphsys.storage import Graph


def context_of(
    graph: Graph,
    config: EmbeddingConfig,
    path: Path = Path(),
    layout: Layout = Layout(),  # noqa: B008  (frozen)
) -> EmbeddingContext:
    """Return the context of a training of a graph as it is, from the beginning."""
    model = relation_sets(graph, config)
    return EmbeddingContext(
        path=path,
        graph=graph,
        config=config,
        model=model,
        layout=layout,
        steps=list_steps(graph, model, config),
        state=EmbeddingRunState(graph=describe_graph(graph)),
    )
