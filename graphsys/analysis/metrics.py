"""Named figures, each with its unit, its source, and whether it is exact."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

SOURCES = ("host", "model", "trace", "clock", "ncu")


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure.

    Attributes:
        name: Lower case, with underscores; a variant follows a dot.
        value: The figure, or None where it was not measured.
        unit: What it counts; ``share`` is 0 to 1.
        source: ``host``, ``model``, ``trace``, ``clock`` or ``ncu``.
        exact: Whether it is a count, not an estimate.
        reason: Why there is no value; None where there is one.
    """

    name: str
    value: float | int | None
    unit: str
    source: str
    exact: bool
    reason: str | None = None

    def __post_init__(self) -> None:
        assert self.source in SOURCES, self.source
        assert (self.value is None) == (self.reason is not None), self.name

    def as_mapping(self) -> dict[str, Any]:
        """Return it as the report's JSON has it."""
        return asdict(self)


def measured(
    name: str,
    value: float | int | None,
    unit: str,
    *,
    source: str = "host",
    exact: bool = True,
    reason: str = "not measured",
) -> Metric:
    """Return a metric; ``reason`` is taken where there is no (finite) value."""
    missing = value is None or not math.isfinite(value)
    return Metric(
        name,
        None if missing else value,
        unit,
        source,
        exact and not missing,
        reason if missing else None,
    )


def by_name(metrics: Iterable[Metric]) -> Mapping[str, Metric]:
    """Return metrics by name."""
    return {metric.name: metric for metric in metrics}
