"""What a training on a cluster returns."""

from dataclasses import dataclass

from graphsys.training.report import TrainReport


@dataclass(frozen=True, kw_only=True)
class ClusterTrainReport(TrainReport):
    """What a training on a cluster did.

    Attributes:
        workers: How many trained together.
        restarts: How often workers were started again.
    """

    workers: int
    restarts: int = 0
