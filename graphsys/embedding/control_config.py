"""Settings of what surrounds the training: what is trained when, evaluated, kept."""
# ruff: noqa: RUF009  (option() only makes a field)

from dataclasses import dataclass
from typing import Any, Literal

from graphsys.core.config import OfPresets, option
from graphsys.core.errors import ConfigError
from graphsys.training.config import require_evaluations

StopMetric = Literal["mrr", "mr", "hits@1", "hits@3", "hits@10", "held_out_loss"]
HELD_OUT_LOSS = "held_out_loss"
LOWER_IS_BETTER = frozenset({"mr", HELD_OUT_LOSS})


@dataclass(frozen=True, kw_only=True)
class EdgeSetConfig:
    """Some of the edges; an epoch trains one set after the other."""

    edge_types: tuple[str, ...] = option(
        (), "Edge types of the set; by default all that are trained."
    )
    split: str | None = option(
        None, "Split of the edges; by default train, or the only one."
    )


@dataclass(frozen=True, kw_only=True)
class ControlConfig(OfPresets):
    """The part of an embedding's settings that no kernel sees."""

    # fmt: off
    edge_sets: tuple[EdgeSetConfig, ...] = option(
        (),
        "Edges of an epoch as [[edge_sets]] tables, one after the other; by default the "
        "split train.",
        group="Edges",
    )
    edge_chunks: int = option(
        1, "Parts that every bucket's edges are cut into; an epoch visits each once.",
        minimum=1, group="Edges",
    )
    init_from: str | None = option(
        None, "Folder of a run whose rows and operators are the first values here.",
        group="Start",
    )
    init_state: bool = option(
        True, "Whether the optimizer's state comes along from there.", group="Start"
    )
    init_lr: float | None = option(
        None,
        "Factor on the learning rate of what came from there; 0: it stays as it is. By "
        "default 1, with train_only = new 0.",
        minimum=0, maximum=1, group="Start",
    )
    train_only: Literal["all", "new"] = option(
        "all", "new: train only the edges that the graph of init_from lacks.",
        group="Start",
    )
    eval_every: int = option(
        0, "Evaluate after every so many epochs; 0: never.",
        minimum=0, group="Evaluation", resumable=True,
    )
    eval_split: str = option(
        "valid", "Split that is evaluated while training, or held_out for eval_fraction.",
        group="Evaluation", applies="eval_every > 0",
    )
    eval_fraction: float = option(
        0.0, "Share of every bucket's edges that is held out of the training.",
        minimum=0, maximum=0.9, group="Evaluation",
    )
    monitor: StopMetric = option(
        "mrr", "The validation metric that early stopping watches.",
        group="Evaluation", aliases=("stop_metric",),
    )
    target: float | None = option(
        None,
        "Value of monitor; the report says how long the training took to reach it.",
        group="Evaluation",
    )
    stop_at_target: bool = option(
        False, "End the training when an evaluation has reached target.", group="Evaluation"
    )
    patience: int = option(
        0,
        "End the training after so many evaluations without a better one, and keep the "
        "best; 0: train all epochs.",
        minimum=0, group="Evaluation",
    )
    min_improvement: float = option(
        0.0, "Smallest change of monitor that counts as better.",
        minimum=0, group="Evaluation", applies="patience > 0, lr_schedule = plateau",
    )
    preserve_every: int = option(
        0, "Keep the checkpoint after every so many epochs for good; 0: none.",
        minimum=0, group="Evaluation", resumable=True,
    )
    checkpoint_seconds: float = option(
        0.0, "Shortest time between two checkpoints, which follow a bucket.",
        minimum=0, group="Machine", resumable=True,
    )
    tensorboard: bool = option(
        False, "Write curves for TensorBoard into the run.", group="Machine", resumable=True
    )
    numbers: bool = option(
        False,
        "Count rows, parameters and gradients by table and size, and what of them 16 bits "
        "would not hold.",
        group="Machine", resumable=True,
    )
    # fmt: on

    def __post_init__(self, of_preset: tuple[tuple[str, Any], ...]) -> None:
        """Check what concerns several fields at once.

        Raises:
            ConfigError: Fields that contradict each other.
        """
        super().__post_init__(of_preset)
        measures_loss = self.monitor == HELD_OUT_LOSS
        if self.patience:
            self.require_watched("patience", self.patience)
        require_evaluations(self)
        if self.target is not None and measures_loss:
            raise ConfigError(
                f"target: got {self.target} with monitor held_out_loss, expected a metric "
                "of eval_every's evaluations; set monitor=mrr"
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

    def require_watched(self, name: str, value: object) -> None:
        """Check that the metric that a setting watches is measured.

        Raises:
            ConfigError: It is not.
        """
        if self.monitor == HELD_OUT_LOSS:
            if not self.eval_fraction:
                raise ConfigError(
                    f"{name}: got {value} with monitor held_out_loss and eval_fraction 0, "
                    "expected held-out edges; set eval_fraction"
                )
        elif not self.eval_every:
            raise ConfigError(
                f"{name}: got {value} with monitor {self.monitor} and eval_every 0, "
                "expected evaluations while training; set eval_every, or "
                "monitor=held_out_loss"
            )

    @property
    def monitored(self) -> str:
        """Name of the metric that is watched, among the metrics of a run."""
        if self.monitor == HELD_OUT_LOSS:
            return HELD_OUT_LOSS
        return f"{self.eval_split}_{self.monitor}"

    @property
    def init_factor(self) -> float:
        """Factor on the learning rates of what came from ``init_from``."""
        if self.init_lr is not None:
            return self.init_lr
        return 0.0 if self.train_only == "new" else 1.0
