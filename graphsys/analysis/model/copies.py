"""Which copies a run would make, superstep by superstep, and what they come to."""

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any

from graphsys.analysis.host_steps import HostStep
from graphsys.analysis.metrics import Metric, measured
from graphsys.analysis.model.row_model import RowModel
from graphsys.analysis.model.transfers import LINKS, STYLES, StepArrays, step_transfers

_UNITS = {"count": "transfers", "bytes": "bytes", "seconds": "s"}


def copies_of(
    model: RowModel | None, steps: Sequence[HostStep]
) -> list[dict[str, dict[str, float]]]:
    """Return the predicted copies of every superstep by style; none where unknown.

    Over rows the device needs the rows' offsets (8 bytes) and neighbors, and a state per
    node, when they are touched first; the host reads the states at the end. Where no
    superstep takes all nodes, they are too few. A training tells what each batch needs.

    Args:
        model: Has seen the run; None where it was not asked for.
        steps: Supersteps, or batches.

    Returns:
        For each superstep and style ``count``, ``bytes`` and ``seconds``.
    """
    if model is None or not steps:
        return []
    if any(step.sent for step in steps):
        needs = [_of_batch(step) for step in steps]
    elif model.row_bytes > 0:
        needs = _of_rows(model, steps)
    else:
        return []
    link = LINKS[model.gpu.name]
    found = []
    for need in needs:
        moved = {style: step_transfers(style, need, link) for style in STYLES}
        found.append(
            {
                style: {"count": it.count, "bytes": it.num_bytes, "seconds": it.seconds}
                for style, it in moved.items()
            }
        )
    return found


def _of_rows(model: RowModel, steps: Sequence[HostStep]) -> list[StepArrays]:
    states = model.num_rows * model.value_bytes
    needs = []
    for step in steps:
        needs.append(
            StepArrays(
                row_bytes=sum(model.new_row_bytes[k] for k in step.launches),
                row_pages=sum(model.new_pages[k] for k in step.launches),
            )
        )
    needs[0].arrays = 8 * (model.num_rows + 1), states
    needs[-1].results = (states,)
    # rows told outside of any superstep
    needs[0].row_bytes += model.row_bytes - sum(need.row_bytes for need in needs)
    return needs


def _of_batch(step: HostStep) -> StepArrays:
    need = StepArrays()
    for facts in step.sent:
        need.arrays += tuple(facts["arrays"])
        need.results += tuple(facts["results"])
        need.packed = (need.packed or ()) + tuple(facts["packed"])
    return need


def transfer_metrics(
    copies: Sequence[Mapping[str, Mapping[str, float]]], reason: str
) -> list[Metric]:
    """Return the sums of all supersteps' copies.

    Args:
        copies: As :func:`copies_of` returns them.
        reason: Why there is no value, where there is none.
    """
    found = []
    for style in STYLES:
        for name, unit in _UNITS.items():
            value: Any = None
            if copies:
                value = reduce(add, (step[style][name] for step in copies))
            found.append(
                measured(
                    f"predicted_transfer_{name}.{style}",
                    value,
                    unit,
                    source="model",
                    exact=False,
                    reason=reason,
                )
            )
    return found
