"""What a cache of important nodes' neighbors would save of the index's page reads.

    scripts/bench/run neighbor_cache [--scale 20] [--batches 40] [--save]

Samples a stored R-MAT graph, notes which pages of the mapped index each draw reads, and
replays them against memory of an eighth, a quarter and half of the index: all of it page
cache (the last used pages stay), or a share of it rows of chosen nodes, which the page
cache then need not hold. Rows are chosen by AliGraph's importance (Zhu et al., VLDB 2019),
by how often they are named, or by how often the first half of the batches asked for them
per byte, which no cache that is filled ahead can know. A cached row costs its neighbors and
16 bytes. Reported are the pages read in the second half of the batches, of those without
such a cache. Counts, not times: any machine finds the same. --save writes
results/neighbor_cache_<hardware>_<yyyymm>.json.
"""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench import output
from bench.__main__ import describe_run
from bench.cases.gnn_inputs import BATCH_SIZE, seeds_with_edges
from graphsys.core.machine import describe_machine
from graphsys.datasets.generators import rmat
from graphsys.kernels.jit import jit
from graphsys.sampling import (
    NeighborSampler,
    degree_scores,
    importance_scores,
    rows_of,
)
from graphsys.sampling.adjacency import PartitionedCsr
from graphsys.storage import Graph, ingest

Ints = npt.NDArray[np.int64]
FANOUTS = (5, 10, 15)
EDGE_FACTOR = 20
PAGE, ENTRY_BYTES, ROW_BYTES = 4096, 4, 16
MEMORY, SHARES = (1 / 8, 1 / 4, 1 / 2), (0.25, 0.5, 0.75)
PER_PAGE = PAGE // ENTRY_BYTES


@jit
def trace_rows(
    indptr: Any, nodes: Any, entries: Any, first: Any, pages: Any, rows: Any
) -> Any:
    """Write the pages that rows read, each row's offset first, and whose they are."""
    count = 0
    for k in range(len(nodes)):
        pages[count] = nodes[k] // PER_PAGE
        rows[count] = nodes[k]
        count += 1
        for e in range(indptr[k], indptr[k + 1]):
            pages[count] = first + entries[e] // PER_PAGE
            rows[count] = nodes[k]
            count += 1
    return count


@jit
def count_misses(
    pages: Any, rows: Any, is_cached: Any, slots: Any, newer: Any, older: Any, begin: Any
) -> Any:
    """Return the reads from ``begin`` on that neither cached rows nor kept pages serve.

    ``newer`` and ``older`` link the pages kept, as places; ``slots[page]`` is a page's
    place or -1. One place more than pages are kept is the end of the list.
    """
    capacity = len(newer) - 1
    owner = np.full(capacity, -1, np.int64)
    end, used, misses = capacity, 0, 0
    newer[end], older[end] = end, end
    for k in range(len(pages)):
        if is_cached[rows[k]]:
            continue
        place = slots[pages[k]]
        if place < 0:
            misses += k >= begin
            if capacity == 0:
                continue
            if used < capacity:
                place = used
                used += 1
            else:
                place = newer[end]  # used longest ago
                newer[end] = newer[place]
                older[newer[place]] = end
                slots[owner[place]] = -1
            slots[pages[k]], owner[place] = place, pages[k]
        else:
            newer[older[place]] = newer[place]
            older[newer[place]] = older[place]
        last = older[end]
        newer[last], older[place] = place, last
        newer[place], older[end] = end, place
    return misses


