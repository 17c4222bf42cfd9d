"""The page's tables of the workers of a cluster."""

from collections.abc import Mapping
from typing import Any, Final

from graphsys.analysis.page.text import number_text

_OF_WORKER: Final = (
    "nodes", "edges", "seconds", "work_seconds", "waiting_seconds", "compile_seconds",
    "kernel_seconds", "read_seconds", "sent_bytes", "overlap_alpha",
)  # fmt: skip
_OF_STEP: Final = ("most_work_seconds", "mean_work_seconds", "waiting_seconds")


def cluster_rows(report: Mapping[str, Any], most_steps: int) -> dict[str, Any] | None:
    """Return what the page's tables of workers show, as texts; None without workers.

    Args:
        report: The whole report.
        most_steps: How many supersteps to list.
    """
    found = report.get("cluster")
    if found is None:
        return None
    bound, share = found["bound_bytes"], found["waiting_share"]
    steps = []
    for row in found["supersteps"][:most_steps]:
        sent = row["sent_bytes"]
        cells = [_text(sent), _text(sent / bound) if bound else ""]
        cells += [_text(row[name]) for name in _OF_STEP]
        steps.append({"name": _text(row["number"]), "cells": cells})
    return {
        "workers": [
            {
                "name": f"{row['rank']} on {row['host']}",
                "cells": [_text(row[name]) for name in _OF_WORKER],
            }
            for row in found["workers"]
        ],
        "steps": steps,
        "imbalance": _text(found["load_imbalance"]),
        "waiting": "" if share is None else f"{100 * share:.0f} %",
        "sent": _text(found["sent_bytes"]),
        "bound": _text(bound),
        "restarts": found["restarts"],
    }


def _text(value: float | None) -> str:
    return "" if value is None else number_text(value)
