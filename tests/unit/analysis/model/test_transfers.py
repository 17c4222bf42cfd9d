"""Copies predicted for a GPU, by who drives the run."""

import numpy as np
import pytest

import graphsys as gs
from graphsys.analysis.model.transfers import (
    LINKS,
    PAGE_BYTES,
    Link,
    predicted_transfers,
)
from graphsys.core.errors import UnknownNameError
from graphsys.engine import algorithms
from graphsys.engine.topology import Topology

LINK = Link(bytes_per_s=1e9, copy_s=1e-5, fault_s=1e-4)


def test_the_hosts_flag_costs_two_copies_a_superstep() -> None:
    found = predicted_transfers("host-driven", (800, 4000, 400), 400, 7, LINK)
    assert found.count == 3 + 1 + 2 * 7
    assert found.num_bytes == 5600 + 7 * 8
    assert found.seconds == pytest.approx(18e-5 + 5656e-9)
    none = predicted_transfers("host-driven", (800,), 400, 0, LINK)
    assert (none.count, none.num_bytes) == (2, 1200)


def test_ours_reads_counters_once_a_superstep() -> None:
    found = predicted_transfers("ours", (800, 4000, 400), 400, 7, LINK)
    assert (found.count, found.num_bytes) == (4 + 7, 5600 + 7 * 64)


def test_unified_memory_faults_by_pages() -> None:
    found = predicted_transfers("unified", (PAGE_BYTES + 1, 1), 1, 5, LINK)
    assert found.count == 2 + 1 + 1 + 2 * 5
    assert found.num_bytes == 14 * PAGE_BYTES
    assert found.seconds == pytest.approx(14e-4 + 14 * PAGE_BYTES / 1e9)


def test_an_unknown_style_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="style of transfers 'pinned'"):
        predicted_transfers("pinned", (), 0, 1, LINK)


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
    found = {name: metrics[f"predicted_transfer_{name}.host-driven"]
             for name in ("count", "bytes", "seconds")}  # fmt: skip
    assert found["count"]["value"] == 4 + 2 * steps
    assert found["bytes"]["value"] == 8 * 301 + rows + 2 * 8 * 300 + 8 * steps
    link = LINKS["H100 SXM"]
    wanted = found["count"]["value"] * link.copy_s
    wanted += found["bytes"]["value"] / link.bytes_per_s
    assert found["seconds"]["value"] == pytest.approx(wanted)
    assert {(it["source"], it["exact"]) for it in found.values()} == {("model", False)}
    assert metrics["predicted_transfer_count.ours"]["value"] == 4 + steps


def test_a_run_without_rows_predicts_no_copies() -> None:
    with gs.profile() as p:
        pass
    metrics = {it["name"]: it for it in p.report["metrics"]}
    assert metrics["predicted_transfer_count.ours"]["value"] is None
    assert metrics["predicted_transfer_count.ours"]["reason"]
