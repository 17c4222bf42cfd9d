"""What a config optimizes, in the numbers that kernels take."""

from typing import Final

import numpy as np

from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.spec.comparators import comparator_of
from graphsys.embedding.spec.losses import loss_of
from graphsys.kernels.cpu.embedding import regularizers
from graphsys.kernels.cpu.embedding.bias import BIASED
from graphsys.kernels.cpu.embedding.calls import Objective

REGULARIZER_CODES: Final = {
    "n3": regularizers.N3,
    "l2": regularizers.SQUARES,
    "dura": regularizers.DURA,
}


def objective_of(config: EmbeddingConfig) -> Objective:
    """Return what a config optimizes, as the kernels take it."""
    has_smoothing = config.mode != "sampled"
    return Objective(
        comparator=comparator_of(config.comparator).code + BIASED * config.bias,
        loss=loss_of(config.loss).code,
        margin=np.float32(config.label_smoothing if has_smoothing else config.margin),
    )
