"""Predicted copies on the page: a cell for each superstep, and a chart along them."""

from collections.abc import Mapping, Sequence
from typing import Any

from graphsys.analysis.model.transfers import STYLES
from graphsys.analysis.page import charts

MAX_BARS = 100
"""Groups of bars of the chart; of more supersteps, several in a row share one."""


def copies_of_step(step: Mapping[str, Any]) -> dict[str, int | None]:
    """Return the copies that were predicted of a superstep, by style."""
    told = step.get("predicted_transfers") or {}
    return {
        f"copies_{style}": told[style]["count"] if style in told else None
        for style in ("host-driven", "ours")
    }


def copies_part(
    steps: Sequence[Mapping[str, Any]], metrics: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any] | None:
    """Return what the page shows of predicted copies; None where none was predicted.

    Args:
        steps: The report's supersteps.
        metrics: The report's metrics, by name.

    Returns:
        ``chart`` (means of equal parts where supersteps are many), ``per_bar``
        (supersteps of a group of bars), and ``seconds`` of the run, by style.
    """
    told = [step["predicted_transfers"] for step in steps]
    if not told or None in told:
        return None
    size = -(-len(told) // MAX_BARS)
    parts = [told[k : k + size] for k in range(0, len(told), size)]

    def means(name: str) -> dict[str, list[float]]:
        return {
            style: [sum(it[style][name] for it in part) / len(part) for part in parts]
            for style in STYLES
        }

    return {
        "chart": charts.copies_by_step(means("seconds"), means("count")),
        "per_bar": size,
        "seconds": [
            (style, metrics[f"predicted_transfer_seconds.{style}"]["value"])
            for style in STYLES
        ],
    }
