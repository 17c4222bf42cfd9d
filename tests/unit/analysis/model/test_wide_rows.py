"""Rows of features: requests against a lock-step emulator, caches, parts of a training."""

from typing import Any

import numpy as np
import pytest

from graphsys.analysis.model.caches import CacheModel
from graphsys.analysis.model.devices import GPUS
from graphsys.analysis.model.row_model import RowModel
from graphsys.analysis.model.sectors import requests_of
from graphsys.analysis.model.simt import MAPPINGS, walk
from graphsys.core.row_trace import RowVisit
from tests.unit.analysis import lockstep


def random_visit(seed: int, width: int, value_bytes: int) -> tuple[RowVisit, int]:
    """Rows with gaps between them whose entries name few or many rows of values."""
    rng = np.random.default_rng(seed)
    num_rows = int(rng.integers(1, 40))
    lengths = np.minimum(rng.zipf(1.7, num_rows), 40).astype(np.int64)
    lengths[rng.random(num_rows) < 0.2] = 0
    starts = np.cumsum(lengths + rng.integers(0, 3, num_rows)) - lengths
    size = int(starts[-1] + lengths[-1])
    indices = rng.integers(0, int(rng.choice([3, 50, 4000])), size).astype(np.int32)
    visit = RowVisit(
        superstep=0,
        kind="pull",
        lengths=lengths,
        starts=starts,
        indices=indices,
        width=width,
        value_bytes=value_bytes,
    )
    return visit, int(rng.choice([32, 64, 128]))


def expected(visit: RowVisit, mapping: str, threads: int) -> dict[str, int]:
    """Walk every lane by lane, each at its column, and look at the addresses."""
    width, size = visit.width, visit.value_bytes
    assert visit.starts is not None
    assert visit.indices is not None
    rows = [
        (int(start), int(length))
        for start, length in zip(visit.starts, visit.lengths, strict=True)
    ]
    # lanes visit places of a joined array, of which each stands for an entry and a column
    places, begins = list[tuple[int, int]](), list[int]()
    for start, length in rows:
        begins.append(len(places))
        places += [(start + e, c) for e in range(length) for c in range(width)]
    steps = [length * width for _, length in rows]
    tally = lockstep.emulate(mapping, steps, begins, threads)
    row_of = lockstep.edge_rows(steps)
    found = dict.fromkeys(("requests", "lanes", "ib", "is", "il", "vs", "vl", "same"), 0)
    for request in tally.requests:
        at = [places[k] for _, k in request]
        index = [4 * entry for entry, _ in at]
        value = [size * (int(visit.indices[entry]) * width + c) for entry, c in at]
        found["requests"] += 1
        found["lanes"] += len(request)
        found["ib"] += 4 * len(set(index))
        found["is"] += len({a // 32 for a in index})
        found["il"] += len({a // 128 for a in index})
        found["vs"] += len({a // 32 for a in value})
        found["vl"] += len({a // 128 for a in value})
        if mapping == "edge":
            own = [(row_of[k], places[k][1]) for _, k in request]
            found["same"] += lockstep.most_alike(own)
    return found


@pytest.mark.parametrize("width", [2, 5, 16, 31, 32, 33, 50])
@pytest.mark.parametrize("value_bytes", [2, 4])
def test_requests_are_those_of_the_lockstep_emulator(width: int, value_bytes: int) -> None:
    for seed in range(3):
        visit, threads = random_visit(seed + 10 * width, width, value_bytes)
        requests = requests_of(visit, threads)
        assert set(requests) == set(MAPPINGS) - {"merge-path"}
        for mapping, own in requests.items():
            told = {
                "requests": own.requests,
                "lanes": own.lanes,
                "ib": own.index_bytes,
                "is": own.index_sectors,
                "il": own.index_lines,
                "vs": own.value_sectors,
                "vl": own.value_lines,
                "same": own.conflicts,
            }
            assert told == expected(visit, mapping, threads), (mapping, seed)
            assert own.value_bytes == own.lanes * value_bytes
            assert own.index_efficiency is None or own.index_efficiency <= 1


def test_a_warp_reads_a_row_of_a_line_in_four_sectors() -> None:
    visit = gather(np.array([7, 0, 900]), width=32)
    own = requests_of(visit)["warp"]
    assert (own.requests, own.value_sectors, own.value_efficiency) == (3, 12, 1.0)
    # a thread for each row reads a sector for every number of it
    own = requests_of(visit)["thread"]
    assert (own.requests, own.value_sectors, own.value_efficiency) == (32, 96, 0.125)


def gather(nodes: Any, width: int, part: str = "gather") -> RowVisit:
    return RowVisit(
        superstep=0,
        kind="pull",
        part=part,
        lengths=np.ones(len(nodes), np.int64),
        starts=np.arange(len(nodes)),
        indices=nodes,
        width=width,
        value_bytes=4,
        mapping="warp",
    )


def test_parts_of_a_training_are_told_apart() -> None:
    model = RowModel(GPUS["h100"])
    lengths = np.array([3, 1, 0, 2])
    scores = RowVisit(
        superstep=0, kind="pull", part="scores", lengths=lengths, width=16, reason="tiles"
    )
    model([gather(np.arange(5), 48), scores, gather(np.arange(2), 48)])
    assert set(model.parts) == {"gather", "scores"}
    own = model.parts["gather"]
    # 48 columns are a whole warp and a half
    assert own.totals.utilization == 48 / 64
    assert (own.entries, own.totals.launches, own.reasons) == (7, 2, [])
    assert own.totals.requests is not None
    assert own.totals.requests.requests == 14
    other = model.parts["scores"]
    assert other.totals.requests is None
    assert (
        other.totals.utilization == walk(16 * lengths, model.launches[1].chosen).utilization
    )
    # in all, those that are known; the others are counted
    everything = model.totals["auto"]
    assert everything.requests == own.totals.requests
    assert everything.unknown == 1
    assert model.row_bytes == 0  # batches are sent as they come


def test_caches_hold_rows_of_values() -> None:
    model = CacheModel(GPUS["h100"], sms=132)
    nodes = np.arange(64)
    model([gather(nodes, 32), gather(nodes, 32)])
    asked, _ = model._counts(2, "states")
    assert asked.sum() == 2 * 64 * 4  # every row is a line, in L1 it is read once
    assert model.hit_rate(2, "states") == 0.5  # the second launch finds them all
    model([gather(nodes, 32, part="messages")])
    assert model.hit_rate(2, "states") == 1 / 3  # another array
