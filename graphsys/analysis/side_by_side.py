"""What the model predicts beside what was measured, and why the two may differ."""

from collections.abc import Mapping, Sequence
from typing import Any

_ROWS = (
    # the model's metric, the host's, the clocks', and that of Nsight Compute
    (
        "predicted_launches",
        "kernel_invocations",
        "launches_over_rows.clock",
        "kernel_invocations.ncu",
    ),
    ("lane_utilization", None, "lane_utilization.clock", "lane_utilization.ncu"),
    ("ctas_per_sm", None, "ctas_per_sm.clock", "ctas_per_sm_max"),
    ("sm_imbalance", None, "sm_imbalance.clock", "sm_imbalance.ncu"),
    ("cta_variance", None, "cta_variance.clock", None),
    ("warp_variance", None, "warp_variance.clock", None),
    ("value_sectors_per_request", None, None, "value_sectors_per_request.ncu"),
    ("l1_hit_rate", None, None, "l1_hit_rate.ncu"),
    ("l2_hit_rate", None, None, "l2_hit_rate.ncu"),
)
COUNTED = tuple(row[0] for row in _ROWS if row[3] is not None)
"""What the model predicts and Nsight Compute counts too."""
SOURCES = ("host", "clock", "ncu")
_NOTES = {
    "predicted_launches": "The model and the clocks count kernels over rows; the host and "
    "ncu also those that send, update, make lists and add totals up.",
    "lane_utilization": "The model and the clocks count steps of the loops over rows, ncu "
    "all instructions, most of which outside of loops have all lanes: it reads higher. "
    "Masks are a lower bound where lanes drift apart.",
    "ctas_per_sm": "The model gives every row its own place; the engine launches at most 8 "
    "CTAs per SM, which go on to the next rows. ncu: the most on an SM.",
    "sm_imbalance": "The model knows no caches and not the hardware's order; its CTAs are "
    "as many as there are rows for.",
    "cta_variance": "The model counts instructions, clocks count cycles, waits for memory "
    "included.",
    "warp_variance": "The model counts instructions, clocks count cycles, waits for memory "
    "included.",
    "value_sectors_per_request": "The model counts loads of neighbors' values; ncu all "
    "global loads, those of indices and row offsets too, which lie side by side: it reads "
    "lower.",
    "l1_hit_rate": "The model replays loads of row offsets, indices and states in caches "
    "of assumed ways; ncu counts stores, atomics and kernels that are not over rows too.",
    "l2_hit_rate": "As of l1_hit_rate; the card's L2 has two partitions, the model's one, "
    "and what other kernels left there hits.",
}


def comparison(metrics: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return predicted and measured values of a report's metrics side by side.

    Args:
        metrics: As the report's JSON has them.

    Returns:
        A row per quantity: ``name``, ``unit``, ``predicted``, ``host``, ``clock``, ``ncu``
        (null where not measured), ``ratio`` of the first measured to the predicted, and
        ``note``. Empty where nothing was measured inside a GPU.
    """
    values = {metric["name"]: metric["value"] for metric in metrics}
    units = {metric["name"]: metric["unit"] for metric in metrics}
    rows = []
    for predicted, *measured in _ROWS:
        found = {
            source: values.get(name) if name else None
            for source, name in zip(SOURCES, measured, strict=True)
        }
        if found["clock"] is None and found["ncu"] is None:
            continue
        own = values.get(predicted)
        inside = found["clock"] if found["clock"] is not None else found["ncu"]
        rows.append(
            {
                "name": predicted,
                "unit": units.get(predicted, ""),
                "predicted": own,
                **found,
                "ratio": inside / own if own and inside is not None else None,
                "note": _NOTES[predicted],
            }
        )
    return rows
