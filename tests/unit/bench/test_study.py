"""The study's findings: each could have come out otherwise."""

import importlib
import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import scipy.stats

from tests.conftest import ROOT

Rows = list[tuple[str, dict[str, float]]]


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what imports modules of the study, as the case bottlenecks_table does."""
    monkeypatch.syspath_prepend(ROOT / "scripts")
    return lambda name: importlib.import_module(f"bench.study.{name}")


def runs(name: str, graph: list[float], control: list[float]) -> Rows:
    """Return runs of an application on a kind of graph that grows, and controls."""
    found = [
        (f"PR, rmat-1e{k}, {10**k} edges", {"entries": 10.0**k, name: value})
        for k, value in enumerate(graph, 4)
    ]
    return [*found, *((f"control c{k}, x", {name: it}) for k, it in enumerate(control))]


def joined(*parts: Rows) -> Rows:
    """Return the same runs with the figures of all parts."""
    found: dict[str, dict[str, float]] = {}
    for part in parts:
        for work, figures in part:
            found.setdefault(work, {}).update(figures)
    return list(found.items())


def verdict(finding: Any) -> str:
    return str(finding.verdict).partition(";")[0]


def test_superiority_counts_pairs(study: Any) -> None:
    superiority = study("statistics").superiority
    assert superiority(runs("n", [3, 1], [1]), "n") == (1 + 0.5) / 2
    assert np.isnan(superiority(runs("n", [3, 1], []), "n"))
    rng = np.random.default_rng(5)
    left, right = rng.integers(0, 9, 20).tolist(), rng.integers(2, 9, 30).tolist()
    found = superiority(runs("n", left, right), "n")
    wanted = scipy.stats.mannwhitneyu(left, right).statistic / (20 * 30)
    assert found == pytest.approx(wanted)


def test_rank_correlation_is_spearmans(study: Any) -> None:
    correlation = study("statistics").rank_correlation
    rng = np.random.default_rng(6)
    a, b = rng.integers(0, 6, 15).tolist(), rng.integers(0, 6, 15).tolist()
    rows = joined(runs("a", a, [9]), runs("b", b, [-9]))
    assert correlation(rows, "a", "b") == pytest.approx(scipy.stats.spearmanr(a, b)[0])
    assert np.isnan(correlation(rows[:2], "a", "b"))


def test_series_go_by_size(study: Any) -> None:
    statistics = study("statistics")
    rows = [
        ("PR, rmat-1e6, x", {"entries": 1e6, "n": 3.0}),
        ("PR, rmat-1e4, x", {"entries": 1e4, "n": 1.0}),
        ("BFS, rmat-1e4, x", {"entries": 1e4, "n": 9.0}),
        ("BFS, rmat-1e5, x", {"entries": 1e5, "n": 9.0}),
        ("BFS, road-1e5, x", {"entries": 1e5, "n": 2.0}),
        ("PR, wiki-Vote, x", {"entries": 7.0, "n": 5.0}),
    ]
    assert statistics.series(rows, "n") == {
        ("PR", "rmat"): [1.0, 3.0],
        ("BFS", "rmat"): [9.0, 9.0],
    }
    assert statistics.share_rising(rows, "n") == (0.75, 2)
    assert statistics.share_rising(rows[:1], "n")[1] == 0


@pytest.mark.parametrize(
    ("graph", "control", "wanted"),
    [
        ([30, 40], [1, 2], "holds"),
        ([4, 5], [1, 2], "does not hold"),
        ([30, 1, 40], [1, 50, 1], "does not hold"),
    ],
)
def test_launches(study: Any, graph: Any, control: Any, wanted: str) -> None:
    rows = runs("kernel_invocations", graph, control)
    found = study("launches").launches(rows)
    assert verdict(found) == wanted
    assert found.here.startswith(f"{np.median(graph):.3g} against {np.median(control):.3g}")


def test_work_per_launch(study: Any) -> None:
    name = "h100 work_per_invocation"
    finding = study("launches").work_per_launch
    assert verdict(finding(runs(name, [10, 20], [100, 200]))) == "holds"
    assert verdict(finding(runs(name, [10, 200], [100, 20]))) == "does not hold"


def test_copies(study: Any) -> None:
    def rows(count: float, size: float, seconds: float) -> Rows:
        names = "h100 predicted_transfer_{}.host-driven".format
        return joined(
            *(
                runs(names(name), [it], [])
                for name, it in (("count", count), ("bytes", size), ("seconds", seconds))
            ),
            runs("transfer_count", [], [2]),
            runs("transfer_bytes", [], [1000]),
        )

    finding = study("launches").copies
    found = finding(rows(30, 3000, 4e-4))
    assert verdict(found) == "holds"
    assert "30 copies against 2, 100 bytes each against 500" in found.here
    assert verdict(finding(rows(1, 400, 4e-4))) == "does not hold"  # fewer
    assert verdict(finding(rows(30, 30_000, 4e-4))) == "does not hold"  # larger
    assert verdict(finding(rows(30, 3000, 1e-5))) == "does not hold"  # shorter


def test_scattered_loads(study: Any) -> None:
    name = "h100 coalescing_efficiency thread"
    finding = study("lanes").requests
    assert verdict(finding(runs(name, [0.2, 0.3], [0.9, 1]))) == "holds"
    assert verdict(finding(runs(name, [0.5, 0.95], [0.3, 1]))) == "does not hold"


def test_shared_memory(study: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = study("lanes").on_chip()
    assert verdict(found) == "holds"
    catalog = importlib.import_module("bench.controls.catalog")
    own = catalog.kernels()
    assert len(own) == 17
    assert sum(kernel.shared > 1 for kernel in own) == 12
    without = [kernel for kernel in own if kernel.shared == 1]
    monkeypatch.setattr(catalog, "kernels", lambda: own[:1] + 9 * without)
    assert verdict(study("lanes").on_chip()) == "does not hold"  # they use it still less


def test_lanes(study: Any) -> None:
    finding = study("lanes").lanes
    lanes, degrees = "h100 lane_utilization thread", "degree_variation"
    fewer = runs(lanes, [0.9, 0.5, 0.1], [1, 0.95])
    assert verdict(finding(joined(fewer, runs(degrees, [0, 1, 7], [])))) == "holds"
    assert verdict(finding(joined(fewer, runs(degrees, [7, 1, 0], [])))) == "does not hold"
    alike = runs(lanes, [0.9, 0.5, 0.1], [0.3, 0.4])
    assert verdict(finding(joined(alike, runs(degrees, [0, 1, 7], [])))) == "does not hold"


def test_the_instruction_mix(study: Any, tmp_path: Path) -> None:
    mix = study("mix")
    kept = [
        {"work": "instructions, control GEMM", "figures": {"memory share": 0.1}},
        {"work": "instructions, PR", "figures": {"memory share": 0.3}},
    ]
    path = tmp_path / "found.json"
    path.write_text(json.dumps({"machine": {"runs": kept}}))
    rows = mix.mixes(path)
    assert [work for work, _ in rows] == ["control GEMM", "PR"]
    assert (
        verdict(mix.instructions(rows)) == "does not hold"
    )  # more memory could explain it
    alike = runs("memory share", [0.1, 0.3], [0.2, 0.2])
    found = mix.instructions(alike)
    assert verdict(found) == "holds"
    assert "memory 20.0%, controls 20.0%, more in 50% of pairs" in found.here
    jumps = joined(alike, runs("control share", [0.5, 0.6], [0.1, 0.2]))
    assert verdict(mix.instructions(jumps)) == "does not hold"
    assert verdict(mix.instructions([])) == "open until a GPU"


@pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None
    or importlib.util.find_spec("nvidia") is None
    or shutil.which("ptxas") is None,
    reason="no numba-cuda, no CUDA compiler, or no ptxas",
)
def test_a_control_is_compiled_for_hopper(study: Any) -> None:
    study("mix")  # puts scripts on the path
    code = importlib.import_module("bench.controls.machine_code")
    catalog = importlib.import_module("bench.controls.catalog")
    with code.recorded() as launches:
        catalog.CONTROLS["histogram"].bind(600)[1]()
    assert [it.kernel.body.__name__ for it in launches] == ["count_bins"]
    found = code.instructions(launches[0])
    assert found["memory"] > 0
    assert found["shared"] > 0  # its bins are there


def test_coarse_balance(study: Any) -> None:
    def rows(fewer: float, exact: float, more: float) -> Rows:
        given = {"fewer": fewer, "exact": exact, "more": more}
        return joined(
            *(runs(f"m2050 {name} cta_imbalance", [it], []) for name, it in given.items()),
            *(runs(f"m2050 {name} launches", [4], []) for name in given),
        )

    finding = study("balance").coarse
    found = finding(rows(9.0, 1.0, 1.05))
    assert verdict(found) == "holds"
    assert "exact 1.00 (4 launches of 1 runs)" in found.here
    for wrong in ((1.2, 1.0, 1.05), (9.0, 1.1, 1.05), (9.0, 1.0, 1.4)):
        assert verdict(finding(rows(*wrong))) == "does not hold"


def test_larger_inputs(study: Any) -> None:
    balance = study("balance")

    def sms(h100: list[float], m2050: list[float]) -> Rows:
        names = (f"{gpu} sm_imbalance thread" for gpu in ("h100", "m2050"))
        return joined(
            *(runs(n, it, []) for n, it in zip(names, (h100, m2050), strict=True))
        )

    assert verdict(balance.larger(sms([9, 2], [3, 1]))) == "holds"
    assert verdict(balance.larger(sms([9, 2], [1, 3]))) == "does not hold"
    name = "h100 cta_variance thread"
    assert verdict(balance.fine(runs(name, [0.1, 0.4], []))) == "holds"
    assert verdict(balance.fine(runs(name, [0.4, 0.1], []))) == "does not hold"


def test_divergence_and_warps(study: Any) -> None:
    balance = study("balance")
    lanes = runs("h100 lane_utilization thread", [0.1, 0.5, 0.9], [])
    name = "h100 cta_variance thread"
    found = balance.divergent(joined(lanes, runs(name, [3, 2, 1], [])))
    assert verdict(found) == "holds"
    found = balance.divergent(joined(lanes, runs(name, [1, 2, 3], [])))
    assert verdict(found) == "does not hold"
    name = "h100 warp_variance thread"
    assert verdict(balance.warps(runs(name, [0.2, 0.4], [0.1]))) == "holds"
    assert verdict(balance.warps(runs(name, [0.7, 0.6], [0.1]))) == "does not hold"


def test_schedulers(study: Any, tmp_path: Path) -> None:
    schedulers = study("schedulers")

    def found(graph: tuple[float, float], control: tuple[float, float]) -> Any:
        """Write instructions per cycle and spreads as a result has them; read them."""
        path = tmp_path / "found.json"
        told = {"PR, kron13": graph, "control GEMM": control}
        kept = [
            {
                "work": f"simulated schedulers, {work}",
                "system": f"graphsys {policy}",
                "figures": {"h100 scheduler_ipc.gto": ipc, "h100 scheduler_spread": spread},
            }
            for work, (ipc, spread) in told.items()
            for policy in ("gto", "two-level")
        ]
        path.write_text(json.dumps({"machine": {"runs": kept}}))
        rows = schedulers.simulated(path)
        assert [work for work, _ in rows] == list(told)
        return rows

    alike = found((0.1, 0.02), (0.5, 0.9))
    assert verdict(schedulers.policies(alike)) == "holds"
    assert verdict(schedulers.speed(alike)) == "holds"
    apart = found((0.5, 0.2), (0.5, 0.0))
    assert verdict(schedulers.policies(apart)) == "does not hold"
    assert verdict(schedulers.speed(apart)) == "does not hold"


def test_sampled_sets_beside_all(study: Any) -> None:
    sampled = study("sampled")

    def run(entries: float, whole: float, part: float, error: float) -> dict[str, float]:
        own = {"h100 l2_hit_rate": whole, "h100 sampled l2_hit_rate": part}
        return own | {"h100 sampled l2_hit_rate_error": error, "entries": entries}

    rows = [
        ("PR, a", run(98_000, 0.5, 0.52, 0.02)),
        ("BFS, a", run(98_000, 0.5, 0.4, 0.02)),
        ("PR, b", run(1e6, 0.5, 0.5, 0.01)),
        ("PR, c", {"h100 l2_hit_rate": 0.1, "entries": 1e7}),
    ]
    assert sampled.beside_all(rows) == [
        ("H100 L2, about 1e5 entries or values", "2", "6.00%", "10.00%", "2.00%", "50%"),
        ("H100 L2, about 1e6 entries or values", "1", "0.00%", "0.00%", "1.00%", "100%"),
    ]


def test_the_picture_has_a_point_for_every_regime(study: Any) -> None:
    plot = study("plot")
    kinds = [f"{gpu} {name}" for gpu in ("h100", "m2050") for name in ("fewer", "more")]
    names = [f"{kind} {what}" for kind in kinds for what in ("waves", "cta_imbalance")]
    rows = joined(*(runs(name, [2.0], [0.5]) for name in names))
    assert len(plot.points(rows)) == 8
    picture = plot.regimes(rows)
    assert picture.count("<circle") == 8
    assert ET.fromstring(picture).tag.endswith("svg")
    assert (
        picture.count('class="h100 graph"') == picture.count('class="m2050 control"') == 2
    )
    assert plot.regimes([]).count("<circle") == 0


def test_pairs_are_of_inputs_no_larger_than_the_controls(study: Any) -> None:
    statistics, find = study("statistics"), study("findings").findings
    small = ("PR, road-1e4, 1M edges", {"entries": 20.0, "kernel_invocations": 50.0})
    large = ("PR, road-1e8, 1M edges", {"entries": 21.0, "kernel_invocations": 1.0})
    control = ("control scan, 1e4 values", {"entries": 10.0, "kernel_invocations": 2.0})
    assert statistics.comparable([small, large, control]) == [small, control]
    assert find([small, large, control], [], [])[0].here.startswith("50 against 2: 25.0 ")


def test_trends_are_of_the_applications_with_most_sizes(study: Any) -> None:
    rows = [
        ("PR, road-1e4, 1M edges", {"x": 1.0}),
        ("PR, road-1e5, 1M edges", {"x": 3.0}),
        ("BFS, road-1e5, 1M edges", {"x": 5.0}),
        ("BFS, road-1e4, 1M edges", {"x": 2.0}),
        ("MST, road-1e4, 1M edges", {"x": 90.0}),
        ("PR, rmat-1e4, 1M edges", {"x": 7.0}),
        ("control scan, 1e4 values", {"x": 8.0}),
        ("PR, wiki-Vote, 1M edges", {"x": 9.0}),
    ]
    found = study("statistics").trends(rows, "x")
    assert found == {"road": ([(1e4, 1.5), (1e5, 4.0)], 2)}
    plot = study("plot_sweep")
    picture = ET.fromstring(plot.along(rows, {"x of it": "x", "unknown": "y"}))
    lines = [it for it in picture.iter() if it.tag.endswith("polyline")]
    assert len(lines) == 1
    ends = [float(point.split(",")[1]) for point in lines[0].get("points", "").split()]
    assert ends[0] > ends[1]  # up is smaller
    texts = ["".join(it.itertext()) for it in picture.iter() if it.tag.endswith("text")]
    assert {"x of it", "1e4", "1e5", "4"} <= set(texts)


def test_stalls_and_misses(study: Any) -> None:
    caches = study("caches")
    name = "h100 predicted_stall_share"
    assert verdict(caches.stalls(runs(name, [0.9, 0.95], [0.2, 0.8]))) == "holds"
    assert verdict(caches.stalls(runs(name, [0.9, 0.95], [0.97, 0.99]))) == "does not hold"
    assert verdict(caches.stalls(runs(name, [0.5, 0.6], [0.2, 0.3]))) == "does not hold"

    def hits(graph: list[float], last: list[float]) -> Rows:
        names = [
            f"{gpu} l{level}_hit_rate" for gpu in ("h100", "m2050") for level in (1, 2)
        ]
        kept = [runs(name, graph, [0.6, 0.7]) for name in names[:-1]]
        return joined(*kept, runs(names[-1], last, [0.6, 0.7]))

    assert verdict(caches.misses(hits([0.2, 0.3], [0.1, 0.2]))) == "holds"
    assert verdict(caches.misses(hits([0.2, 0.3], [0.9, 0.2]))) == "does not hold"
    states = "m2050 l1_hit_rate.states"
    assert verdict(caches.first_level(runs(states, [0.1, 0.2], [0.0]))) == "holds"
    assert verdict(caches.first_level(runs(states, [0.8, 0.6], [0.0]))) == "does not hold"
