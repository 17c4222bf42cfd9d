"""Counters of Nsight Compute as a report: the same JSON and page as of a command."""

from pathlib import Path
from typing import Any

from graphsys.analysis.metrics import Metric, by_name
from graphsys.analysis.report import SCHEMA_VERSION, describe_host
from graphsys.analysis.traces.ncu import NcuFigures, ncu_metrics, read_ncu
from graphsys.analysis.verdict import Finding, verdict_from
from graphsys.core.errors import cut_list

_ADVICE = {
    "long_scoreboard": "Warps wait for memory: fewer or nearer bytes (a better order of "
    "nodes, smaller dtypes), or more warps in flight.",
    "barrier": "Warps wait for their CTA: rows of a CTA are uneven, share them by warps.",
    "lg_throttle": "Too many requests in flight: coalesce them.",
}


def report_of_ncu(path: Path) -> dict[str, Any]:
    """Return the report of a CSV of Nsight Compute.

    Raises:
        InputError: it is no such file.
    """
    found = read_ncu(path)
    metrics = ncu_metrics(found)
    return {
        "schema_version": SCHEMA_VERSION,
        "command": f"ncu {path.name}",
        "status": "ok",
        "error": None,
        "machine": describe_host(),
        "verdict": verdict_from(
            findings_of(metrics), "Nothing stands out in the metrics that the file has."
        ),
        "configuration": {
            "level": "L4",
            "file": path.name,
            "not used": cut_list(sorted(found.unknown)) or "none",
        },
        "metrics": [metric.as_mapping() for metric in metrics],
        "supersteps": [],
        "operators": kernel_rows(found),
        "transfers": [],
        "timeline": {"seconds": 0.0, "lanes": []},
        "gpu": None,
    }


def kernel_rows(found: NcuFigures) -> list[dict[str, Any]]:
    """Return the kernels as rows of the operator table, the longest first."""
    calls: dict[str, int] = {}
    seconds: dict[str, float | None] = {}
    for kernel in found.kernels:
        took = kernel.values.get("gpu__time_duration.sum")
        before = seconds.get(kernel.name, 0.0)
        calls[kernel.name] = calls.get(kernel.name, 0) + 1
        seconds[kernel.name] = None if took is None or before is None else before + took
    return [
        {
            "name": name,
            "kind": "kernel",
            "device": "cuda",
            "calls": calls[name],
            "seconds": took,
            "busy_seconds": None,
            "imbalance": None,
            "waiting": None,
            "flop": None,
            "bytes": None,
            "limit_share": None,
        }
        for name, took in sorted(seconds.items(), key=lambda item: -(item[1] or 0.0))
    ]


def findings_of(metrics: list[Metric]) -> list[Finding]:
    """Return what the counters of a run say of its time."""
    known = by_name(metrics)
    findings = []
    lanes = known["lane_utilization"].value
    if lanes is not None and lanes < 0.8:
        findings.append(
            Finding(
                1.0 - lanes,
                f"{100 * lanes:.0f} % of the lanes are at work per instruction.",
                "Share rows by warps or by edges: compare the mappings of an L1 report.",
            )
        )
    ratio = known["sm_imbalance"].value
    if ratio is not None and ratio > 1.1:
        findings.append(
            Finding(
                1.0 - 1.0 / ratio,
                f"The busiest SM works {ratio:.2f} times the mean.",
                "A few CTAs are long: split long rows.",
            )
        )
    stalls = [metric for metric in metrics if metric.name.startswith("stall_")]
    most = max(stalls, key=lambda metric: metric.value or 0.0, default=None)
    if most is not None and most.value is not None:
        reason = most.name.removeprefix("stall_")
        findings.append(
            Finding(
                most.value,
                f"{100 * most.value:.0f} % of the stalls are {reason.replace('_', ' ')}.",
                _ADVICE.get(reason, "See Nsight Compute's guide on this stall."),
            )
        )
    return findings
