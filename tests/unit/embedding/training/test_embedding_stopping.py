from typing import Any

import numpy as np
import pytest

from graphsys.core.errors import ConfigError
from graphsys.embedding import EmbeddingConfig
from graphsys.embedding.run import EmbeddingRunState
from graphsys.embedding.training.trainer import is_waiting_over, take_value


def walk(values: list[float], **settings: Any) -> tuple[EmbeddingRunState, list[int]]:
    """Feed values of one metric, one per epoch, until waiting is over."""
    config = EmbeddingConfig(eval_every=1, eval_fraction=0.1, **settings)
    state, better = EmbeddingRunState(graph={}), []
    for value in values:
        state.epoch += 1
        if take_value(config, state, value):
            better.append(state.epoch)
        if is_waiting_over(config, state):
            break
    return state, better


def test_training_ends_after_patience_evaluations_without_a_better_one() -> None:
    state, better = walk([0.1, 0.3, 0.2, 0.25, 0.29, 0.9], patience=3)
    assert better == [1, 2]
    assert state.epoch == 5
    assert state.best == {"epoch": 2, "value": 0.3, "waited": 3}


def test_a_better_value_begins_the_waiting_anew() -> None:
    state, better = walk([0.1, 0.05, 0.2, 0.1, 0.3, 0.1, 0.1], patience=2)
    assert better == [1, 3, 5]
    assert state.epoch == 7


@pytest.mark.parametrize("metric", ["mr", "held_out_loss"])
def test_ranks_and_losses_are_better_when_lower(metric: str) -> None:
    state, better = walk([9.0, 5.0, 6.0, 4.0], patience=2, monitor=metric)
    assert better == [1, 2, 4]
    assert state.best["value"] == 4.0


def test_an_improvement_below_the_smallest_that_counts_is_none() -> None:
    _, better = walk([0.1, 0.105, 0.12], patience=9, min_improvement=0.01)
    assert better == [1, 3]


def test_no_number_is_never_the_best() -> None:
    state, better = walk([np.nan, 0.1, np.nan, np.nan], patience=2)
    assert better == [2]
    assert state.epoch == 4


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"patience": 1}, "patience: got 1 with monitor mrr and eval_every 0"),
        (
            {"patience": 1, "monitor": "held_out_loss"},
            "patience: got 1 with monitor held_out_loss and eval_fraction 0",
        ),
        (
            {"eval_every": 1, "eval_split": "held_out"},
            "eval_split: got held_out and eval_fraction 0",
        ),
        ({"train_only": "new"}, "train_only: got new without init_from"),
        ({"init_lr": 0.5}, "init_lr: given without init_from"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        EmbeddingConfig(**settings)
