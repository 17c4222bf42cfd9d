"""Losses: what the scores of an edge and of its negatives cost.

One of another package is a function of the scores of one query, given as an entry point of
the group ``graphsys.losses``. See the guide of embeddings.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from graphsys.core.errors import ConfigError
from graphsys.core.registry import SpecRegistry
from graphsys.embedding.spec.functions import Function, address_in, kernel_at

GROUP: Final = "graphsys.losses"


@dataclass(frozen=True, kw_only=True)
class LossSpec:
    """One loss: of another package with ``query_loss``, nothing else.

    Attributes:
        name: What ``loss`` names it in a config.
        query_loss: From ``(scores, margin, gradient)`` the loss of one edge, a float: of
            the scores, float32 ``[1 + K]``, the first is the edge's, the others its
            negatives'; writes the derivative by each to the last, which is zeros.
        kernel: Of ours, the kernel over all queries, as ``module:name``.
        weighted: The same where negatives of a pool have weights, or are hard; or "".
        targets: The same over all nodes where a question has several answers, or its labels
            are smoothed; or "".
        code: Of ours, what kernels know it by.
        estimates_sum: Whether it has a sum over negatives that ``importance`` estimates.
        has_mean: Whether it has a mean over negatives that ``adversarial`` weighs.
        has_device: Whether a device has kernels for it.
    """

    name: str
    query_loss: Function | None = None
    kernel: str = "custom:custom_losses"
    weighted: str = ""
    targets: str = ""
    code: int = 8
    estimates_sum: bool = False
    has_mean: bool = False
    has_device: bool = False

    def __post_init__(self) -> None:
        """Refuse what is no loss.

        Raises:
            ConfigError: The function is missing.
        """
        if self.is_custom and not callable(self.query_loss):
            raise ConfigError(f"loss {self.name!r}: expected the function query_loss")

    @property
    def is_custom(self) -> bool:
        """Whether it is a function of another package."""
        return self.kernel == "custom:custom_losses"

    def kernel_for(self, *, has_weights: bool, has_targets: bool) -> Function:
        """Return the kernel over all queries.

        Args:
            has_weights: Whether negatives of a pool have weights, or are hard.
            has_targets: Whether questions have several answers, or smoothed labels.
        """
        if has_targets:
            return kernel_at(self.targets)
        return kernel_at(self.weighted if has_weights and self.weighted else self.kernel)

    @cached_property
    def address(self) -> int:
        """Address of ``query_loss``, compiled; 0 for ours.

        Raises:
            ConfigError: It does not compile.
        """
        if self.query_loss is None:
            return 0
        from graphsys.kernels.cpu.embedding.calls import call_query_loss

        owner = f"loss {self.name!r}"
        return address_in(owner, "query_loss", self.query_loss, call_query_loss)


LOSSES = SpecRegistry("loss", GROUP, LossSpec)
register = LOSSES.add
loss_of = LOSSES.get


def require_trait(name: str, trait: str, where: str, value: object, reason: str) -> None:
    """Check that a loss has what a setting needs.

    Args:
        name: Of the loss.
        trait: What it needs: ``estimates_sum``, ``has_mean`` or ``targets``.
        where: The setting.
        value: What it was set to.
        reason: What it does with it.

    Raises:
        ConfigError: The loss has not.
    """
    if not getattr(loss_of(name), trait):
        known = ", ".join(_with_trait(trait))
        raise ConfigError(
            f"{where}: got {value} with the loss {name}, expected the loss {known}, "
            f"{reason}"
        )


def _with_trait(trait: str) -> Iterable[str]:
    return [name for name in LOSSES.names() if getattr(loss_of(name), trait)]


register(
    LossSpec(
        name="softmax",
        code=0,
        kernel="losses:softmax_losses",
        targets="losses:softmax_targets",
        estimates_sum=True,
        has_device=True,
    )
)
register(
    LossSpec(
        name="logistic",
        code=1,
        kernel="losses:logistic_losses",
        weighted="losses:weighted_losses",
        targets="losses:logistic_targets",
        has_mean=True,
        has_device=True,
    )
)
register(LossSpec(name="ranking", code=2, kernel="losses:ranking_losses", has_device=True))
