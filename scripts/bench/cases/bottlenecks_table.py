"""Findings and tables of the case ``bottlenecks`` in Markdown, from a result file."""

import argparse
import json
import re
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.output import RESULTS
from bench.study import mix, plot, plot_sweep, sampled, schedulers
from bench.study.findings import findings
from bench.study.statistics import trends

MAPPINGS = ("thread", "sub-warp", "warp", "block", "twc", "edge", "merge-path")
GPU = "h100"
PAGE = RESULTS.parent / "pages" / "bottlenecks.md"
PICTURE = RESULTS.parent / "pages" / "balance.svg"
SWEEP_PICTURE = RESULTS.parent / "pages" / "sweep.svg"
HEADS = ("finding", "the paper", "statistic, and when it holds", "here", "verdict")
SWEEP = {
    "launches": "kernel_invocations",
    "lanes at work, thread": f"{GPU} lane_utilization thread",
    "CTA sigma/mu, thread": f"{GPU} cta_variance thread",
    "SM max/mean, H100": f"{GPU} sm_imbalance thread",
    "SM max/mean, M2050": "m2050 sm_imbalance thread",
}
HOST = ("runs of", "launches", "supersteps", "entries per launch")
BALANCE = {
    "warp sigma/mu": "warp_variance thread",
    "CTA sigma/mu": "cta_variance thread",
    "CTAs per SM": "ctas_per_sm thread",
    "SM max/mean": "sm_imbalance thread",
}
MEMORY = {
    "sectors per request, thread": "value_sectors_per_request thread",
    "coalescing, thread": "coalescing_efficiency thread",
    "sectors per request, warp": "value_sectors_per_request warp",
    "coalescing, warp": "coalescing_efficiency warp",
    "conflicts, edge": "conflicts_per_request edge",
}


