"""The SIMT model against a lock-step emulator."""

import statistics
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from graphsys.analysis.model.devices import GPUS, Gpu, gpu_of, occupancy
from graphsys.analysis.model.sectors import LoadRequests, requests_of
from graphsys.analysis.model.simt import (
    MAPPINGS,
    SimtLaunch,
    Walk,
    place,
    resident_ctas,
    variation,
    walk,
)
from graphsys.core.errors import ConfigError, UnknownNameError
from graphsys.core.row_trace import RowVisit
from tests.unit.analysis import lockstep

NUM_CASES = 1000
Numbers = npt.NDArray[Any]
Case = tuple[Numbers, Numbers, Numbers, int]


def random_case(seed: int) -> Case:
    """Lengths, starts and neighbors of some rows, gaps between them; threads of a CTA."""
    rng = np.random.default_rng(seed)
    num_rows = int(rng.integers(0, 41))
    most = int(rng.choice([3, 40, 140]))
    lengths = np.minimum(rng.zipf(1.6, num_rows), most).astype(np.int64)
    lengths[rng.random(num_rows) < 0.2] = 0
    if rng.random() < 0.1:
        lengths[:] = 0
    if rng.random() < 0.2:
        lengths = np.sort(lengths)[::-1].copy()
    gaps = rng.integers(0, 3, num_rows)
    starts = np.cumsum(lengths + gaps) - lengths
    size = int(starts[-1] + lengths[-1]) if num_rows else 0
    nodes = int(rng.choice([4, 60, 5000]))
    indices = rng.integers(0, nodes, size).astype(np.uint32)
    return lengths, starts.astype(np.int64), indices, int(rng.choice([32, 64, 128]))


def check_walk(found: Walk, wanted: object, shape: SimtLaunch, extra: float) -> None:
    tally = wanted
    assert isinstance(tally, lockstep.Tally)
    assert found.histogram.tolist() == tally.histogram
    assert (found.steps, found.active) == (tally.steps, tally.active)
    assert (found.intra, found.inter) == (tally.intra, tally.inter)
    assert 32 * found.steps == found.active + found.intra + found.inter
    assert found.warps == sum(len(cta) for cta in tally.ctas)
    times = [
        [shape.per_item + extra + shape.per_step * steps for steps in cta]
        for cta in tally.ctas
    ]
    assert found.cta_times.tolist() == pytest.approx([max(cta) for cta in times])
    spreads = [statistics.pstdev(cta) / statistics.fmean(cta) for cta in times]
    assert found.cta_cvs.tolist() == pytest.approx(spreads, abs=1e-12)


def search_cost(mapping: str, lengths: Numbers, shape: SimtLaunch) -> float:
    searched = {"edge": len(lengths), "merge-path": len(lengths) + int(lengths.sum())}
    size, halvings = searched.get(mapping, 0), 0
    while 2**halvings < size:
        halvings += 1
    return halvings * shape.per_search


