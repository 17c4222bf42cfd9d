"""Learning rates over time: factors on the rate that a config states, for both trainers."""

import math
from collections.abc import Sequence
from typing import Literal

Schedule = Literal["constant", "linear", "cosine", "plateau"]


def schedule_factor(schedule: Schedule, done: float) -> float:
    """Return the factor once a share of the training is done.

    Args:
        schedule: ``linear`` falls to 0 by equal amounts, ``cosine`` by half a wave
            (Loshchilov, Hutter, "SGDR", ICLR 2017, without restarts); the others stay.
        done: From 0 to 1.

    Examples:
        >>> [round(schedule_factor("cosine", done), 3) for done in (0, 0.25, 0.5, 1)]
        [1.0, 0.854, 0.5, 0.0]
    """
    if schedule == "linear":
        return 1.0 - done
    if schedule == "cosine":
        return (1.0 + math.cos(math.pi * done)) / 2
    return 1.0


def plateau_factor(
    values: Sequence[float],
    *,
    patience: int,
    factor: float,
    min_improvement: float = 0.0,
    is_lower_better: bool = False,
) -> float:
    """Return the factor after some evaluations, of a rate that falls where none is better.

    It is a function of the values alone, so that a resumed training has the same.

    Args:
        values: Of the metric that is watched, in order.
        patience: Evaluations in a row without a better one, after which the rate falls.
        factor: What it falls by.
        min_improvement: Smallest change that counts as better.
        is_lower_better: Of the metric.

    Examples:
        >>> plateau_factor([0.1, 0.2, 0.2, 0.15], patience=2, factor=0.5)
        0.5
    """
    sign = -1.0 if is_lower_better else 1.0
    best, waited, result = -math.inf, 0, 1.0
    for value in values:
        if sign * value > best + min_improvement:
            best, waited = sign * value, 0
            continue
        waited += 1
        if waited == patience:
            result, waited = result * factor, 0
    return result
