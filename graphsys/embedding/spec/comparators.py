"""Comparators: how two rows become a score, higher for pairs that belong together.

Of ours, ``dot``, ``cos`` and Euclidean distances come from one matrix product, sums of
distances number by number (``l1``, ``complex_l1``) from a kernel of theirs. One of another
package is two functions of two rows, given as an entry point of the group
``graphsys.comparators``; training, ranking, prediction and the nearest nodes then go by it.
See the guide of embeddings.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError
from graphsys.core.registry import SpecRegistry
from graphsys.embedding.spec.functions import Function, address_in, kernel_at

GROUP: Final = "graphsys.comparators"

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class ComparatorSpec:
    """One comparator: of another package with ``score`` and ``gradient``, nothing else.

    Attributes:
        name: What ``comparator`` names it in a config.
        score: From a query and a candidate, float32 ``[D]`` each, their score, a finite
            float.
        gradient: From ``(query, candidate, factor, dquery, dcandidate)``; adds the factor
            times the derivative of the score by either row to the last two, float32
            ``[D]``.
        rank: Of ours, the kernel that trains, as ``module:name``.
        rank_pairs: The same for both directions at once, or "".
        code: Of ours, what kernels know it by.
        metric: What orders candidates as the scores do: inner ``product``, Euclidean
            ``distance``, a ``sum`` of distances number by number, or none, ``own``.
        is_unit: Whether rows are compared at the length 1.
        is_root: Whether the score is minus the distance, not its square.
        is_complex: Whether numbers are complex, real parts in the first half of a row: then
            turning both rows, number by number, changes no score.
        has_device: Whether a device has kernels for it.
    """

    name: str
    score: Function | None = None
    gradient: Function | None = None
    rank: str = "custom:rank_custom"
    rank_pairs: str = ""
    code: int = 8
    metric: Literal["product", "distance", "sum", "own"] = "own"
    is_unit: bool = False
    is_root: bool = False
    is_complex: bool = False
    has_device: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot score.

        Raises:
            ConfigError: One of the functions is missing, or they are not called so.
        """
        if self.is_custom and not (callable(self.score) and callable(self.gradient)):
            raise ConfigError(
                f"comparator {self.name!r}: expected the functions score and gradient"
            )

    @property
    def is_custom(self) -> bool:
        """Whether scores come from functions of another package."""
        return self.metric == "own"

    @property
    def is_pairwise(self) -> bool:
        """Whether pairs are scored one by one: no matrix product gives their order."""
        return self.metric in ("sum", "own")

    @property
    def is_distance(self) -> bool:
        """Whether candidates are ordered by Euclidean distance."""
        return self.metric == "distance"

    @property
    def is_linear(self) -> bool:
        """Whether the score is linear in either row."""
        return self.metric == "product" and not self.is_unit

    def kernel(self) -> Function:
        """Return the kernel that trains queries one way."""
        return kernel_at(self.rank)

    def pairs_kernel(self) -> Function | None:
        """Return the kernel that trains both ways at once, if there is one."""
        return kernel_at(self.rank_pairs) if self.rank_pairs else None

    @cached_property
    def addresses(self) -> tuple[int, int]:
        """Addresses of ``score`` and ``gradient``, compiled; zeros for ours.

        Raises:
            ConfigError: One does not compile.
        """
        if self.score is None or self.gradient is None:
            return 0, 0
        from graphsys.kernels.cpu.embedding.calls import call_score, call_score_gradient

        owner = f"comparator {self.name!r}"
        return (
            address_in(owner, "score", self.score, call_score),
            address_in(owner, "gradient", self.gradient, call_score_gradient),
        )

    def score_all(self, queries: Floats, candidates: Floats, has_bias: bool) -> Floats:
        """Score all queries ``[B, D]`` with all candidates ``[K, D]``, float32 ``[B, K]``.

        For what is scored pair by pair.

        Args:
            queries: Rows.
            candidates: Rows.
            has_bias: Whether the first number of a row is a bias that is added.
        """
        from graphsys.kernels.cpu.embedding import absolute, custom

        out = np.empty((len(queries), len(candidates)), dtype=np.float32)
        if self.is_custom:
            custom.score_all(self.addresses[0], queries, candidates, int(has_bias), out)
        else:
            absolute.score_absolute(
                self.is_complex, queries, candidates, has_bias, False, out
            )
        return out

    def score_pairs(self, queries: Floats, candidates: Floats, has_bias: bool) -> Doubles:
        """Score queries with their own candidates, both ``[B, D]``, float64 ``[B]``."""
        from graphsys.kernels.cpu.embedding import absolute, custom

        if not self.is_custom:
            own = np.empty((len(queries), 1), dtype=np.float32)
            absolute.score_absolute(
                self.is_complex, queries, candidates, has_bias, True, own
            )
            return own[:, 0].astype(np.float64)
        out = np.empty(len(queries), dtype=np.float64)
        custom.score_pairs(self.addresses[0], queries, candidates, int(has_bias), out)
        return out


COMPARATORS = SpecRegistry("comparator", GROUP, ComparatorSpec)
register = COMPARATORS.add
comparator_of = COMPARATORS.get


register(
    ComparatorSpec(
        name="dot",
        code=0,
        metric="product",
        rank="scores:rank_products",
        rank_pairs="pairs:rank_product_pairs",
        has_device=True,
    )
)
register(
    ComparatorSpec(
        name="cos",
        code=1,
        metric="product",
        is_unit=True,
        rank="scores:rank_cosines",
        rank_pairs="pairs:rank_cosine_pairs",
        has_device=True,
    )
)
register(
    ComparatorSpec(
        name="squared_l2",
        code=2,
        metric="distance",
        rank="scores:rank_distances",
        has_device=True,
    )
)
register(
    ComparatorSpec(
        name="l2",
        code=3,
        metric="distance",
        is_root=True,
        rank="scores:rank_distances",
        has_device=True,
    )
)
register(ComparatorSpec(name="l1", code=16, metric="sum", rank="absolute:rank_absolute"))
register(
    ComparatorSpec(
        name="complex_l1",
        code=17,
        metric="sum",
        rank="absolute:rank_absolute",
        is_complex=True,
    )
)
