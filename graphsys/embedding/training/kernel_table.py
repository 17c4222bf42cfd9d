"""The kernels that a config needs of those called through addresses, compiled."""

from collections.abc import Callable
from typing import Any

from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.model import RelationSet
from graphsys.embedding.spec.comparators import ComparatorSpec, comparator_of
from graphsys.embedding.spec.losses import loss_of
from graphsys.embedding.training.objective import objective_of
from graphsys.kernels.cpu.embedding import calls
from graphsys.kernels.cpu.embedding.bias import rank_biased
from graphsys.kernels.cpu.embedding.calls import KernelAddresses, Objective
from graphsys.kernels.cpu.embedding.candidate_weights import leave_out
from graphsys.kernels.cpu.embedding.known import find_known
from graphsys.kernels.cpu.embedding.operators import (
    IDENTITY,
    apply_operators,
    apply_operators_backward,
)
from graphsys.kernels.pointers import address_of

Kernel = Callable[..., Any]


def compiled_objective(
    config: EmbeddingConfig, relations: RelationSet, *, has_single: bool = False
) -> Objective:
    """Return what a config optimizes, with the kernels for an edge type compiled.

    Args:
        config: The settings.
        relations: The edge type.
        has_single: Whether to compile the kernel for one way even where training asks both
            ways at once and has no use for it.

    Raises:
        ConfigError: A function of another package does not compile.
    """
    comparator, loss = comparator_of(config.comparator), loss_of(config.loss)
    pairs = _pairs_kernel(config, comparator, relations)
    operates = relations.num_sides == 2 or bool((relations.codes != IDENTITY).any())
    has_hard = any(pool.kind == "hard" for pool in config.pools)
    has_weights = has_hard or any(pool.adversarial for pool in config.pools)
    has_masks, asks_once = config.mask_known_edges, config.mode == "kvsall"
    has_targets = asks_once or config.label_smoothing > 0

    def address(call: Any, kernel: Kernel | None, *, is_used: bool = True) -> int:
        return address_of(kernel, call) if kernel is not None and is_used else 0

    call_loss = calls.call_custom_losses if loss.is_custom else calls.call_losses
    score, score_gradient = comparator.addresses
    # A kernel that is not used is not compiled: 0 stands for it.
    return objective_of(config)._replace(
        calls=KernelAddresses(
            losses=address(
                call_loss,
                loss.kernel_for(has_weights=has_weights, has_targets=has_targets),
            ),
            leave_out=address(
                calls.call_leave_out, leave_out, is_used=has_masks or has_hard
            ),
            rank=address(
                calls.call_rank,
                _kernel(config, comparator),
                is_used=has_single or pairs is None or bool(relations.all_negatives.any()),
            ),
            rank_pairs=address(calls.call_rank_pairs, pairs),
            operate=address(calls.call_operate, apply_operators, is_used=operates),
            operate_back=address(
                calls.call_operate_back, apply_operators_backward, is_used=operates
            ),
            find_known=address(
                calls.call_find_known, find_known, is_used=has_masks or asks_once
            ),
            score=score,
            score_gradient=score_gradient,
            query_loss=loss.address,
        )
    )


def _kernel(config: EmbeddingConfig, comparator: ComparatorSpec) -> Kernel:
    has_own = comparator.is_pairwise  # a kernel that knows of biases
    return rank_biased if config.bias and not has_own else comparator.kernel()


def _pairs_kernel(
    config: EmbeddingConfig, comparator: ComparatorSpec, relations: RelationSet
) -> Kernel | None:
    """Return the kernel for both ways at once, where there is one and a use for it."""
    has_batch = any(pool.kind == "batch" for pool in config.pools)
    if config.bias or relations.num_sides == 2 or not has_batch:
        return None
    return comparator.pairs_kernel()
