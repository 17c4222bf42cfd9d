"""What one training is about: handed whole to everything that takes part in it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.data.schedule import BucketTask, Layout
from graphsys.embedding.model import RelationSet
from graphsys.embedding.run import EmbeddingRunState
from graphsys.storage.reader import GraphReader


@dataclass(frozen=True, kw_only=True)
class EmbeddingContext:
    """One training, from its plan to its last checkpoint.

    A plan is made before there is a run: of it ``path`` is any folder on the run's disk,
    and ``state`` that of an untrained run.

    Attributes:
        path: The run's folder.
        graph: The graph trained on.
        config: The settings.
        model: The relations of every edge type.
        steps: The buckets of an epoch.
        regroup: Puts the partitions of the graph into the groups of an epoch and returns
            its buckets; None where partitions are trained as they are.
        state: The checkpoint to go on from; the training changes it.
        layout: The order of the units and the size of the buffer.
    """

    path: Path
    graph: GraphReader
    config: EmbeddingConfig
    model: list[RelationSet]
    steps: list[BucketTask]
    regroup: Callable[[int], list[BucketTask]] | None = None
    state: EmbeddingRunState = field(default_factory=lambda: EmbeddingRunState(graph={}))
    layout: Layout = field(default_factory=Layout)
