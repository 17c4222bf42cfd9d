"""The kernels that a config needs of those called through addresses, compiled."""

from collections.abc import Callable
from typing import Any, Final

from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.model import RelationSet, objective_of
from graphsys.kernels.cpu.embedding import calls, losses, scores
from graphsys.kernels.cpu.embedding.bias import rank_biased
from graphsys.kernels.cpu.embedding.calls import Calls, Objective
from graphsys.kernels.cpu.embedding.counting import leave_out
from graphsys.kernels.cpu.embedding.known import find_known
from graphsys.kernels.cpu.embedding.operators import (
    IDENTITY,
    apply_operators,
    apply_operators_backward,
)
from graphsys.kernels.cpu.embedding.pairs import rank_cosine_pairs, rank_product_pairs
from graphsys.kernels.pointers import address_of

Kernel = Callable[..., Any]

_LOSSES: Final[dict[int, Kernel]] = {
    losses.SOFTMAX: losses.softmax_losses,
    losses.LOGISTIC: losses.logistic_losses,
    losses.RANKING: losses.ranking_losses,
}
_RANKS: Final[dict[int, Kernel]] = {
    scores.DOT: scores.rank_products,
    scores.COS: scores.rank_cosines,
    scores.SQUARED_L2: scores.rank_distances,
    scores.L2: scores.rank_distances,
}
_PAIRS: Final[dict[int, Kernel]] = {
    scores.DOT: rank_product_pairs,
    scores.COS: rank_cosine_pairs,
}


def compiled_objective(config: EmbeddingConfig, relations: RelationSet) -> Objective:
    """Return what a config optimizes, with the kernels for an edge type compiled.

    Args:
        config: The settings.
        relations: The edge type.
    """
    objective = objective_of(config)
    has_pairs = relations.num_sides == 1 and objective.comparator in _PAIRS
    operates = relations.num_sides == 2 or bool((relations.codes != IDENTITY).any())
    has_hard = any(pool.kind == "hard" for pool in config.pools)
    has_masks = config.mask_known_edges

    def address(call: Any, kernel: Kernel, *, is_used: bool = True) -> int:
        return address_of(kernel, call) if is_used else 0

    return objective._replace(
        calls=Calls(
            losses=address(calls.call_losses, _loss_of(config, objective)),
            leave_out=address(
                calls.call_leave_out, leave_out, is_used=has_masks or has_hard
            ),
            rank=address(calls.call_rank, _RANKS.get(objective.comparator, rank_biased)),
            rank_pairs=address(
                calls.call_rank_pairs,
                _PAIRS.get(objective.comparator, rank_product_pairs),
                is_used=has_pairs and any(pool.kind == "batch" for pool in config.pools),
            ),
            operate=address(calls.call_operate, apply_operators, is_used=operates),
            operate_back=address(
                calls.call_operate_back, apply_operators_backward, is_used=operates
            ),
            find_known=address(calls.call_find_known, find_known, is_used=has_masks),
        )
    )


def _loss_of(config: EmbeddingConfig, objective: Objective) -> Kernel:
    is_special = any(pool.adversarial or pool.kind == "hard" for pool in config.pools)
    if is_special and objective.loss == losses.LOGISTIC:
        return losses.weighted_losses
    return _LOSSES[objective.loss]
