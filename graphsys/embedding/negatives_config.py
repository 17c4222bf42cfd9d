"""Pools of negatives: the typed spec of what a positive is compared with.

A config lists pools as ``[[negatives]]`` tables, in any combination; the keys
``num_batch_negatives``, ``num_uniform_negatives`` and ``importance_weights`` are the
shorthand for the usual pair. A chunk of positives shares one draw of every pool, for
either side.
"""
# ruff: noqa: RUF009  (option() only makes a field)

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

from graphsys.core.config import REQUIRED, Checked, option
from graphsys.core.errors import ConfigError
from graphsys.embedding.spec.losses import require_trait

PoolName = Literal["batch", "uniform", "degree", "type", "hard"]

DEFAULT_ALPHA: Final = 0.75
"""Exponent of the degree: word2vec's (Mikolov et al., NIPS 2013)."""

_MOST_POOLS: Final = 16


@dataclass(frozen=True, kw_only=True)
class PoolConfig(Checked):
    """One pool of negatives."""

    kind: PoolName = option(REQUIRED, "Where the negatives come from.")
    num: int = option(
        REQUIRED,
        "Negatives per group of edges; batch: edges of a group.",
        minimum=1,
    )
    alpha: float | None = option(
        None, f"Exponent of the degree; by default {DEFAULT_ALPHA}.", minimum=0, maximum=4
    )
    drawn: int | None = option(
        None, "Nodes drawn, of which the num hardest count; by default 4 num.", minimum=1
    )
    importance: bool = option(
        False,
        "Subtract the logarithm of how often a node is expected (logQ), so that "
        "softmax estimates the one over all nodes.",
    )
    adversarial: float = option(
        0.0,
        "Weigh negatives by softmax(adversarial * score) in the pool; 0: all alike.",
        minimum=0,
    )

    @property
    def exponent(self) -> float:
        """Exponent of the degree."""
        return DEFAULT_ALPHA if self.alpha is None else self.alpha

    @property
    def num_drawn(self) -> int:
        """Nodes that are drawn; of a hard pool the hardest ``num`` count."""
        if self.kind != "hard":
            return self.num
        return 4 * self.num if self.drawn is None else self.drawn


def usual_pools(
    num_batch: int, num_uniform: int, importance: bool
) -> tuple[PoolConfig, ...]:
    """Return what the shorthand keys stand for; only uniform negatives get weights."""
    pools = []
    if num_batch:
        pools.append(PoolConfig(kind="batch", num=num_batch))
    if num_uniform:
        pools.append(PoolConfig(kind="uniform", num=num_uniform, importance=importance))
    return tuple(pools)


def check_pools(pools: Iterable[PoolConfig], loss: str, batch_size: int) -> None:
    """Check pools against each other and the objective.

    Raises:
        ConfigError: A key that the kind or the loss does not know, or numbers that do not
            fit.
    """
    num_batch = 0
    for k, pool in enumerate(pools):
        where = f"negatives[{k}]"
        if k >= _MOST_POOLS:
            raise ConfigError(
                f"negatives: got more than {_MOST_POOLS} pools, expected fewer"
            )
        _check_keys(pool, where)
        if pool.importance:
            require_trait(
                loss,
                "estimates_sum",
                f"{where}.importance",
                "true",
                "whose sum over negatives it estimates",
            )
        if pool.adversarial:
            require_trait(
                loss,
                "has_mean",
                f"{where}.adversarial",
                pool.adversarial,
                "whose mean over negatives it weighs",
            )
        num_batch += pool.kind == "batch"
        if num_batch > 1:
            raise ConfigError(
                f"{where}.kind: got a second pool of the kind batch, expected one: a chunk "
                "is cut by its num"
            )
        if pool.kind == "batch" and not 2 <= pool.num <= batch_size:
            raise ConfigError(
                f"{where}.num: got {pool.num}, expected 2 to batch_size, {batch_size}: "
                "the positives that are each other's negatives"
            )


def _check_keys(pool: PoolConfig, where: str) -> None:
    def refuse(key: str, value: Any, kinds: str) -> ConfigError:
        return ConfigError(
            f"{where}.{key}: got {value} for the kind {pool.kind}, expected it for the "
            f"kind {kinds} only; remove it"
        )

    if pool.alpha is not None and pool.kind != "degree":
        raise refuse("alpha", pool.alpha, "degree")
    if pool.drawn is not None and pool.kind != "hard":
        raise refuse("drawn", pool.drawn, "hard")
    if pool.importance and pool.kind == "hard":
        raise ConfigError(
            f"{where}.importance: got true for the kind hard, expected false: what is "
            "chosen by score has no known probability"
        )
    if pool.kind == "hard" and pool.num_drawn < pool.num:
        raise ConfigError(
            f"{where}.drawn: got {pool.num_drawn}, expected at least num, {pool.num}: "
            "the hardest num of them count"
        )
