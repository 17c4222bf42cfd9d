"""Settings of what surrounds the training: what is trained when, evaluated, kept."""
# ruff: noqa: RUF009  (option() only makes a field)

from dataclasses import dataclass
from typing import Literal

from graphsys.core.config import option
from graphsys.core.errors import ConfigError

StopMetric = Literal["mrr", "mr", "hits@1", "hits@3", "hits@10", "held_out_loss"]


@dataclass(frozen=True, kw_only=True)
class EdgeSetConfig:
    """Some of the edges; an epoch trains one set after the other."""

    edge_types: tuple[str, ...] = option((), "edge types; all that are trained by default")
    split: str | None = option(None, "split; train, or the only one, by default")


@dataclass(frozen=True, kw_only=True)
class ControlConfig:
    """The part of an embedding's settings that no kernel sees."""

    edge_sets: tuple[EdgeSetConfig, ...] = option(
        (), "edges that an epoch trains, one set after the other; train by default"
    )
    edge_chunks: int = option(
        1, "parts of every bucket's edges, each visited once per epoch", minimum=1
    )
    checkpoint_seconds: float = option(
        0.0, "shortest time between checkpoints, which follow a bucket", minimum=0
    )
    preserve_every: int = option(
        0, "keep the checkpoint after every so many epochs for good; 0: none", minimum=0
    )
    eval_every: int = option(0, "evaluate after every so many epochs; 0: never", minimum=0)
    eval_split: str = option("valid", "the split for that, or held_out for eval_fraction")
    eval_fraction: float = option(
        0.0, "fraction of every bucket's edges that is not trained", minimum=0, maximum=0.9
    )
    patience: int = option(
        0, "evaluations without a better stop_metric before training ends; the best "
        "checkpoint is kept; 0: train to the end", minimum=0,
    )  # fmt: skip
    stop_metric: StopMetric = option("mrr", "what patience waits for")
    min_improvement: float = option(
        0.0, "smallest change of stop_metric that counts as better", minimum=0
    )
    init_from: str | None = option(
        None, "folder of a run whose rows and operators are the first values here"
    )
    init_state: bool = option(True, "its Adagrad states come along")
    init_lr: float | None = option(
        None, "factor on the learning rates of what came from there, 0: it stays as it "
        "is; 1 by default, 0 with train_only=new", minimum=0, maximum=1,
    )  # fmt: skip
    train_only: Literal["all", "new"] = option(
        "all", "new: only edges that the graph of init_from lacks"
    )

    def __post_init__(self) -> None:
        """Check what concerns several fields at once.

        Raises:
            ConfigError: Fields that contradict each other.
        """
        measures_loss = self.stop_metric == "held_out_loss"
        if self.patience and measures_loss and not self.eval_fraction:
            raise ConfigError(
                "patience: got stop_metric held_out_loss and eval_fraction 0, expected "
                "held-out edges; set eval_fraction"
            )
        if self.patience and not measures_loss and not self.eval_every:
            raise ConfigError(
                f"patience: got stop_metric {self.stop_metric} and eval_every 0, expected "
                "evaluations while training; set eval_every, or stop_metric=held_out_loss"
            )
        if self.eval_split == "held_out" and self.eval_every and not self.eval_fraction:
            raise ConfigError(
                "eval_split: got held_out and eval_fraction 0, expected held-out edges; "
                "set eval_fraction"
            )
        if self.init_from is None and self.train_only == "new":
            raise ConfigError(
                "train_only: got new without init_from, expected the run whose graph has "
                "the old edges"
            )
        if self.init_from is None and self.init_lr is not None:
            raise ConfigError(
                "init_lr: given without init_from, expected the run it concerns"
            )

    @property
    def init_factor(self) -> float:
        """Factor on the learning rates of what came from ``init_from``."""
        if self.init_lr is not None:
            return self.init_lr
        return 0.0 if self.train_only == "new" else 1.0
