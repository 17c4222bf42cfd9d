"""Level L4: start Nsight Compute around a command, and put its counters into the report.

The command runs once, inside ``ncu`` and inside a profile of level L1, which writes its
report as always; then the counters are added to it. Nsight replays kernels that need
several passes, so the host's times are taken out. The device's clocks are left alone: they
are not ours to hold, and a run that ends early would leave them held.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphsys.analysis.ncu_report import findings_of, kernel_rows
from graphsys.analysis.profile import INSIDE_NCU
from graphsys.analysis.side_by_side import comparison
from graphsys.analysis.traces.ncu import (
    CORE,
    MEMORY,
    STALLS,
    NcuFigures,
    ncu_metrics,
    read_ncu,
)
from graphsys.analysis.verdict import verdict_from
from graphsys.core.errors import GraphsysError, InputError, MissingDependencyError

COUNTERS = {"L4": CORE, "L4-stalls": (*CORE, *MEMORY, *STALLS)}
"""What is counted by level: what one pass can count, or stalls and caches besides."""
_REPLAYED = "ncu replays kernels, so times are not those of the run: profile it at L1"
_TIMED = (
    "kernel_share",
    "waiting_share",
    "overlap_alpha",
    "overlap_rho",
    "overlap_utilization",
    "bandwidth_share",
    "thread_waiting",
    "thread_imbalance",
)


def find_ncu() -> str:
    """Return the path of ``ncu``: ``$NCU``, or the one on ``$PATH``.

    Raises:
        MissingDependencyError: there is none.
    """
    chosen = os.environ.get("NCU")
    found = shutil.which(chosen or "ncu")
    if not found:
        where = f"$NCU is {chosen!r}, which cannot be run" if chosen else "not on PATH"
        raise MissingDependencyError(
            f"level L4 starts ncu (Nsight Compute): {where}; install it, name it in $NCU, "
            "import its CSV with --ncu, or use --level L3 for clocks inside the kernels"
        )
    return found


def run_counted(
    words: Sequence[str], page: Path, options: Sequence[str], level: str
) -> int:
    """Profile a command inside ``ncu``; the report gets the counters.

    Args:
        words: The command, without ``graphsys``.
        page: The report's page.
        options: Further options of ``graphsys profile``.
        level: ``L4`` or ``L4-stalls``.

    Returns:
        The exit code of the profile.

    Raises:
        MissingDependencyError: ``ncu`` is not installed.
        GraphsysError: it could not run the command.
    """
    from graphsys.analysis.files import json_path, read_report, write_report

    ncu = find_ncu()
    with tempfile.TemporaryDirectory(prefix="graphsys-ncu-") as folder:
        log = Path(folder) / "ncu.csv"
        counters = ["--metrics", ",".join(COUNTERS[level]), "--log-file", str(log)]
        inner = [
            sys.executable,
            "-P",
            "-m",
            "graphsys.cli.main",
            "profile",
            "-o",
            str(page),
            *options,
            "--",
            *words,
        ]
        command = [
            ncu,
            "--csv",
            "--page",
            "raw",
            "--print-units",
            "base",
            "--clock-control",
            "none",
            "--target-processes",
            "all",
            *counters,
            *inner,
        ]
        # The report itself says whether the profile ran: the exit code is ncu's, or the
        # command's.
        before = _stamp(json_path(page))
        inside = {**os.environ, INSIDE_NCU: "1"}
        code = subprocess.run(command, check=False, env=inside).returncode
        if _stamp(json_path(page)) == before:
            if code in (2, 130):  # refused, or interrupted: the profile said why
                return code
            raise GraphsysError(
                f"ncu ended with {code} before the command ran: {_last_line(log)}"
            )
        figures, reason = _counted(log)
    report = with_counters(read_report(json_path(page)), figures, reason, level)
    write_report(report, page)
    return int(report["status"] == "failed")


def _stamp(path: Path) -> int | None:
    return path.stat().st_mtime_ns if path.exists() else None


def _counted(log: Path) -> tuple[NcuFigures, str]:
    """Return what was counted, or nothing and why."""
    try:
        return read_ncu(log), ""
    except FileNotFoundError:
        return NcuFigures(), "ncu wrote no counters"
    except InputError as err:
        if "ERR_NVGPUCTRPERM" in (text := str(err)):
            return NcuFigures(), text.partition(": ")[2]
        if fault := _first_error(log):  # a metric that this ncu does not know, say
            return NcuFigures(), f"ncu counted nothing: {fault}"
        if "no kernel" in text or "No kernels were profiled" in _text(log):
            return NcuFigures(), "no kernel ran on a GPU; give the command --device cuda"
        return NcuFigures(), f"ncu counted nothing: {_last_line(log)}"


def _text(path: Path) -> str:
    if not path.exists():
        return ""
    return path.read_text(encoding="utf-8", errors="replace")


def _first_error(path: Path) -> str | None:
    """Return what ncu's first message of an error says."""
    begin = "==ERROR=="
    errors = (it for it in _text(path).splitlines() if it.startswith(begin))
    return next((it.removeprefix(begin).strip()[:200] for it in errors), None)


def _last_line(path: Path) -> str:
    lines = [line for line in _text(path).splitlines() if line.strip()]
    return lines[-1].strip()[:200] if lines else "its output is empty"


def with_counters(
    report: Mapping[str, Any], figures: NcuFigures, reason: str, level: str
) -> dict[str, Any]:
    """Return a report of level L1 with counters added, and without the host's times.

    Args:
        report: What was written by the profile inside ``ncu``.
        figures: What was counted.
        reason: Why nothing was; empty where something was.
        level: What the report calls itself.
    """
    counted = ncu_metrics(figures)
    own = {metric["name"] for metric in report["metrics"]}
    if reason:
        counted = [replace(it, value=None, exact=False, reason=reason) for it in counted]
    metrics = [*map(_untimed, report["metrics"])]
    for metric in counted:
        name = f"{metric.name}.ncu" if metric.name in own else metric.name
        if metric.value is not None or name in _WANTED:
            metrics.append(replace(metric, name=name).as_mapping())
    found = {
        **report,
        "metrics": metrics,
        "configuration": {**report["configuration"], "level": level},
        "supersteps": [{**row, "seconds": None} for row in report["supersteps"]],
        "wall_time": [],
        "comparison": comparison(metrics),
    }
    if not reason:
        nothing = "Nothing stands out in what was counted."
        found["verdict"] = verdict_from(findings_of(counted), nothing)
        others = [row for row in report["operators"] if row["device"] != "cuda"]
        found["operators"] = [*kernel_rows(figures), *others]
    return found


def counters_note(report: Mapping[str, Any]) -> str:
    """Return in one line what the counters of a report say, or why there are none."""
    counted = next(m for m in report["metrics"] if m["name"] == "lane_utilization.ncu")
    if counted["value"] is None and "the file lacks" not in counted["reason"]:
        return f"no counters: {counted['reason']}"
    return f"with counters: {report['verdict']['summary']}"


_WANTED = (
    "lane_utilization.ncu",
    "sm_imbalance.ncu",
    "kernel_invocations.ncu",
    "kernel_seconds",
)
"""Metrics that say why they are missing."""


def _untimed(metric: Mapping[str, Any]) -> dict[str, Any]:
    """Take out a time of the host's, which replaying has made longer."""
    is_time = metric["unit"] == "s" or metric["name"] in _TIMED
    if metric["source"] != "host" or not is_time or metric["value"] is None:
        return dict(metric)
    return {**metric, "value": None, "exact": False, "reason": _REPLAYED}
