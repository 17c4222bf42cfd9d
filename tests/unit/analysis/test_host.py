"""Adding up events, and the verdict on them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsys.analysis.host import figures_of
from graphsys.analysis.measured import RunConditions, host_metrics
from graphsys.analysis.metrics import by_name
from graphsys.analysis.next_command import ProfiledCommand
from graphsys.analysis.page.timeline import lanes_of, trace_of
from graphsys.analysis.verdict import verdict_of
from graphsys.core.events import Event

MS = 1_000_000
NO_COMMAND = ProfiledCommand("python")
MACHINE = {"load_average": 0.5, "cpu": {"usable_cores": 2}}


def span(name: str, begin: int, end: int, **attributes: Any) -> Event:
    return Event(name, begin * MS, (end - begin) * MS, attributes=attributes)


def amount(name: str, value: float, at: int = 0, **attributes: Any) -> Event:
    return Event(name, at * MS, value=value, attributes=attributes)


def launch(begin: int, end: int, *busy: int, kernel: str = "pull_0") -> Event:
    threads = tuple(ms * MS for ms in busy)
    facts = {"kernel": kernel, "busy_ns": threads}
    return Event("kernel_launches", begin * MS, (end - begin) * MS, 1, attributes=facts)


def judged(
    events: list[Event], wall_s: float, machine: Any = None, command: Any = NO_COMMAND
) -> tuple[Any, Any]:
    figures = figures_of(events)
    around = RunConditions(wall_s=wall_s, peak_bytes=1, bandwidth=1e9)
    metrics = by_name(host_metrics(figures, around, machine or MACHINE))
    return metrics, verdict_of(figures, metrics, machine or MACHINE, command=command)


def test_loads_of_threads_and_partitions() -> None:
    events = [
        launch(0, 4, 4, 2),
        amount("partitions_wanted", 2),
        amount("partitions_loaded", 1),
        amount("partitions_wanted", 2),
        amount("edges", 30, parts=(("node", 0), ("node", 0))),
        amount("edges", 10, parts=(("node", 0), ("node", 1))),
    ]
    metrics, _ = judged(events, 1.0)
    assert metrics["thread_variance"].value == pytest.approx(1 / 3)
    assert metrics["partition_hit_rate"].value == pytest.approx(0.75)
    assert metrics["partition_imbalance"].value == pytest.approx(40 / 25)
    assert metrics["partition_variance"].value == pytest.approx(15 / 25)
    metrics, _ = judged([launch(0, 4, 4, 2)], 1.0)
    assert metrics["partition_imbalance"].reason == "nothing worked partition by partition"
    assert metrics["partition_hit_rate"].reason == "no partition was asked for"


def test_launches_and_edges_belong_to_the_superstep_that_ends_next() -> None:
    events = [
        launch(0, 2, 1, 2, kernel="init"),
        amount("edges", 10, at_most=True),
        launch(11, 15, 4, 2),
        span("superstep", 10, 20, number=0, mode="pull"),
        amount("edges", 5),
        launch(21, 22, 1, 1),
        launch(22, 24, 2, 2),
        span("superstep", 20, 30, number=1, mode="push"),
    ]
    found = figures_of(events)
    assert [(step.kernels, step.kernel_s, step.edges) for step in found.steps] == [
        (1, 0.004, 10),
        (2, 0.003, 5),
    ]
    assert [step.at_most for step in found.steps] == [True, False]
    assert (found.num_launches, found.edges, found.at_most) == (4, 15, True)
    pulls = found.kernels["pull_0"]
    assert (pulls.calls, pulls.seconds, pulls.busy_s) == (3, 0.007, 0.012)
    assert pulls.imbalance == pytest.approx((4 + 1 + 2) / (3 + 1 + 2))
    assert pulls.waiting == pytest.approx(1 - 12 / 14)


def test_compiling_is_in_no_superstep() -> None:
    events = [
        span("compile", 1, 5),
        span("superstep", 0, 10, number=0),
        span("superstep", 10, 20, number=1, compile_s=0.003),
        launch(30, 40, 9, 1),
        span("compile", 31, 33),
    ]
    found = figures_of(events)
    assert [step.seconds for step in found.steps] == [0.006, 0.007]
    assert found.compile_s == 0.006
    assert found.kernels["pull_0"].seconds == 0.008
    assert found.kernels["pull_0"].imbalance is None


def test_transfers_overlap_with_units_of_a_training() -> None:
    events = [
        span("read", 0, 10, partition=0),
        amount("bytes_read", 100),
        span("wait", 0, 10),
        span("read", 10, 12, bucket=(0, 0)),
        span("compute", 12, 40, epoch=0),
        amount("edges", 50),
        span("read", 20, 30, partition=1),
        amount("bytes_read", 60),
        span("write_back", 42, 46),
        amount("bytes_written", 60),
        span("checkpoint", 41, 50),
        amount("swaps", 1),
    ]
    found = figures_of(events)
    assert found.transfers == [100, 60, 60]
    assert (found.transfer_s, found.waiting_s, found.compute_s) == (0.024, 0.014, 0.03)
    assert found.overlap_alpha == pytest.approx((0.024 - 0.014) / 0.024)
    assert [step.edges for step in found.steps] == [50]
    assert found.swaps == 1


def test_batches_of_a_network_are_steps_and_overlap_with_sampling() -> None:
    events = []
    for k, number in enumerate((0, 1, 0, 1)):  # two epochs
        begin = 100 * k
        if k == 2:  # an evaluation between them is no batch's
            events += [amount("edges", 1000, at=195), amount("rows", 1000, 195, launch=9)]
        events += [
            span("sample", begin - 40, begin - 20, batch=number),
            span("gather", begin - 20, begin + 20, batch=number),
            span("forward", begin, begin + 30, batch=number),
            amount("edges", k + 1, at=begin + 5),
            amount("rows", k + 1, at=begin + 5, launch=k),
            launch(begin + 5, begin + 25, 20, 20, kernel="spmm"),
            span("backward", begin + 30, begin + 70, batch=number),
            amount("edges", 6, at=begin + 40),
            span("step", begin + 70, begin + 80, batch=number),
        ]
    found = figures_of(events)
    assert [(s.facts["number"], s.facts["epoch"]) for s in found.steps] == [
        (0, 0),
        (1, 0),
        (0, 1),
        (1, 1),
    ]
    assert [(s.seconds, s.edges, s.kernels, s.launches) for s in found.steps] == [
        (0.08, 7 + k, 1, [k]) for k in range(4)
    ]  # those of its own layers, not of the batch behind it
    # batches take 60 ms to make, 40 of them while others train
    assert (found.prepare_s, found.compute_s) == (0.24, 0.32)
    assert found.overlap_alpha == pytest.approx((0.24 - found.waiting_s) / 0.24)
    # T: 0.24 and 0.32 less the 0.14 in which both went on
    assert found.overlap_shares == pytest.approx((0.24 / 0.32, 0.32 / 0.42))
    assert found.waiting_s == pytest.approx(0.04 + 3 * 0.02)


def test_waiting_for_more_than_was_read_is_no_negative_overlap() -> None:
    events = [
        span("read", 0, 4, partition=0),
        span("wait", 0, 30),
        span("compute", 30, 40),
        span("checkpoint", 40, 90),
        span("write_back", 50, 60),
    ]
    found = figures_of(events)
    assert (found.prepare_s, found.compute_s, found.both_s) == (0.014, 0.01, 0.0)
    assert found.waiting_s == pytest.approx(0.04)
    assert found.overlap_alpha == 0.0
    assert found.overlap_shares == pytest.approx((1.4, 0.01 / 0.024))  # one after the other


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["read", "write_back", "wait", "superstep", "compile"]),
            st.integers(0, 40),
            st.integers(1, 20),
        ),
        max_size=12,
    )
)
def test_overlap_is_that_of_sets_of_moments(drawn: list[tuple[str, int, int]]) -> None:
    drawn = [*drawn, ("superstep", 0, 5)]
    moments: dict[str, set[int]] = {}
    for name, begin, length in drawn:
        moments.setdefault(name, set()).update(range(begin, begin + length))
    found = figures_of([span(name, begin, begin + took) for name, begin, took in drawn])
    none: set[int] = set()
    moved = moments.get("read", none) | moments.get("write_back", none)
    idle = moments.get("wait", none) | moments.get("compile", none)
    worked = moments["superstep"] - idle
    shorter = min(len(moved), len(worked))
    alpha = found.overlap_alpha
    if alpha is None:
        assert shorter == 0
    else:
        assert alpha == pytest.approx(len(moved & worked) / shorter)
        assert 0.0 <= alpha <= 1.0
    whole = len(moved | worked)
    wanted = (len(moved) / len(worked), len(worked) / whole) if shorter else (None, None)
    assert found.overlap_shares == pytest.approx(wanted)


def test_a_run_compiles_no_longer_than_it_takes() -> None:
    """Spans told twice, and waits for what an observer compiles, count once or not."""
    events = [
        span("compile", 0, 10),  # told by numba
        span("compile", 0, 12),  # and by whoever wanted the kernel
        span("compile", 20, 50),  # which waits for numba's lock ...
        span("observing", 22, 50),  # ... while an observer compiles in another thread
    ]
    found = figures_of(events)
    assert found.compile_s == pytest.approx(0.012 + 0.002)
    assert found.spans == {"compile": found.compile_s}


def test_copies_to_a_device_have_no_time_on_the_host() -> None:
    facts = {"kernel": "pull_0", "grid": 4, "block": 256}
    events = [
        amount("bytes_copied", 4096),
        Event("kernel_launches", 0, 0, 1, attributes=facts),
    ]
    metrics, _ = judged(events, 1.0)
    assert metrics["transfer_bytes"].value == 4096
    assert metrics["transfer_seconds"].value is None
    assert "a trace" in metrics["transfer_seconds"].reason
    assert metrics["kernel_invocations"].value == 1
    assert metrics["thread_imbalance"].value is None


def test_the_largest_share_of_the_whole_time_comes_first() -> None:
    slow = [
        span("wait", 0, 500),
        span("superstep", 500, 900, number=0),
        launch(500, 900, 400, 200),
    ]
    _, verdict = judged(slow, 1.0)
    shares = [finding["share"] for finding in verdict["findings"]]
    assert shares == sorted(shares, reverse=True)
    assert verdict["summary"].startswith(
        "Of 1 s: 40 % in kernels, 50 % waiting. 50 % of the"
    )
    threads = next(f for f in verdict["findings"] if "idled" in f["text"])
    assert "busiest worked 1.33 times the mean" in threads["text"]
    assert threads["advice"].startswith("Rows are uneven")
    busy = {"load_average": 7.0, "cpu": {"usable_cores": 2}}
    _, verdict = judged(slow, 1.0, busy)
    assert any("load average 7.0" in finding["advice"] for finding in verdict["findings"])


def test_many_short_supersteps_and_compiling_are_named() -> None:
    events = [span("superstep", 10 * k, 10 * k + 10, number=k) for k in range(50)]
    events += [launch(10 * k, 10 * k + 2, 2, 2) for k in range(50)]
    events.sort(key=lambda event: event.start_ns + event.duration_ns)
    events.append(span("compile", 600, 900))
    _, verdict = judged(events, 1.0)
    texts = [finding["text"] for finding in verdict["findings"]]
    assert texts[0].startswith("80 % of the supersteps' time passed outside kernels")
    assert "10 ms, median of 50" in texts[0]
    assert any(
        "0.3 of 1 seconds went into loading compiled kernels" in text for text in texts
    )


def test_a_balanced_run_has_nothing_to_say() -> None:
    events = [launch(0, 1000, 1000, 1000), span("superstep", 0, 1000, number=0)]
    _, verdict = judged(events, 1.0)
    assert verdict["findings"] == []
    assert verdict["summary"].startswith("Of 1 s: 100 % in kernels. Nothing stands out")


def test_the_timeline_leaves_observers_out() -> None:
    events = [
        span("superstep", 0, 10),
        span("observing", 10, 90),
        span("superstep", 90, 100),
    ]
    lanes = lanes_of(events, 0, 100 * MS, num_bins=4)
    assert lanes == [("supersteps", [1.0, 1.0, 1.0, 1.0])]
    assert lanes_of(events, 0, 0) == []


def test_spans_become_events_of_a_chrome_trace() -> None:
    (event,) = trace_of([launch(3, 5, 1, 2), amount("edges", 1)], 1 * MS)
    assert event["name"] == "pull_0"
    assert (event["ph"], event["ts"], event["dur"]) == ("X", 2000.0, 2000.0)
    assert event["args"] == {"kernel": "pull_0", "busy_ns": [MS, 2 * MS]}


def test_a_run_of_spans_alone_is_broken_down() -> None:
    events = [span("scan", 0, 300), span("write", 300, 900), span("number", 900, 950)]
    _, verdict = judged(events, 1.0)
    assert verdict["summary"].startswith("Of 1 s: 60 % write, 30 % scan, 5 % number,")
    lanes = lanes_of(events, 0, 1000 * MS, num_bins=10)
    assert [name for name, _ in lanes] == ["scan", "write", "number"]


@pytest.mark.parametrize(
    ("length", "advice"), [(40, "larger batches do more"), (400, "the operators below say")]
)
def test_only_short_steps_are_called_short(length: int, advice: str) -> None:
    events = []
    for number in range(3):
        begin = number * length
        events += [
            span("forward", begin, begin + length - 1, batch=number),
            launch(begin, begin + 1, 1, 1),
            span("step", begin + length - 1, begin + length, batch=number),
        ]
    _, verdict = judged(events, 3 * length / 1000)
    assert "outside kernels" in verdict["findings"][0]["text"]
    assert advice in verdict["findings"][0]["advice"]
