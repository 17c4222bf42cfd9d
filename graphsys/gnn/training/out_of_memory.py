"""What to do when a batch cannot be trained: memory, or a device's, is too small."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from graphsys.core.errors import (
    BudgetError,
    TrainingFailedError,
    told_with_place,
    user_place,
)
from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.loader import Batch
from graphsys.gnn.model_spec import is_file, spec_of


@contextmanager
def explained(config: GnnConfig, batch: Batch) -> Iterator[None]:
    """Say what would make a batch fit where memory is too small for it.

    Raises:
        BudgetError: It is too small.
        TrainingFailedError: The gradients of a user's own model cannot be computed.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as err:
        is_of_memory = isinstance(err, MemoryError | torch.OutOfMemoryError)
        if not is_of_memory and "can't allocate memory" not in str(err):
            if is_file(config.model) and user_place(err) is None:  # no line of theirs ran
                text = f"its gradients cannot be computed: {err}"
                raise TrainingFailedError(
                    told_with_place(TrainingFailedError(text), config.model)
                ) from err
            raise
        raise BudgetError(_smaller(config, batch)) from err


@contextmanager
def explained_whole() -> Iterator[None]:
    """Say what to do where a device's memory is too small for all nodes of a graph.

    Raises:
        BudgetError: It is too small.
    """
    try:
        yield
    except torch.OutOfMemoryError as err:
        raise BudgetError(
            "rows of all nodes, or of all neighbors of some, do not fit in the device's "
            "memory; use device='cpu', a smaller dim, or a batch_size that is not 0"
        ) from err


def _smaller(config: GnnConfig, batch: Batch) -> str:
    """Say what would make a batch fit."""
    nodes = sum(len(x) for x in batch.x.values())
    smaller = f"batch_size={max(1, config.batch_size // 2)}"
    if config.is_full_batch:
        smaller = "batch_size=1024"
    if spec_of(config.model).is_whole_graph:
        smaller = f"dim={max(1, config.dim // 2)}"
    return (
        f"a batch of {nodes} nodes and {batch.num_edges} edges does not fit into memory; "
        f"try --set {smaller}, or smaller fanouts than {list(config.hop_fanouts)}"
    )
