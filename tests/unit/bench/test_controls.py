"""The controls of the study compute what they say, and tell what they did."""

import importlib
from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.linalg
import scipy.ndimage
import scipy.stats

from graphsys.analysis.model.sectors import requests_of
from graphsys.analysis.model.simt import walk
from graphsys.core.events import recording
from tests.conftest import ROOT

Array = Any


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what imports modules of ``bench``, as scripts/bench/run does."""
    monkeypatch.syspath_prepend(ROOT / "scripts")
    return importlib.import_module


def _black_scholes(spot: Array, strike: Array, years: Array) -> Array:
    spot, strike, years = (it.astype(np.float64) for it in (spot, strike, years))
    root = 0.3 * np.sqrt(years)
    d1 = (np.log(spot / strike) + (0.02 + 0.045) * years) / root
    kept = strike * np.exp(-0.02 * years)
    below = scipy.stats.norm.cdf
    call = spot * below(d1) - kept * below(d1 - root)
    return np.stack([call, kept * below(root - d1) - spot * below(-d1)])


def _clusters(points: Array, centers: Array, iterations: int) -> Array:
    before = np.full(len(points), -1)
    for _ in range(iterations):
        far = ((points[:, None] - centers.astype(np.float32)[None]) ** 2).sum(axis=2)
        now = far.argmin(axis=1)
        if (now == before).all():
            break
        before = now
        means = [
            points[now == c].mean(axis=0) if (now == c).any() else 0 * points[0]
            for c in range(len(centers))
        ]
        centers = np.stack(means)
    return before


def _moved(bodies: Array, iterations: int, dt: float) -> Array:
    place, mass = bodies[:3].astype(np.float64), bodies[3]
    speed = np.zeros_like(place)
    for _ in range(iterations):
        gap = place[:, None, :] - place[:, :, None]
        near = (gap**2).sum(axis=0) + 0.01
        speed = speed + (gap * (mass / near**1.5)[None]).sum(axis=2) * dt
        place = place + speed * dt
    return np.concatenate([place, mass[None]])


def _warm(grid: Array, iterations: int) -> Array:
    cross = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]]) / 5
    for _ in range(iterations):
        grid = scipy.ndimage.convolve(grid.astype(np.float64), cross, mode="nearest")
    return grid


def _blurred(picture: Array, weights: Array) -> Array:
    for axis in (0, 1):
        picture = scipy.ndimage.correlate1d(picture, weights, axis, mode="constant")
    return picture


def _lu(matrix: Array) -> Array:
    pivots, lower, upper = scipy.linalg.lu(matrix.astype(np.float64))
    assert (pivots == np.eye(len(matrix))).all()  # the diagonal rules: nothing to swap
    return lower - np.eye(len(matrix)) + upper


EXPECTED = {
    "GEMM": np.matmul,
    "LU": _lu,
    "stencil": _warm,
    "convolution": _blurred,
    "reduction": lambda values: values.sum(dtype=np.float64)[None],
    "scan": lambda values: np.cumsum(values),
    "histogram": lambda values: np.bincount(values, minlength=256),
    "bitonic sort": np.sort,
    "FFT": scipy.fft.fft,
    "Black-Scholes": _black_scholes,
    "k-means": _clusters,
    "n-body": _moved,
}
LAUNCHES = {
    # at 5,000 values: by the algorithm, not by the code
    "GEMM": 1,
    "LU": 3 * 3 + 1,  # 4 tiles a side: three kernels for each but the last
    "stencil": 20,
    "convolution": 2,
    "reduction": 2,  # two CTAs' sums, then theirs
    "scan": 3,
    "histogram": 1,
    "bitonic sort": 1 + (1 + 1) + (2 + 1) + (3 + 1),  # merges of 1024, 2048 and 4096
    "FFT": 1,
    "Black-Scholes": 1,
    "n-body": 4,
}
SIZE = 5000


@pytest.mark.parametrize("name", EXPECTED)
def test_a_control_computes_what_numpy_and_scipy_do(bench: Any, name: str) -> None:
    control = bench("bench.controls.catalog").CONTROLS[name]
    inputs = control.inputs(SIZE, np.random.default_rng(2))
    device = bench("bench.controls.device").Device()
    with recording() as recorder:
        found = control.run(device, *inputs)
    wanted = EXPECTED[name](*inputs)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-4)
    launches = sum(event.name == "kernel_launches" for event in recorder.events)
    assert launches == device.launches == LAUNCHES.get(name, launches)
    assert launches > 1 or name in LAUNCHES
    moved = [e.attributes["direction"] for e in recorder.events if e.name == "bytes_copied"]
    assert moved[0] == "to_device"
    assert moved[-1] == "to_host"


def test_all_twelve_are_there(bench: Any) -> None:
    controls = bench("bench.controls.catalog").CONTROLS
    assert list(controls) == list(EXPECTED)
    assert len(controls) == 12


def _visits(bench: Any, name: str, size: int) -> list[Any]:
    _, run = bench("bench.controls.catalog").CONTROLS[name].bind(size)
    seen: list[Any] = []
    with recording({"rows": seen.extend}) as recorder:
        run()
    edges = [event.value for event in recorder.events if event.name == "edges"]
    assert edges == [visit.lengths.sum() for visit in seen]
    return seen


def test_gemm_tells_the_loads_of_its_tiles(bench: Any) -> None:
    (visit,) = _visits(bench, "GEMM", 2 * 32 * 32)
    assert visit.lengths.tolist() == [32] * 1024
    assert visit.loads.tolist() == [4] * 1024  # a tile of A and one of B, twice
    first = visit.indices.reshape(1024, 4)
    assert first[0].tolist() == [0, 1024 + 0, 16, 1024 + 16 * 32]
    assert first[16].tolist() == [32, 1024 + 32, 32 + 16, 1024 + 17 * 32]  # a row below
    found = requests_of(visit)["thread"]
    assert found.requests == 1024 * 4 // 32
    # half a warp reads 16 values of a row: two sectors, of two rows four
    assert found.value_sectors == found.requests * 4
    assert found.index_sectors == 0
    assert found.value_efficiency == 1.0


def test_a_tree_leaves_lanes_idle(bench: Any) -> None:
    (visit,) = _visits(bench, "reduction", 4096)
    assert visit.lengths.sum() == 4096 + 255
    # 16 values each; then lane 0 of warp 0 is in all 8 levels, warp 1 in 2, ...
    assert visit.lengths[0] == 16 + 8
    assert visit.lengths[[1, 32, 64, 127, 128, 255]].tolist() == [23, 18, 17, 17, 16, 16]
    walked = walk(visit.lengths, "thread")
    assert walked.steps == 24 + 18 + 2 * 17 + 4 * 16
    assert walked.utilization == pytest.approx((4096 + 255) / 32 / walked.steps)


def test_lu_is_uneven_work(bench: Any) -> None:
    """A control that could not come out uneven would show nothing."""
    visits = _visits(bench, "LU", 64 * 64)
    diagonal, perimeter, internal = visits[:3]
    assert len(diagonal.lengths) == 256
    assert len(perimeter.lengths) == 6 * 256
    assert len(internal.lengths) == 9 * 256
    assert diagonal.lengths.reshape(16, 16)[0].sum() == 0  # the first row is U's already
    assert diagonal.lengths[255] == 15
    used = [walk(visit.lengths, "thread").utilization for visit in visits[:3]]
    assert used[2] == 1.0
    assert max(used[0] or 0, used[1] or 0) < 0.75
    assert [len(visit.lengths) // 256 for visit in visits] == [1, 6, 9, 1, 4, 4, 1, 2, 1, 1]


def test_a_launch_without_room_for_its_loads_is_refused(bench: Any) -> None:
    module = bench("bench.controls.device")
    dense = bench("bench.controls.dense")
    device = module.Device()
    zeros = device.zeros(256)
    with (
        recording({"rows": lambda _: None}),
        pytest.raises(ValueError, match="heat: a thread loads 5 times, room 4"),
    ):
        device.launch(dense.HEAT, 1, (zeros, device.zeros(256)), (16,), max_loads=4)