def traced(rows: PartitionedCsr, batches: list[Ints]) -> Iterator[tuple[Ints, Ints]]:
    """Yield the pages that each batch reads of one partition's index, and the rows."""
    sampler = NeighborSampler([rows], FANOUTS, seed=1)
    first = -(-(rows.num_nodes + 1) // PER_PAGE)
    for number, seeds in enumerate(batches):
        with sampler.sample(seeds, batch=number) as sample:
            for block in reversed(sample.blocks):
                assert block.edge is not None
                room = np.empty((2, block.num_dst + block.num_edges), dtype=np.int64)
                count = trace_rows(
                    block.indptr, block.dst_nodes, block.edge, first, room[0], room[1]
                )
                yield room[0, :count], room[1, :count]


def chosen_rows(scores: Any, degrees: Ints, budget: int) -> npt.NDArray[np.bool_]:
    """Return which rows a budget of bytes holds, the highest scores first."""
    order = np.argsort(-scores, kind="stable")
    order = order[degrees[order] > 0]
    spent = np.cumsum(ENTRY_BYTES * degrees[order] + ROW_BYTES)
    is_cached = np.zeros(len(degrees), dtype=np.bool_)
    is_cached[order[spent <= budget]] = True
    return is_cached


def replay(graph: Graph, num_batches: int) -> list[dict[str, Any]]:
    """Return a row per memory, and choice and share of cached rows."""
    rows = rows_of(graph, "edge", "in")
    parts = list(traced(rows, seeds_with_edges(graph, num_batches)))
    begin = sum(len(pages) for pages, _ in parts[: len(parts) // 2])
    pages, owners = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    del parts
    degrees = rows.degrees()
    asked = np.bincount(owners[:begin], minlength=rows.num_nodes)
    scores = {
        "importance": importance_scores([rows], "node"),
        "degree": degree_scores([rows], "node"),
        "asked per byte": asked / (ENTRY_BYTES * degrees + ROW_BYTES),
    }
    num_pages = int(-(-(rows.num_nodes + 1) // PER_PAGE) - (-rows.num_entries // PER_PAGE))

    def misses(is_cached: Any, memory: int) -> int:
        kept = max(memory // PAGE, 0)
        links = np.zeros((2, kept + 1), dtype=np.int64)
        slots = np.full(num_pages, -1, dtype=np.int64)
        return int(count_misses(pages, owners, is_cached, slots, *links, begin))

    none, found = np.zeros(rows.num_nodes, dtype=np.bool_), []
    for fraction in MEMORY:
        memory = int(fraction * num_pages * PAGE)
        alone = misses(none, memory)
        reads = len(pages) - begin
        found.append(
            {
                "memory": fraction,
                "cached": "no rows",
                "pages_read": alone,
                "hit_rate": 1 - alone / reads,
                "reads": reads,
            }
        )
        for name, score in scores.items():
            for share in SHARES:
                is_cached = chosen_rows(score, degrees, int(share * memory))
                count = misses(is_cached, memory - int(share * memory))
                found.append(
                    {
                        "memory": fraction,
                        "cached": name,
                        "share": share,
                        "pages_read": count,
                        "of_no_rows": round(count / alone, 3),
                        "row_hit_rate": float(is_cached[owners[begin:]].mean()),
                    }
                )
    return found


def main(arguments: list[str]) -> int:
    parser = output.parser_of(__doc__)
    parser.add_argument("--scale", type=int, default=20)
    parser.add_argument("--batches", type=int, default=40)
    options = output.parsed(parser, arguments)
    command = " ".join(["scripts/bench/run neighbor_cache", *arguments])
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="neighbors-") as name:
        for order in ("degree", "original"):
            source = rmat(options.scale, EDGE_FACTOR, directed=True)
            with ingest(source, Path(name) / order, order=order).graph as graph:
                for row in replay(graph, options.batches):
                    rows.append({"order": order, **row, **output.stamp(command)})
                    print(json.dumps(rows[-1]), flush=True)
        machine = describe_run(describe_machine(Path(name)), [])
    if options.save:
        settings = {
            "scale": options.scale,
            "edge_factor": EDGE_FACTOR,
            "fanouts": FANOUTS,
            "batch_size": BATCH_SIZE,
            "batches": options.batches,
        }
        machine |= {"command": command}
        output.keep_record("neighbor_cache", rows, machine=machine, settings=settings)
    return 0
