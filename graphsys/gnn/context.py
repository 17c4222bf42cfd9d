"""What one training is about: handed whole to everything that takes part in it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.device_transfer import DeviceTransfer
from graphsys.gnn.data.features import InputFeatures
from graphsys.gnn.data.message_graph import MessageGraph
from graphsys.gnn.models.model import Model
from graphsys.gnn.run import GnnRunState
from graphsys.gnn.tasks.task import Task
from graphsys.storage.reader import GraphReader


@dataclass(frozen=True, kw_only=True)
class GnnContext:
    """One training, from its plan to its last checkpoint, or a network that was trained.

    Attributes:
        graph: The graph, open.
        config: The settings.
        task: What is learned, with its seeds, its loss and its metric.
        message_graph: Where messages come from.
        features: What the network reads.
        network: The network.
        transfer: Takes batches to the device that the network is on; None: the CPU.
        budget: Most memory of the process, in bytes; None: what is free.
        path: The run's folder; None: nothing is written.
        state: The checkpoint to go on from; the training changes it.
        on_commit: Called with the state after each commit to ``path``, if anything is.
    """

    graph: GraphReader
    config: GnnConfig
    task: Task
    message_graph: MessageGraph
    features: InputFeatures
    network: Model
    transfer: DeviceTransfer | None = None
    budget: int | None = None
    path: Path | None = None
    state: GnnRunState = field(default_factory=lambda: GnnRunState(graph={}))
    on_commit: Callable[[GnnRunState], None] | None = None
