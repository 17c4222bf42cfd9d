"""What a model reaches over folds, by the protocol in which it is published."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from graphsys.core.errors import ConfigError
from graphsys.gnn import run as runs
from graphsys.gnn.config import GnnConfig


def average_folds(folds: Sequence[str | Path]) -> dict[str, Any]:
    """Return the accuracy over folds after the epoch at which their mean is best.

    One epoch is chosen for all folds, by the folds that are held out: the figure is that of
    the paper's tables, and above what unseen graphs would have.

    Args:
        folds: Runs of task graph_classification that differ in ``fold`` alone, one for
            each, with ``eval_split = "test"``.

    Returns:
        ``folds``, the ``epoch``, and over folds the mean ``accuracy`` after it and its
        standard deviation ``accuracy_std``.

    Raises:
        ConfigError: Runs of other tasks or settings, without folds or evaluations of them,
            not complete, or of a fold that is missing or there twice.

    References:
        Xu et al., "How powerful are graph neural networks?", ICLR 2019, section 7.
    """
    paths = [Path(path) for path in folds]
    configs = [runs.read_config(path) for path in paths]
    states = [runs.read_state(path) for path in paths]
    if not paths:
        raise ConfigError("folds: got no runs, expected one for each fold")
    for path, config, state in zip(paths, configs, states, strict=True):
        if not config.folds:
            raise ConfigError(
                f"the run {path} has no folds; train it with folds=10 and fold=0 to 9"
            )
        if (other := _other(config, configs[0])) is not None:
            raise ConfigError(
                f"the runs {paths[0]} and {path} differ in {other}; expected fold alone"
            )
        if not state.is_complete:
            raise ConfigError(f"the run {path} is not complete; resume it")
        if config.eval_split != "test" or not state.history:
            raise ConfigError(
                f"the run {path} was not evaluated on its fold; train it with "
                "eval_split=test and eval_every=1"
            )
    found = sorted(config.fold for config in configs)
    if found != list(range(configs[0].folds)):
        raise ConfigError(
            f"folds: got the runs of {', '.join(map(str, found))}, expected one of each "
            f"from 0 to {configs[0].folds - 1}"
        )
    epochs = [[entry[0] for entry in state.history] for state in states]
    if any(each != epochs[0] for each in epochs):
        raise ConfigError(
            "the runs were evaluated after other epochs; train them without patience, for "
            "as many"
        )
    curves = np.array([[entry[2] for entry in state.history] for state in states])
    best = int(curves.mean(axis=0).argmax())
    return {
        "folds": len(paths),
        "epoch": int(epochs[0][best]),
        "accuracy": float(curves[:, best].mean()),
        "accuracy_std": float(curves[:, best].std()),
    }


def _other(config: GnnConfig, first: GnnConfig) -> str | None:
    """Return a setting in which two configs differ besides the fold, or None."""
    alike = replace(config, fold=first.fold)
    names = (name for name in vars(first) if getattr(alike, name) != getattr(first, name))
    return next(names, None)
