"""Samples of candidates, drawn by the users' ids: the same in any layout of the store."""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError
from graphsys.embedding.data.held_out import name_key, node_keys
from graphsys.embedding.data.relation_stats import training_degrees
from graphsys.embedding.model import RelationSet
from graphsys.kernels.cpu.sampling.keyed_draws import node_draws
from graphsys.storage.reader import GraphReader

Ints = npt.NDArray[np.int64]
Draw = Literal["uniform", "degree"]


def require_draw(draw: str) -> None:
    """Check the name of a distribution.

    Raises:
        ConfigError: It is not one.
    """
    if draw not in get_args(Draw):
        raise ConfigError(
            f"draw: got {draw!r}, expected one of {', '.join(get_args(Draw))}"
        )


def draw_candidates(
    graph: GraphReader,
    model: Sequence[RelationSet],
    node_type: str,
    num_candidates: int,
    num_samples: int,
    *,
    draw: Draw = "uniform",
    seed: int = 0,
) -> list[Ints]:
    """Draw several samples of the nodes of a type, each without replacement.

    Args:
        graph: The graph.
        model: Its edge types, whose training edges make the degrees.
        node_type: The type.
        num_candidates: Size of a sample.
        num_samples: How many samples.
        draw: ``uniform``, or ``degree``: in proportion to the training degree, nodes
            without training edges never.
        seed: Of the draws.

    Returns:
        Numbers of the nodes in the order drawn, which no layout changes; fewer than asked
        for where there are no more.
    """
    best: list[tuple[npt.NDArray[np.float64], Ints]] = [
        (np.empty(0), np.empty(0, dtype=np.int64)) for _ in range(num_samples)
    ]
    offsets = graph.offsets(node_type)
    for part in range(len(offsets) - 1):
        keys = node_keys(graph, node_type, part)
        weights = np.empty(0, dtype=np.int64)
        if draw == "degree":
            weights = training_degrees(graph, model, node_type, part)
        drawn = np.empty(len(keys))
        for number in range(num_samples):
            node_draws(
                keys, weights, name_key("candidates", seed, node_type, number), drawn
            )
            few = _smallest(drawn, num_candidates)
            values = np.concatenate([best[number][0], drawn[few]])
            numbers = np.concatenate([best[number][1], few + offsets[part]])
            few = _smallest(values, num_candidates)
            best[number] = values[few], numbers[few]
    return [numbers[np.argsort(values)] for values, numbers in best]


def _smallest(values: npt.NDArray[np.float64], num: int) -> npt.NDArray[np.intp]:
    """Return the places of the smallest values that are finite."""
    places = np.flatnonzero(np.isfinite(values))
    if len(places) > num:
        places = places[np.argpartition(values[places], num - 1)[:num]]
    return places
