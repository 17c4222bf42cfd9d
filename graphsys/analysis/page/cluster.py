"""The page's lanes and tables of the workers of a cluster."""

from collections.abc import Mapping
from typing import Any, Final

from graphsys.analysis.page import bars
from graphsys.analysis.page.text import number_text

_OF_WORKER: Final = {
    "units": "buckets",
    "nodes": "nodes",
    "edges": "entries visited",
    "seconds": "seconds",
    "work_seconds": "at work, s",
    "waiting_seconds": "waiting, s",
    "idle_seconds": "of it for a bucket, s",
    "communication_seconds": "for parameters, s",
    "compile_seconds": "compiling, s",
    "kernel_seconds": "in kernels, s",
    "sample_seconds": "sampling, s",
    "gather_seconds": "gathering, s",
    "read_seconds": "reading, s",
    "write_seconds": "writing, s",
    "sent_bytes": "bytes sent",
    "read_bytes": "bytes read",
    "written_bytes": "bytes written",
    "overlap_alpha": "overlap \u03b1",
    "overlap_rho": "\u03c1",
    "overlap_utilization": "U",
}
"""Columns and their titles; those that no worker has a value of are left out."""
_OF_KIND: Final = {
    "gnn": {
        "units": "batches",
        "edges": "entries computed on",
        "communication_seconds": "for gradients, s",
    },
    "embedding": {"edges": "edges trained", "sent_bytes": "parameters, bytes"},
}
"""What some titles are instead."""
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
    columns = [
        name
        for name in _OF_WORKER
        if any(row[name] is not None for row in found["workers"])
    ]
    titles = _OF_WORKER | _OF_KIND.get(found["kind"], {})
    steps = []
    for row in found["supersteps"][:most_steps]:
        sent = row["sent_bytes"]
        cells = [_text(sent), _text(sent / bound) if bound else ""]
        cells += [_text(row[name]) for name in _OF_STEP]
        steps.append({"name": _text(row["number"]), "cells": cells})
    return {
        "is_training": found["kind"] != "run",
        "titles": [titles[name] for name in columns],
        "workers": [
            {
                "name": f"{row['rank']} on {row['host']}",
                "cells": [_text(row[name]) for name in columns],
            }
            for row in found["workers"]
        ],
        "steps": steps,
        **_lanes(found),
        "imbalance": _text(found["load_imbalance"]),
        "waiting": "" if share is None else f"{100 * share:.0f} %",
        "sent": _text(found["sent_bytes"]),
        "bound": _text(bound),
        "restarts": found["restarts"],
    }


def _lanes(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the lanes and threads of the workers; reports of before have none."""
    if "lanes_seconds" not in found:
        return {"lanes": "", "threads": ""}
    first, last = found["lanes_seconds"]
    names = [str(row["rank"]) for row in found["workers"]]
    lanes = [
        [(it["name"], it["shares"]) for it in row["lanes"]] for row in found["workers"]
    ]
    threads = [row["thread_seconds"] for row in found["workers"]]
    return {
        "lanes": bars.worker_lanes(list(zip(names, lanes, strict=True)), (first, last))
        if any(lanes)
        else "",
        "threads": bars.worker_threads(list(zip(names, threads, strict=True))),
    }


def _text(value: float | None) -> str:
    return "" if value is None else number_text(value)
