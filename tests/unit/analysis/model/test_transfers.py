"""Copies predicted for a GPU, by who drives the run."""

from functools import reduce
from operator import add

import numpy as np
import pytest

import graphsys as gs
from graphsys.analysis.model.devices import GPUS
from graphsys.analysis.model.row_model import RowModel
from graphsys.analysis.model.transfers import (
    LINKS,
    PAGE_BYTES,
    HostLink,
    StepArrays,
    Transfers,
    step_transfers,
)
from graphsys.core.errors import UnknownNameError
from graphsys.core.row_trace import RowVisit
from graphsys.engine import algorithms
from graphsys.engine.topology import Topology

LINK = HostLink(bytes_per_s=1e9, copy_s=1e-5, fault_s=1e-4)


def total(style: str, steps: int, *arrays: int, result: int) -> Transfers:
    """A run whose first superstep brings arrays, and whose last gives a result."""
    needs = [StepArrays() for _ in range(steps)]
    needs[0].arrays, needs[-1].results = arrays, (result,)
    return reduce(add, (step_transfers(style, need, LINK) for need in needs))


def test_the_hosts_flag_costs_two_copies_a_superstep() -> None:
    found = total("host-driven", 7, 800, 4000, 400, result=400)
    assert found.count == 3 + 1 + 2 * 7
    assert found.num_bytes == 5600 + 7 * 8
    assert found.seconds == pytest.approx(18e-5 + 5656e-9)


def test_ours_reads_counters_once_a_superstep() -> None:
    found = total("ours", 7, 800, 4000, 400, result=400)
    assert (found.count, found.num_bytes) == (4 + 7, 5600 + 7 * 64)
    packed = StepArrays(arrays=(10, 20, 900), packed=(900, 30))
    assert step_transfers("ours", packed, LINK).count == 2 + 1
    assert step_transfers("host-driven", packed, LINK).count == 3 + 2


def test_unified_memory_faults_by_pages() -> None:
    found = total("unified", 5, PAGE_BYTES + 1, 1, result=1)
    assert found.count == 2 + 1 + 1 + 2 * 5
    assert found.num_bytes == 14 * PAGE_BYTES
    assert found.seconds == pytest.approx(14e-4 + 14 * PAGE_BYTES / 1e9)
    rows = StepArrays(row_bytes=10 * PAGE_BYTES, row_pages=3)
    assert step_transfers("unified", rows, LINK).count == 3 + 2
    assert step_transfers("ours", rows, LINK).num_bytes == 10 * PAGE_BYTES + 64


def test_an_unknown_style_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="style of transfers 'pinned'"):
        step_transfers("pinned", StepArrays(), LINK)


def test_pages_of_rows_fault_in_the_superstep_that_touches_them() -> None:
    model = RowModel(GPUS["h100"])
    indices = np.zeros(4 * PAGE_BYTES, dtype=np.uint8)  # four pages
    starts = np.array([0, PAGE_BYTES - 1, 3 * PAGE_BYTES])

    def visit(lengths: list[int]) -> RowVisit:
        return RowVisit(
            superstep=0,
            kind="pull",
            lengths=np.array(lengths),
            starts=starts,
            indices=indices,
        )

    # the first page; then the second row lies in two pages, of which one is new
    model([visit([1, 0, 0]), visit([0, 2, 0]), visit([1, 2, 0]), visit([5, 2, 5])])
    assert model.new_pages == [1, 1, 0, 1]
    assert model.new_row_bytes == [4 * PAGE_BYTES, 0, 0, 0]


def test_a_report_predicts_the_copies_of_a_run() -> None:
    rng = np.random.default_rng(3)
    src, dst = rng.integers(0, 300, (2, 2000))
    topology = Topology.from_edges(src, dst, 300, directed=True)
    with gs.profile() as p:
        algorithms.get("pagerank")(topology, implementation="program", iterations=6)
    metrics = {it["name"]: it for it in p.report["metrics"]}
    steps = metrics["supersteps"]["value"]
    rows = metrics["row_bytes"]["value"]
    assert steps == 6
    found = {
        name: metrics[f"predicted_transfer_{name}.host-driven"]
        for name in ("count", "bytes", "seconds")
    }
    assert found["count"]["value"] == 4 + 2 * steps
    assert found["bytes"]["value"] == 8 * 301 + rows + 2 * 8 * 300 + 8 * steps
    link = LINKS["H100 SXM"]
    wanted = found["count"]["value"] * link.copy_s
    wanted += found["bytes"]["value"] / link.bytes_per_s
    assert found["seconds"]["value"] == pytest.approx(wanted)
    assert {(it["source"], it["exact"]) for it in found.values()} == {("model", False)}
    assert metrics["predicted_transfer_count.ours"]["value"] == 4 + steps
    each = [step["predicted_transfers"] for step in p.report["supersteps"]]
    assert [it["ours"]["count"] for it in each] == [4, 1, 1, 1, 1, 2]
    assert [it["host-driven"]["count"] for it in each] == [5, 2, 2, 2, 2, 3]
    assert (
        sum(it["unified"]["bytes"] for it in each)
        == (metrics["predicted_transfer_bytes.unified"]["value"])
    )


def test_a_run_without_rows_predicts_no_copies() -> None:
    with gs.profile() as p:
        pass
    metrics = {it["name"]: it for it in p.report["metrics"]}
    assert metrics["predicted_transfer_count.ours"]["value"] is None
    assert metrics["predicted_transfer_count.ours"]["reason"]