def main(arguments: Sequence[str]) -> int:
    """Print the tables of the file that is named, or of the newest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, nargs="?", help="the newest result by default")
    parser.add_argument(
        "--document", action="store_true", help=f"with the findings, into {PAGE.name}"
    )
    given = parser.parse_args(arguments)
    path = given.file or newest()
    if path is None:
        print("no result yet: scripts/bench/run bottlenecks --save", file=sys.stderr)
        return 1
    result = json.loads(path.read_text())
    if given.document:
        PAGE.write_text(document(result, path.name) + "\n", encoding="utf-8")
        PICTURE.write_text(plot.regimes(rows_of(result)), encoding="utf-8")
        picture = plot_sweep.along(rows_of(result), SWEEP)
        SWEEP_PICTURE.write_text(picture, encoding="utf-8")
    else:
        print(tables(result))
    return 0


def newest() -> Path | None:
    """Return the newest result of the case."""
    found = sorted(RESULTS.glob("bottlenecks_*.json"))
    return found[-1] if found else None


def rows_of(result: dict[str, Any]) -> list[tuple[str, dict[str, float]]]:
    """Return the runs of a result, by name, with their figures."""
    return [(kept["work"], kept["figures"]) for kept in result["machine"]["runs"]]


def document(result: dict[str, Any], name: str) -> str:
    """Return the page that is committed: the findings, then all tables."""
    machine = result["machine"]
    rows, simulated = rows_of(result), schedulers.simulated()
    graphs = sum(1 for work, _ in rows if not work.startswith("control"))
    text = [
        "# The twelve applications study",
        "",
        "Written by `scripts/bench/bottlenecks`, which runs both cases and then",
        f"`scripts/bench/run bottlenecks_table --document`, from `{name}`",
        f"(`{machine['command']}`, commit {machine['commit']}, {machine['date']})",
        f"`{schedulers.newest_name()}` (caches, stalls, schedulers) and",
        f"`{mix.newest_name()}` (machine code);",
        "do not edit. Launches are counted on the CPU's engine. Lanes, requests and",
        "balance come from the SIMT model over the rows really visited; nothing here ran",
        "on a GPU.",
        f"{graphs} runs of 12 applications, {len(rows) - graphs} controls.",
        "",
        "The controls are programs (`scripts/bench/controls`): CUDA-style kernels that the",
        "CPU runs thread by thread, checked against NumPy and SciPy. *Counted*: their",
        "launches, their copies, every load from global memory, every operand taken into a",
        "result, written down by the loop that computes. *Modelled* from that, as for",
        "graphs: lanes, requests, balance. *Assumed*: 10 instructions per item and 20 per",
        "step, CTAs of 256 threads with 32 registers; stores, shared and constant memory",
        "cost nothing. Also assumed: ways, latencies and the order of warps in the cache",
        "model, see `graphsys/analysis/README.md`.",
        "",
        "## The findings",
        "",
        'The paper: Xu, Jeon, Annavaram, "Graph Processing on GPUs: Where are the',
        'Bottlenecks?", IISWC 2014. Its findings, in our words. Each is a statistic over',
        f"the sweep: R-MAT, road and uniform graphs of {sizes(rows)} entries (more, up to",
        "1e8: `scripts/bench/run bottlenecks --inputs rmat-1e7,road-1e8 --save`), and two",
        "real ones, against the controls. Medians are over runs. Pairs are of a graph",
        "run and a control run, of inputs no larger than the largest control's twice over",
        "(A, B, D: work and copies grow with the input). Above 500,000 entries five",
        "applications are left out, which take thousands of supersteps; above 2,000,000 SP",
        "too, on roads SSSP, and 8 SMs stand for the requests of all",
        "(`request_sampling_error`). One row anew:",
        '`scripts/bench/run bottlenecks --only "BFS, road" --inputs road-1e5`.',
        "",
        *table(
            HEADS,
            [it.cells() for it in findings(rows, simulated, mix.mixes())],
        ),
        "",
        "![CTAs of an SM, by how launches fill the SMs](balance.svg)",
        "",
        "The three regimes of coarse balance: left of 1 launches have fewer CTAs than",
        "there are places, at 1 as many, right of it more. A point is a run's mean.",
        "",
        f"Caches, stalls and schedulers: four applications, graphs of {sizes(simulated)}",
        "entries (above 2,000,000 no SSSP on roads), two real ones. Up to 2,000,000 all",
        "sets of all SMs' caches are simulated, above a quarter stands for all. Graphs no",
        "larger than the controls are set beside those. How far a quarter is from all:",
        "",
        *table(sampled.HEADS, sampled.beside_all(simulated)),
        "",
        "## Along the sweep",
        "",
        "Medians over the applications that were run on most sizes of a kind:",
        "",
        "![Launches, lanes, CTAs and SMs, from small graphs to large](sweep.svg)",
        "",
        *sweep(rows),
        "",
        "## The tables",
        "",
        tables(result),
    ]
    return "\n".join(text)


def tables(result: dict[str, Any]) -> str:
    """Return all tables: launches, lanes, balance, memory, and graph beside control."""
    rows = rows_of(result)
    text = ["Launches, and the work of each, counted on the host:\n"]
    text += table(HOST, [(work, *host_cells(figures)) for work, figures in rows])
    text += ["", "Lanes at work by mapping, modelled from the rows visited (exact):\n"]
    names = [f"lane_utilization {mapping}" for mapping in MAPPINGS]
    text += table(("runs of", *MAPPINGS), figure_rows(rows, names, percent=True))
    text += ["", "Thread per row on an H100: variation and balance (modelled):\n"]
    text += table(("runs of", *BALANCE), figure_rows(rows, list(BALANCE.values())))
    text += ["", "Requests for neighbors' values (exact):\n"]
    text += table(("runs of", *MEMORY), figure_rows(rows, list(MEMORY.values())))
    text += ["", "Medians over graph applications and over controls:\n", *beside(rows)]
    return "\n".join(text)


def sizes(rows: list[tuple[str, dict[str, float]]]) -> str:
    """Return the sizes of the drawn graphs that were run, as their names have them."""
    names = (work.split(", ")[1] for work, _ in rows if not work.startswith("control"))
    words = {name.rpartition("-")[2] for name in names}
    found = sorted(filter(re.compile(r"\d+e\d+").fullmatch, words), key=float)
    return " and ".join([", ".join(found[:-1]), found[-1]] if found[1:] else found)


def sweep(rows: list[tuple[str, dict[str, float]]]) -> list[str]:
    """Return medians by kind of graph, from the smallest to the largest."""
    lines = []
    for label, name in SWEEP.items():
        for kind, (line, count) in trends(rows, name).items():
            told = " / ".join(f"{value:.3g}" for _, value in line)
            lines.append((label, kind, told, str(count)))
    return table(("median", "graphs", "smallest to largest", "applications"), lines)


def beside(rows: list[tuple[str, dict[str, float]]]) -> list[str]:
    """Return the medians of the graph applications beside those of the controls."""
    named = {
        "launches": "kernel_invocations",
        "entries per launch": f"{GPU} work_per_invocation",
        "lanes at work, thread": f"{GPU} lane_utilization thread",
        "CTA sigma/mu, thread": f"{GPU} cta_variance thread",
        "coalescing, thread": f"{GPU} coalescing_efficiency thread",
    }
    lines = []
    for label, name in named.items():
        both = []
        for is_control in (False, True):
            known = [
                figures[name]
                for work, figures in rows
                if work.startswith("control") == is_control and name in figures
            ]
            both.append(f"{statistics.median(known):.4g}" if known else "-")
        lines.append((label, *both))
    return table(("median", "graph applications", "controls"), lines)


def host_cells(figures: dict[str, float]) -> tuple[str, ...]:
    """Return launches, supersteps and entries per launch."""
    names = ("kernel_invocations", "supersteps", f"{GPU} work_per_invocation")
    return tuple(f"{figures[name]:,.0f}" if name in figures else "-" for name in names)


def figure_rows(
    rows: list[tuple[str, dict[str, float]]], names: list[str], *, percent: bool = False
) -> list[tuple[str, ...]]:
    """Return a row of figures of the GPU's model for every work."""
    how = "{:.1%}" if percent else "{:.3g}"
    return [
        (
            work,
            *(
                how.format(figures[f"{GPU} {name}"]) if f"{GPU} {name}" in figures else "-"
                for name in names
            ),
        )
        for work, figures in rows
    ]


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]
