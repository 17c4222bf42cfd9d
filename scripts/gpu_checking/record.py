"""What a check told, as a committed result, and as the page made from it."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gpu_checking.steps import STEPS

BENCH = Path(__file__).resolve().parents[1] / "bench"
PAGE = BENCH / "GPU.md"
_CASE = "gpu_check"
_MODELS = ("h200", "h100", "a100")
_HEAD = """\
# On a GPU

Made by `scripts/gpu_check --keep FILE` of what `scripts/gpu_check` told on a card, without
one by `scripts/gpu_check --page`. Rates of a copy and of a matrix product on the same card
stand first: what other rows are fractions of.
"""
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "smoke": ("case", "device", "python", "torch", "triton", "numba-cuda"),
    "correctness": ("case", "passed", "failed", "skipped"),
    "anchors": ("case", "bytes_per_second", "flops_per_second"),
    "engine": ("case", "device", "strategy", "seconds", "edges_per_second", "supersteps",
               "kernel_launches"),
    "embedding": ("graph", "device", "partitions", "rows", "batch_size",
                  "edges_per_second", "loss_from_cpu"),
    "gnn": ("program", "device", "system", "seconds", "seconds_backward",
            "bytes_per_second", "seconds_per_100"),
    "mining": ("program", "graph", "device", "seconds"),
    "sanitizer": ("case", "seconds"),
    "counters": ("case", "predicted", "ncu", "differs"),
    "clocks": ("program", "graph", "strategy"),
}  # fmt: skip


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
        lines = [
            "Not yet run on a GPU, row by row:", "", "| step | what it tells | on a card |",
            "| --- | --- | --- |",
            *(f"| {it.name} | {it.about} | not yet run |" for it in STEPS),
        ]  # fmt: skip
        return f"{_HEAD}\n" + "\n".join(lines) + "\n"
    parts = [_HEAD]
    for path in results:
        result = json.loads(path.read_text())
        about = result["machine"]
        parts.append(
            f"## {about['device']}\n\n[All rows](results/{path.name}) at commit "
            f"{about['commit']}, {about['date']}.\n"
        )
        for step in STEPS:
            rows = [row for row in result["rows"] if row["step"] == step.name]
            parts.append(f"### {step.name}\n\n{table(step.name, rows)}\n")
    return "\n".join(parts)


def table(step: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a step's rows as a Markdown table; errors and what was left out are said."""
    shown = [row for row in rows if row.get("kind") != "end"]
    if not shown:
        return "Not yet run on a GPU."
    columns = _COLUMNS[step]
    lines = [[*columns, "outcome"], ["---"] * (len(columns) + 1)]
    for row in shown:
        if "error" in row:
            outcome = f"error: {row['error']}"[:120]
        else:
            outcome = "not run" if row.get("left_out") else "as it should be"
        lines.append([*(_cell(row.get(name)) for name in columns), outcome])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text.replace("|", "/").replace("\n", " ")