def check_requests(found: LoadRequests, tally: object, case: Case, visit: RowVisit) -> None:
    assert isinstance(tally, lockstep.Tally)
    lengths, starts, indices, _ = case
    requests = tally.requests
    assert found.requests == len(requests)
    assert found.lanes == sum(len(request) for request in requests)
    entries = [e for s, n in zip(starts, lengths, strict=True) for e in range(s, s + n)]
    row_of = dict(zip(entries, lockstep.edge_rows(lengths.tolist()), strict=True))
    sums = dict.fromkeys(("is", "il", "vs", "vl", "same"), 0)
    for request in requests:
        places = [4 * e for _, e in request]
        values = [int(indices[e]) * visit.value_bytes for _, e in request]
        sums["is"] += len({a // 32 for a in places})
        sums["il"] += len({a // 128 for a in places})
        sums["vs"] += len({a // 32 for a in values})
        sums["vl"] += len({a // 128 for a in values})
        if visit.kind == "push":
            sums["same"] += lockstep.most_alike(values)
        elif found.atomics:
            sums["same"] += lockstep.most_alike([row_of[e] for _, e in request])
    assert found.index_sectors == sums["is"]
    assert found.index_lines == sums["il"]
    assert found.value_sectors == sums["vs"]
    assert found.value_lines == sums["vl"]
    assert found.conflicts == sums["same"]


@pytest.mark.parametrize("first", range(0, NUM_CASES, 20))
def test_model_equals_the_lockstep_emulator_on_random_cases(first: int) -> None:
    for seed in range(first, first + 20):
        case = lengths, starts, indices, threads = random_case(seed)
        shape = SimtLaunch(threads=threads)
        visit = RowVisit(
            superstep=0,
            kind=("pull", "push")[seed % 2],
            lengths=lengths,
            starts=starts,
            indices=indices,
            value_bytes=(1, 4, 8)[seed % 3],
        )
        requests = requests_of(visit, threads)
        assert set(requests) == set(MAPPINGS) - {"merge-path"}
        for mapping in MAPPINGS:
            tally = lockstep.emulate(mapping, lengths.tolist(), starts.tolist(), threads)
            extra = search_cost(mapping, lengths, shape)
            check_walk(walk(lengths, mapping, shape), tally, shape, extra)
            if mapping != "merge-path":
                check_requests(requests[mapping], tally, case, visit)
                scatters = visit.kind == "push" or mapping == "edge"
                expected = tally.active if scatters else 0
                assert requests[mapping].atomics == expected


@pytest.mark.parametrize("seed", range(60))
def test_greedy_placement_equals_a_search_of_all_slots(seed: int) -> None:
    rng = np.random.default_rng(seed)
    times = rng.integers(0, 6, int(rng.integers(0, 80))).astype(np.float64)
    gpu = Gpu(
        name="tiny",
        num_sms=int(rng.integers(1, 6)),
        max_threads=2048,
        max_ctas=32,
        registers=65536,
        register_unit=256,
        shared_bytes=1 << 16,
        reserved_bytes=0,
    )
    resident = int(rng.integers(1, 4))
    found = place(times, gpu, resident=resident)
    wanted = lockstep.schedule(times.tolist(), gpu.num_sms, resident)
    assert found.busy.tolist() == wanted["busy"]
    assert found.ctas.tolist() == wanted["ctas"]
    assert found.makespan == wanted["end"][0]


def test_static_placement_goes_round() -> None:
    found = place(
        np.array([1.0, 2.0, 3.0] * 44 + [9.0]), GPUS["h100"], resident=8, policy="static"
    )
    assert found.ctas.tolist() == [2] + [1] * 131
    assert found.busy[0] == 10.0
    assert found.idle_sms == 0
    assert found.waves == 133 / (132 * 8)
    assert found.makespan == 9.0


def test_one_long_cta_leaves_the_others_idle() -> None:
    found = place(np.array([1000.0] + [1.0] * 131), GPUS["h100"], resident=8)
    assert found.imbalance == pytest.approx(1000 / (1131 / 132))
    assert found.tail_efficiency == pytest.approx(1131 / (132 * 8 * 1000))


def test_sorting_helps_lanes_and_harms_ctas() -> None:
    rng = np.random.default_rng(1)
    lengths = np.minimum(rng.zipf(1.9, 50_000), 20_000).astype(np.int64)
    natural, ordered = walk(lengths, "thread"), walk(np.sort(lengths)[::-1], "thread")
    assert ordered.utilization > 5 * natural.utilization  # type: ignore[operator]
    assert ordered.cta_variance > 2 * natural.cta_variance  # type: ignore[operator]


def test_nothing_to_walk_has_no_utilization() -> None:
    for mapping in MAPPINGS:
        found = walk(np.zeros(0, dtype=np.int64), mapping)
        assert (found.steps, found.warps, found.utilization) == (0, 0, None)
        assert found.warp_variance is None
        assert found.cta_variance is None


def test_occupancy_of_known_kernels() -> None:
    # CUDA's occupancy calculator: 256 threads of 40 registers on 9.0 are 6 CTAs
    assert occupancy(GPUS["h100"], threads=256, registers=40).ctas == 6
    assert occupancy(GPUS["h100"], threads=32, registers=16).limit == "CTAs"
    full = occupancy(GPUS["a100"], threads=128, registers=32, shared_bytes=100 << 10)
    assert (full.ctas, full.limit) == (1, "shared memory")
    # Fermi: 192 threads of 20 registers fill the SM with 8 CTAs
    assert occupancy(GPUS["m2050"], threads=192, registers=20).fraction == 1.0
    assert resident_ctas(GPUS["h100"], SimtLaunch()) == 8


def test_bad_shapes_and_names_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"32, 64 \.\.\. threads, got 100"):
        occupancy(GPUS["h100"], threads=100)
    with pytest.raises(ConfigError, match=r"1024 threads with 255 registers .* registers"):
        occupancy(GPUS["h100"], threads=1024, registers=255)
    with pytest.raises(UnknownNameError, match="unknown GPU model 'h10'; known: a100"):
        gpu_of("h10")


@pytest.mark.parametrize(
    ("mapping", "launches"),
    [
        ("thread", 1),
        ("sub-warp", 1),
        ("warp", 1),
        ("block", 1),
        ("twc", 3),
        ("edge", 1),
        ("merge-path", 1),
    ],
)
def test_launches_are_those_of_the_lists_that_hold_rows(
    mapping: str, launches: int
) -> None:
    shape = SimtLaunch(threads=128)
    assert walk(np.array([5, 50, 500]), mapping, shape).launches == launches
    if mapping == "twc":  # a list without rows is not launched
        assert walk(np.array([5, 500, 7]), mapping, shape).launches == 2
        # 32 is a warp's, and as many as a CTA's threads a CTA's
        assert walk(np.array([31, 32, 127, 128]), mapping, shape).launches == 3
        assert walk(np.array([31, 128]), mapping, shape).launches == 2


def test_a_kernel_costs_what_the_report_says() -> None:
    """Figures of older reports were made with these."""
    assert SimtLaunch() == SimtLaunch(
        threads=256,
        registers=32,
        shared_bytes=0,
        per_item=10.0,
        per_step=20.0,
        per_search=6.0,
    )


@pytest.mark.parametrize(
    ("values", "wanted"), [([0.25, 0.75], 0.5), ([0.0, 0.0], 0.0), ([3.0], 0.0), ([], None)]
)
def test_variation_is_sigma_over_mu(values: list[float], wanted: float | None) -> None:
    assert variation(np.array(values)) == wanted


@pytest.mark.parametrize("mapping", ["thread", "warp", "block"])
def test_warps_that_take_no_time_do_not_vary(mapping: str) -> None:
    found = walk(np.zeros(3, dtype=np.int64), mapping, SimtLaunch(per_item=0.0))
    assert set(found.cta_cvs.tolist()) == {0.0}
    assert set(found.cta_times.tolist()) == {0.0}
