"""The page of a long run: what it holds does not grow with the supersteps."""

import copy
from typing import Any

import numpy as np

import graphsys as gs
from graphsys.analysis.page.copies import MAX_BARS
from graphsys.analysis.page.page import MAX_STEPS, page_of
from graphsys.engine import algorithms
from graphsys.engine.topology import Topology

MANY = 10_000


def report_of_many(num_steps: int) -> dict[str, Any]:
    """Return a report of so many supersteps, all as the first of a real run."""
    topology = Topology.from_edges(np.arange(3), np.array([1, 2, 0]), num_nodes=3)
    with gs.profile() as p:
        algorithms.get("pagerank")(topology, implementation="program", iterations=2)
    report = copy.deepcopy(p.report)
    first = report["supersteps"][0]
    report["supersteps"] = [{**first, "number": k} for k in range(num_steps)]
    return report


def test_a_page_of_10000_supersteps_is_as_small_as_one_of_500() -> None:
    report = report_of_many(MANY)
    long_page = page_of(report)
    short = page_of({**report, "supersteps": report["supersteps"][:MAX_STEPS]})
    assert len(long_page) < len(short) + 3000
    assert len(long_page) < 700_000
    assert long_page.count("<tr") < MAX_STEPS + 400  # what a browser lays out
    assert f"{MAX_STEPS} of {MANY}" in " ".join(long_page.split())


def test_copies_of_every_superstep_are_a_column_and_a_chart() -> None:
    report = report_of_many(3)
    first, second = report["supersteps"][:2]
    other = copy.deepcopy(first["predicted_transfers"])
    other["host-driven"] |= {"count": 7777, "seconds": 0.25}
    second["predicted_transfers"] = other
    page = page_of(report)
    assert page.count("<th>copies, host-driven</th>") == 1
    assert '<td data-v="7777">7,777</td>' in page
    assert "host-driven: 7,777 copies, 250 ms" in page  # its bar
    assert page.count("<title>ours: ") == 3
    total = next(
        metric["value"]
        for metric in report["metrics"]
        if metric["name"] == "predicted_transfer_seconds.ours"
    )
    assert f"ours <b>{1e3 * total:,.3f} ms</b>" in page
    # a run that predicted none has neither
    for step in report["supersteps"]:
        step["predicted_transfers"] = None
    page = page_of(report)
    assert "copies, ours" not in page
    assert 'id="copies"' not in page


def test_a_long_run_has_as_many_bars_as_fit() -> None:
    report = report_of_many(MANY)
    page = page_of(report)
    size = -(-MANY // MAX_BARS)
    assert f"the mean of {size} in a row" in " ".join(page.split())
    assert page.count("<title>ours: ") == -(-MANY // size)
