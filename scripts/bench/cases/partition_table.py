"""Tables of the case ``partition`` in Markdown, printed or written into their page."""

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from bench.output import RESULTS

PAGE = RESULTS.parent / "pages" / "partitioners.md"
BEGIN, END = "<!-- table -->\n", "<!-- end of table -->"
COLUMNS = {
    "cut": ("edge_cut", ".3f"),
    "nodes": ("node_balance", ".2f"),
    "edges": ("edge_balance", ".2f"),
    "replication": ("replication_factor", ".2f"),
    "halo": ("halo", ".2f"),
    "fullest bucket": ("bucket_balance", ".1f"),
    "loads": ("bucket_loads", ".0f"),
}


def tables(result: dict[str, Any], path: Path) -> str:
    """Return all tables of a result, with a link to its file."""
    runs = {}
    for kept in result["machine"]["runs"]:
        runs.setdefault(kept["work"], []).append(kept)
    link = f"../results/{path.name}"
    text = [f"From [{path.name}]({link}); balances are the largest over the mean.\n"]
    for work in sorted(runs, key=lambda work: work.startswith("gather")):
        is_gather = work.startswith("gather")
        text.append(f"**{work}**\n")
        text += gather_table(runs[work]) if is_gather else method_table(work, runs[work])
        text.append("")
    return "\n".join(text)


def method_table(work: str, runs: list[dict[str, Any]]) -> list[str]:
    """Return the lines of one graph's table."""
    lines = row("method", *COLUMNS, "seconds", "M edges/s a pass")
    lines += row(*["---"] * (len(COLUMNS) + 3))
    num_edges = float(work.split(", ")[-1].removesuffix("M edges")) * 1e6
    for kept in runs:
        figures = kept["figures"]
        seconds = statistics.median(kept["seconds"])
        cells = [
            format(figures[name], how) if name in figures else "-"
            for name, how in COLUMNS.values()
        ]
        rate = "-"
        if "passes" in figures:
            rate = f"{figures['passes'] * num_edges / seconds / 1e6:.0f}"
        system = kept["system"].removeprefix("graphsys ")
        lines += row(system, *cells, f"{seconds:.3g}", rate)
    return lines


def gather_table(runs: list[dict[str, Any]]) -> list[str]:
    """Return the lines of one graph's table of orders."""
    lines = row("order", "mean gap, bits", "product, s", "ingest, s") + row(*["---"] * 4)
    for kept in runs:
        figures = kept["figures"]
        lines += row(
            kept["system"].removeprefix("graphsys "),
            f"{figures['mean_gap_bits']:.1f}",
            f"{statistics.median(kept['seconds']):.3g}",
            f"{figures['ingest_seconds']:.1f}",
        )
    return lines


def row(*cells: str) -> list[str]:
    """Return one line of a table."""
    return [f"| {' | '.join(cells)} |"]


def main(arguments: list[str]) -> int:
    """Print the tables, or write them between the marks of their page."""
    parser = argparse.ArgumentParser(prog="scripts/bench/run partition_table")
    parser.add_argument(
        "--write", action="store_true", help="into scripts/bench/pages/partitioners.md"
    )
    options = parser.parse_args(arguments)
    found = sorted(RESULTS.glob("partition_*.json"), key=lambda path: path.stem[-6:])
    if not found:
        print("error: no results; run scripts/bench/run partition --save", file=sys.stderr)
        return 2
    text = tables(json.loads(found[-1].read_text()), found[-1])
    if not options.write:
        print(text)
        return 0
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(before + BEGIN + text + END + rest.split(END)[1])
    return 0
