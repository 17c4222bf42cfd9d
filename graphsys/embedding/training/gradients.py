"""Gradients of a batch of embeddings: recovered from the step that the kernel takes.

The kernel does a whole step without Python and keeps no gradient. But a step of Adagrad
from an empty state tells it: with state ``s`` the row moves by ``-lr g / sqrt(s)``, where
``s`` is the mean of ``g^2`` over the row (of a parameter its own), so that ``g`` is the way
moved, times ``sqrt(s) / lr``. The batch is trained with a large ``lr``, beside which the
row itself is small, and then everything is put back as it was. Adam's first mean of
gradients is a known share of ``g``.

Method: Duchi, Hazan, Singer, "Adaptive subgradient methods", JMLR 2011, for the step.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from graphsys.embedding.model import RelationSet
from graphsys.kernels.cpu.embedding.bags import Extras
from graphsys.kernels.cpu.embedding.rows import FIRST, NO_RATES, Tables
from graphsys.kernels.cpu.embedding.step import train_batches
from graphsys.kernels.cpu.simt.batch_nodes import list_nodes

Floats = npt.NDArray[np.float32]
_RATE: Final = np.float32(1000.0)
_STABLE: Final = 1e-10
"""What the kernel adds to the root, see ``kernels/cpu/embedding/rows``."""


def batch_gradients(
    tables: Tables, extras: Extras, relations: RelationSet, parameters: Floats, work: Any
) -> dict[str, Floats]:
    """Return the gradients of the first batch of a bucket, summed by row as it is trained.

    Nobody else may train on the tables meanwhile.

    Args:
        tables: The partitions; the same afterwards.
        extras: What makes the rows of nodes from these.
        relations: The relations.
        parameters: Of their operators, with their state ``[2 * sides, P]``.
        work: The bucket, cut.

    Returns:
        ``src`` and ``dst`` (of a shared partition only ``src``): of the distinct rows of
        the batch, ``[n, D]``, missing where rows have 16 or 8 bits, whose way would be that
        of rounding. ``operators``: of relations in the batch ``[P]``. Nothing where rows
        are pooled from features.
    """
    if not len(work.losses) or extras.src_bags.begins.size or extras.dst_bags.begins.size:
        return {}
    settings = work.settings._replace(
        lr=_RATE, relation_lr=_RATE, max_norm=np.float32(np.inf)
    )
    src, dst, _ = list_nodes(
        work.edges,
        0,
        1,
        settings.candidates,
        settings.key,
        len(tables.src_rows),
        len(tables.dst_rows),
    )
    sides = {"src": (tables.src_rows, tables.src_state, np.unique(src))}
    if tables.is_shared:
        sides["src"] = (*sides["src"][:2], np.unique(np.concatenate([src, dst])))
    else:
        sides["dst"] = (tables.dst_rows, tables.dst_state, np.unique(dst))
    kept = {name: (rows[at], state[at]) for name, (rows, state, at) in sides.items()}
    # From empty states a step's length gives the gradient back, by the training's own
    # kernel.
    for _, state, at in sides.values():
        state[at] = 0
    own = parameters.copy()
    own[1::2] = 0
    try:
        _step(tables, extras, relations, own, work, settings)
        found = {}
        for name, (rows, state, at) in sides.items():
            if rows.dtype != np.float32:
                continue
            dim = rows.shape[1]
            if state.ndim == 2 and state.shape[1] > dim:
                found[name] = state[at, 1 : 1 + dim] / FIRST
            else:
                moved = kept[name][0].astype(np.float64) - rows[at]
                found[name] = _gradient(moved, state[at].reshape(len(at), -1))
    finally:
        for name, (rows, state, at) in sides.items():
            rows[at], state[at] = kept[name]
    rates = np.repeat(relations.lr_factors, np.diff(relations.offsets))
    has_moved = own[1::2] > 0
    moved = parameters[0::2].astype(np.float64) - own[0::2]
    found["operators"] = _gradient(moved / np.where(rates > 0, rates, 1), own[1::2])[
        has_moved
    ]
    return found


def _gradient(moved: npt.NDArray[np.float64], state: Floats) -> Floats:
    """Return the gradients that moved numbers so far from an empty state."""
    roots = np.sqrt(state.astype(np.float64)) + _STABLE
    return (moved * roots / _RATE).astype(np.float32)


def _step(
    tables: Tables,
    extras: Extras,
    relations: RelationSet,
    own: Floats,
    work: Any,
    settings: Any,
) -> None:
    """Train the first batch alone, on global vectors that are copies."""
    size = len(tables.src_rows) + (0 if tables.is_shared else len(tables.dst_rows))
    copies = extras._replace(
        src_global=extras.src_global.copy(), dst_global=extras.dst_global.copy()
    )
    train_batches(
        tables._replace(src_rates=NO_RATES, dst_rates=NO_RATES),
        copies,
        relations.operators(own),
        work.edges,
        settings,
        0,
        1,
        1,
        np.full(size, -1, dtype=np.int32),
        np.zeros_like(work.losses),
    )
