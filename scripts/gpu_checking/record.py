"""What a check told, as a committed result, and as the page made from it."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gpu_checking import embedding
from gpu_checking.steps import STEPS, Step, name_of

BENCH = Path(__file__).resolve().parents[1] / "bench"
PAGE = BENCH / "GPU.md"
_CASE = "gpu_check"
_MODELS = ("h200", "h100", "a100")
_HEAD = """\
# On a GPU

Made by `scripts/gpu_check --keep FILE` of what `scripts/gpu_check` told on a card, without
one by `scripts/gpu_check --page`. Rates of a copy and of a matrix product on the same card
stand first: what other rows are fractions of. `of_copy` is over 1 where caches give rows
twice. `of_product` is of float32's rate; the embedding's kernels make three products of
tf32.
"""
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "smoke": ("device", "python", "torch", "triton", "numba-cuda"),
    "correctness": ("passed", "failed", "skipped"),
    "anchors": ("bytes_per_second", "flops_per_second"),
    "engine": (
        "seconds",
        "kernel_device_seconds",
        "edges_per_second",
        "edges_per_second_in_kernels",
        "supersteps",
        "kernel_launches",
        "compared_with",
    ),
    "embedding": (
        "edges_per_second",
        "of_product",
        "loss",
        "loss_from_cpu",
        "kernel_device_seconds",
    ),
    "gnn": (
        "from_float64",
        "seconds",
        "seconds_backward",
        "bytes_per_second",
        "of_copy",
        "seconds_per_100",
        "kernel_device_seconds",
    ),
    "mining": ("seconds",),
    "sanitizer": ("seconds",),
    "counters": ("predicted", "ncu", "differs", "explained"),
    "clocks": (
        "predicted_launches",
        "lane_utilization",
        "ctas_per_sm",
        "sm_imbalance",
        "cta_variance",
        "warp_variance",
    ),
}
"""Beside the name of a row and its outcome; of clocks predicted / measured values."""


def keep(told: Sequence[Mapping[str, Any]]) -> Path:
    """Write the rows of a check as a result, and the page; return the result.

    Args:
        told: Rows, the one of its beginning among them.
    """
    begin = next(row for row in told if row.get("kind") == "begin")
    versions = next((row for row in told if row.get("case") == "versions"), {})
    device = str(versions.get("device", ""))
    model = next((name for name in _MODELS if name in device.lower()), "gpu")
    path = BENCH / "results" / f"{_CASE}_{model}_{datetime.now(tz=UTC):%Y%m}.json"
    stamp = {name: begin[name] for name in ("command", "commit", "date", "load_average")}
    result = {
        "case": _CASE,
        "machine": {**stamp, "hardware": model, "device": device},
        "rows": [row for row in told if row.get("kind") != "begin"],
    }
    path.write_text(json.dumps(result, indent=1) + "\n")
    PAGE.write_text(page())
    return path


def page() -> str:
    """Return the page: every step with its rows, or that no card ran it."""
    results = sorted((BENCH / "results").glob(f"{_CASE}_*.json"))
    if not results:
        parts = [f"{_HEAD}\nNo card has run it yet.\n"]
        parts += [f"## {it.name}: {it.about}\n\n{table(it, [])}\n" for it in STEPS]
        return "\n".join(parts)
    parts = [_HEAD]
    for path in results:
        result = json.loads(path.read_text())
        about = result["machine"]
        parts.append(
            f"## {about['device']}\n\n[All rows](results/{path.name}) at commit "
            f"{about['commit']}, {about['date']}.\n"
        )
        every = with_shares(result["rows"])
        for step in STEPS:
            rows = [row for row in every if row["step"] == step.name]
            parts.append(f"### {step.name}\n\n{table(step, rows)}\n")
    return "\n".join(parts)


def with_shares(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows with what they are of the card's best: see :data:`_COLUMNS`."""
    best = {row["case"]: row for row in rows if row["step"] == "anchors" and "case" in row}
    copied = best.get("copy on the device", {}).get("bytes_per_second")
    product = best.get("product of float32", {}).get("flops_per_second")
    found = []
    for row in map(dict, rows):
        rate, inside = row.get("edges_per_second"), row.get("kernel_device_seconds")
        if row["step"] == "engine" and rate and inside:
            row["edges_per_second_in_kernels"] = rate * row["seconds"] / inside
        if row["step"] == "gnn" and copied and "bytes_per_second" in row:
            row["of_copy"] = row["bytes_per_second"] / copied
        if row["step"] == "embedding" and product and rate:
            row["of_product"] = rate * embedding.FLOP_PER_EDGE / product
        found.append(row)
    return found


def table(step: Step, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a step's rows as a Markdown table, what no card ran yet among them."""
    shown = [row for row in rows if row.get("kind") != "end"]
    columns = _COLUMNS[step.name] if shown else ()
    lines = [["row", *columns, "outcome"], ["---"] * (len(columns) + 2)]
    for row in shown:
        if "error" in row:
            outcome = f"error: {row['error']}"[:120]
        else:
            outcome = "not run" if row.get("left_out") else "as it should be"
        sides = {it["name"]: it for it in row.get("comparison", ())}
        cells = [_cell(row.get(name, _two_sides(sides.get(name)))) for name in columns]
        lines.append([_cell(name_of(row)), *cells, outcome])
    told = {name_of(row) for row in shown}
    missing = [name for name in step.planned() if name not in told]
    lines += [[name, *["-"] * len(columns), "not yet run"] for name in missing]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _two_sides(found: Mapping[str, Any] | None) -> str | None:
    """Return a predicted and a measured value as one cell."""
    return found and f"{_cell(found['predicted'])} / {_cell(found['clock'])}"


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text.replace("|", "/").replace("\n", " ")
