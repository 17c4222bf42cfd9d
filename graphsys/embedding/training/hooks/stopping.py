"""Early stopping: which checkpoint is the best so far, and when waiting is over."""

from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.run import EmbeddingRunState

HELD_OUT_LOSS = "held_out_loss"
_LOWER_IS_BETTER = frozenset({"mr", HELD_OUT_LOSS})


def take_value(config: EmbeddingConfig, state: EmbeddingRunState, value: float) -> bool:
    """Compare a new value of the metric with the best; return whether it is better.

    A value that is no number is never better. Bookkeeping is in ``state.best``: ``epoch``,
    ``value``, and ``waited``, the evaluations since then.

    Args:
        config: ``monitor`` and ``min_improvement``.
        state: The run's state, at the end of the epoch that was evaluated; changed.
        value: The metric.
    """
    best = state.best
    sign = -1.0 if config.monitor in _LOWER_IS_BETTER else 1.0
    gain = sign * (value - best["value"]) if best else float("inf")
    is_better = value == value and (not best or gain > config.min_improvement)
    if is_better:
        state.best = {"epoch": state.epoch, "value": float(value), "waited": 0}
    elif best:
        best["waited"] += 1
    return is_better


def is_waiting_over(config: EmbeddingConfig, state: EmbeddingRunState) -> bool:
    """Return whether the metric has not improved for ``patience`` evaluations."""
    return bool(state.best) and state.best["waited"] >= config.patience > 0
