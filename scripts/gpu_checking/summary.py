"""Forty lines that tell how a check went."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpu_checking.steps import name_of

_MOST_ERRORS = 18
_WIDTH = 160


def latest(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rows of each step's last run: earlier ones are done over."""
    runs: dict[str, list[list[Mapping[str, Any]]]] = {}
    for row in rows:
        of_step = runs.setdefault(row["step"], [[]])
        of_step[-1].append(row)
        if row.get("kind") == "end":
            of_step.append([])
    return [row for found in runs.values() for row in [it for it in found if it][-1]]


def summary(rows: Sequence[Mapping[str, Any]], steps: Sequence[str]) -> list[str]:
    """Return the outcome of each step, the first errors, and the best figures.

    Args:
        rows: Of the result.
        steps: That were asked for, in their order.
    """
    rows = latest(rows)
    ends = {row["step"]: row for row in rows if row.get("kind") == "end"}
    lines = []
    for step in steps:
        end = ends.get(step)
        if end is None:
            lines.append(f"{step:12} not reached")
            continue
        left = sum("left_out" in row for row in rows if row["step"] == step)
        lines.append(
            f"{step:12} {end['status']:8} {end['seconds']:6} s  {end['rows']} rows, "
            f"{end['errors']} errors, {left} left out"
        )
    errors = [row for row in rows if "error" in row]
    lines += [
        f"error in {row['step']}, {name_of(row) or 'the step'}: {row['error']}"[:_WIDTH]
        for row in errors[:_MOST_ERRORS]
    ]
    if len(errors) > _MOST_ERRORS:
        lines.append(f"... and {len(errors) - _MOST_ERRORS} more errors")
    return [*lines, *figures(rows)]


def figures(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the best rate of every step that has one, beside what a copy reaches."""
    found = []
    for key, unit in (
        ("bytes_per_second", "GB/s"),
        ("flops_per_second", "GFLOP/s"),
        ("edges_per_second", "G edges/s"),
    ):
        for step in dict.fromkeys(row["step"] for row in rows if row["step"]):
            rates = [
                (row[key], row)
                for row in rows
                if row["step"] == step and key in row and row.get("device") != "cpu"
            ]
            if rates:
                best, row = max(rates, key=lambda it: it[0])
                found.append(f"{step}: {best / 1e9:.3g} {unit}, {name_of(row)}"[:_WIDTH])
    return found
