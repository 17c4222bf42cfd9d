"""The GAP benchmark suite (github.com/sbeamer/gapbs) as a peer of the case ``engine``.

Its programs are C++, built by whoever measures; ``$GAPBS`` names the folder. They read our
rows in the order that ours has, in their own serialized form (src/writer.h: a byte for
"directed", the numbers of entries and of nodes, offsets, entries), and time themselves.
"""

import json
import os
import re
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from bench.cases.engine_graphs import Arrays, load
from bench.cases.engine_systems import ITERATED, ITERATIONS, LONG, SOURCELESS, Answer
from bench.harness import Outcome

PROGRAMS = {
    "bfs": "bfs",
    "wcc": "cc",
    "sssp": "sssp",
    "betweenness": "bc",
    "triangle_count": "tc",
    "pagerank": "pr_spmv",
    "pagerank_float32": "pr_spmv",
}
# what may be chosen, of which the fastest in one trial is measured
DELTAS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_PAGERANKS = [(name, "-i", str(ITERATIONS), "-t", "0") for name in ("pr_spmv", "pr")]
CHOICES: Mapping[str, Sequence[tuple[str, ...]]] = {
    "sssp": [("sssp", "-d", str(delta)) for delta in DELTAS],
    "pagerank": _PAGERANKS,
    "pagerank_float32": _PAGERANKS,
}
ANSWERS = {
    "bfs": r"BFS Tree has (?P<reached>\d+) nodes",
    "wcc": r"There are (?P<components>\d+) components",
    "sssp": r"SSSP Tree reaches (?P<reached>\d+) nodes",
    "triangle_count": r"(?P<triangles>\d+) triangles",
}


def run(work: str, folder: str) -> Outcome:
    """Serialize the graph if it is not yet, choose options, time the work's sources.

    Each source has a process of its own, whose second trial counts; as ours, the time is
    the mean over sources. PageRank's is that of an iteration.
    """
    began = time.perf_counter()
    arrays = load(folder)
    weighted = work == "sssp"
    graph = Path(folder) / ("gapbs.wsg" if weighted else "gapbs.sg")
    if not graph.exists():
        serialize(arrays, graph, weighted=weighted)
    sources = arrays.sources[: 1 if work in LONG else None]
    del arrays
    command = _chosen(work, graph, sources[0])
    load_s = time.perf_counter() - began
    runs = [_trials(command, graph, work, source) for source in sources]
    share = ITERATIONS if work in ITERATED else 1
    return Outcome(
        seconds=statistics.mean(seconds for seconds, _ in runs) / share,
        result=[answer for _, answer in runs],
        load_s=load_s,
    )


def serialize(arrays: Arrays, graph: Path, *, weighted: bool) -> None:
    """Write symmetric rows as GAPBS reads them: 32-bit nodes, and weights beside them."""
    entries = arrays.indices.astype(np.int32)
    if weighted:
        entries = np.stack([entries, arrays.weight.astype(np.int32)], axis=1)
    staged = graph.with_suffix(".part")
    with staged.open("wb") as file:
        _write_head(file, len(arrays.indices), arrays.num_nodes)
        file.write(arrays.indptr.astype(np.int64).data)
        file.write(np.ascontiguousarray(entries).data)
    staged.rename(graph)


def _write_head(file: BinaryIO, num_entries: int, num_nodes: int) -> None:
    file.write(b"\0")  # not directed
    file.write(np.array([num_entries, num_nodes], dtype=np.int64).data)


def _chosen(work: str, graph: Path, source: int) -> tuple[str, ...]:
    """Return the program and its options, the fastest where there is a choice."""
    choices = CHOICES.get(work, [(PROGRAMS[work],)])
    if len(choices) == 1:
        return choices[0]
    kept = graph.with_name(f"gapbs_{work}.json")
    if kept.exists():
        return tuple(json.loads(kept.read_text()))

    def seconds_of(choice: tuple[str, ...]) -> float:
        return _trials(choice, graph, work, source)[0]

    best = min(choices, key=seconds_of)
    kept.write_text(json.dumps(best))
    return best


def _trials(
    command: tuple[str, ...], graph: Path, work: str, source: int
) -> tuple[float, Answer]:
    """Run a program twice in one process; return the second time and what it told."""
    program = Path(os.environ["GAPBS"]) / command[0]
    words = [program, "-f", graph, "-n", "2", "-a", *command[1:]]
    if work not in SOURCELESS:
        words += ["-r", str(source)]
    told = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, check=True
    ).stdout
    times = [float(found) for found in re.findall(r"Trial Time: +([0-9.]+)", told)]
    answer = re.search(ANSWERS[work], told) if work in ANSWERS else None
    found = answer.groupdict() if answer is not None else {}
    return times[-1], {name: float(text) for name, text in found.items()}
