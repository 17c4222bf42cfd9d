"""Tables of the case ``billion`` in Markdown, printed or written into its page."""

import argparse
import json
from pathlib import Path
from typing import Any

from bench.billion_steps import STEPS
from bench.output import RESULTS
from graphsys.core.memory import parse_bytes

PAGE = RESULTS.parent / "BILLION.md"
MARKS = {
    name: (f"<!-- {name} -->\n", f"<!-- end of {name} -->") for name in ("tables", "verbs")
}
Row = dict[str, Any]


def tables(rows: list[Row], name: str) -> str:
    """Return the table of the largest scale, that of growth, and that of peers."""
    by_place = {(row["step"], row["scale"]): row for row in rows}
    scales = sorted({row["scale"] for row in rows})
    largest = scales[-1]
    lines = [f"From [{name}](results/{name}).", ""]
    budgets = {row["memory"] for row in rows if row["scale"] == largest}
    edges = (16 << largest) / 1e9
    lines += [
        f"**Scale {largest}: {edges:.2f} G edges, `--memory {', '.join(budgets)}`**",
        "",
    ]
    lines += _row(
        "step",
        "seconds",
        "its own",
        "M edges/s",
        "peak GB",
        "read GB",
        "written GB",
        "of its bound",
        "commit",
    )
    lines += _row(*["---"] * 9)
    for step in STEPS:
        if (step, largest) in by_place:
            lines += _step(step, by_place[step, largest])
    lines += [
        "",
        "**Growth: microseconds, and bytes of memory and of the disk, per edge**",
        "",
    ]
    lines += _row("step", *(f"scale {scale}" for scale in scales))
    lines += _row(*["---"] * (1 + len(scales)))
    for step, made in STEPS.items():
        if made.amount and not made.peer and step != "nearest":
            found = [by_place.get((step, scale)) for scale in scales]
            if sum(row is not None for row in found) > 1:
                lines += _row(step, *map(_growth, found))
    return "\n".join([*lines, *_peers(by_place, scales), ""])


def _step(step: str, row: Row) -> list[str]:
    own = row["own_seconds"]
    rate = f"{row['edges_per_s'] / 1e6:.3g}" if STEPS[step].amount or own else "-"
    sizes = (f"{row[k] / 1e9:.2f}" for k in ("peak_bytes", "read_bytes", "written_bytes"))
    bound = f"{row['fraction_of_bound']:.2f} {row['bound']}"
    seconds = "-" if own is None else f"{own:.1f}"
    return _row(step, f"{row['seconds']:.1f}", seconds, rate, *sizes, bound, row["commit"])


def _growth(row: Row | None) -> str:
    if row is None:
        return "-"
    micros = row["seconds"] / (16 << row["scale"]) * 1e6
    return f"{micros:.3f}, {row['bytes_per_edge']:.1f}, {row['io_per_edge']:.1f}"


def _peers(by_place: dict[tuple[str, int], Row], scales: list[int]) -> list[str]:
    """Return the lines of the peers' table, none where there were none."""
    beside = {
        "degrees_duckdb": "degree_statistics",
        "wcc_duckdb": "wcc",
        "embedding_pbg": "embedding",
    }
    lines = []
    for theirs, ours in beside.items():
        for scale in scales:
            if {(theirs, scale), (ours, scale)} <= by_place.keys():
                other, own = by_place[theirs, scale], by_place[ours, scale]
                times = other["own_seconds"] / own["own_seconds"]
                lines += _row(
                    f"{ours}, scale {scale}",
                    other["system"],
                    f"{own['own_seconds']:.2f}",
                    f"{other['own_seconds']:.2f}",
                    f"{times:.1f}",
                    f"{own['peak_bytes'] / 1e9:.2f}",
                    f"{other['peak_bytes'] / 1e9:.2f}",
                )
    if not lines:
        return []
    head = ("work", "peer", "our s", "their s", "times", "our peak GB", "their peak GB")
    title = "**Beside peers, seconds of the question alone**"
    return ["", title, "", *_row(*head), *_row(*["---"] * 7), *lines]


def verbs(rows: list[Row], name: str) -> str:
    """Return the table of what verbs take, without a budget and with their smallest."""
    works: dict[str, list[Row]] = {}
    for row in rows:
        works.setdefault(row["work"], []).append(row)
    lines = [f"From [{name}](results/{name}), MB.", ""]
    lines += _row("command", "peak without a budget", "smallest budget", "its peak", "how")
    lines += _row(*["---"] * 5)
    for work, found in works.items():
        free = [row for row in found if row["budget"] == "none"]
        kept = [
            row for row in found if row["budget"] != "none" and row["verdict"] == "kept"
        ]
        cells = [_megabytes(free[0]) if free else "-", "-", "-", "-"]
        if kept:
            least = min(kept, key=lambda row: parse_bytes(row["budget"]))
            budget = f"{parse_bytes(least['budget']) / 1e6:.0f}"
            cells[1:] = [budget, _megabytes(least), least["mode"] or "-"]
        lines += _row(work.split(" --set ")[0], *cells)
    return "\n".join([*lines, ""])


def _megabytes(row: Row) -> str:
    return f"{row['peak_bytes'] / 1e6:.0f}"


def _row(*cells: str) -> list[str]:
    return [f"| {' | '.join(cells)} |"]


def main(arguments: list[str]) -> int:
    """Print the tables, or write them into the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.name}")
    options = parser.parse_args(arguments)
    page = PAGE.read_text()
    for what, make, case in (
        ("tables", tables, "billion"),
        ("verbs", verbs, "memory_rule"),
    ):
        path = max(RESULTS.glob(f"{case}_*.json"), key=_date)
        text = make(json.loads(path.read_text())["rows"], path.name)
        begin, end = (page.index(mark) for mark in MARKS[what])
        page = f"{page[: begin + len(MARKS[what][0])]}\n{text}\n{page[end:]}"
        if not options.write:
            print(text)
    if options.write:
        PAGE.write_text(page)
    return 0


def _date(path: Path) -> str:
    """Return when a result's last row was measured."""
    return str(max(row["date"] for row in json.loads(path.read_text())["rows"]))
