"""What to do next follows from the profiled command, and is true of its run."""

from typing import Any

import pytest

from graphsys.analysis.next_command import ProfiledCommand, load_text, next_of
from tests.unit.analysis.test_host import MACHINE, judged, launch, span

BUSY = {"load_average": 9.0, "cpu": {"usable_cores": 2}, "memory_bytes": 64 << 30}
QUIET = MACHINE | {"memory_bytes": 64 << 30}
RUN = "graphsys run wcc web -o out.csv"


def next_for(
    events: list[Any], wall_s: float, text: str, machine: Any = None, level: str = "L1"
) -> Any:
    command = ProfiledCommand(text, level)
    _, verdict = judged(events, wall_s, machine or QUIET, command)
    settings = {"level": level}
    return next_of(verdict, command, machine or QUIET, settings, has_rows=True)


def test_what_was_compiled_is_measured_again() -> None:
    events = [span("compile", 0, 90, compiled=4), launch(90, 95, 5, 5)]
    then = next_for(events, 0.1, RUN)
    assert then["command"] == (
        "graphsys profile -o again.html -- run wcc web -o out.csv --overwrite"
    )
    assert "cached now" in then["reason"]
    # what came from the cache is there again: nothing to gain
    then = next_for([span("compile", 0, 90), launch(90, 95, 5, 5)], 0.1, RUN)
    assert "--schedulers" in then["command"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (f"{RUN} --memory 1GiB", "--memory 2048MiB"),
        (f"{RUN} --memory=512MiB --overwrite", "-o out.csv --overwrite --memory 1024MiB"),
        (f"{RUN} --memory 60GiB", "--memory 52428MiB"),  # .8 of the machine: less
    ],
)
def test_waiting_asks_for_more_memory_where_it_was_limited(text: str, wanted: str) -> None:
    events = [span("read", 0, 80), span("wait", 0, 80), launch(80, 95, 15, 15)]
    then = next_for(events, 0.1, text)
    if "60GiB" in text:
        assert "--memory 60GiB" in then["command"]
        assert "--schedulers" in then["command"]
    else:
        assert wanted in then["command"]
        assert then["command"].count("--memory") == 1
        assert then["command"].count("--overwrite") == 1
    assert "--memory" not in next_for(events, 0.1, RUN)["command"]


def test_uneven_threads_ask_for_an_order_of_the_graph() -> None:
    then = next_for([launch(0, 95, 90, 5)], 0.1, "graphsys run wcc data/web/ -o a.csv")
    assert then["command"] == (
        "graphsys partition data/web/ -o data/web-by-degree --order degree"
    )


def test_a_busy_machine_comes_first() -> None:
    events = [span("compile", 0, 90, compiled=4), launch(90, 95, 5, 5)]
    then = next_for(events, 0.1, f"{RUN} --overwrite", BUSY)
    assert then["reason"] == "Measure again when the other work is done."
    assert then["command"].endswith("run wcc web -o out.csv --overwrite")
    assert load_text(BUSY).startswith("Load 9.0 on 2 cores: other work took part")
    assert load_text(QUIET) == "Load 0.5 on 2 cores: no sign of other work."


def test_short_steps_ask_for_what_makes_them_longer() -> None:
    steps = [span("superstep", 5 * k, 5 * k + 5, number=k) for k in range(18)]
    kernels = [launch(5 * k, 5 * k + 1, 1) for k in range(18)]
    events = [it for pair in zip(kernels, steps, strict=True) for it in pair]
    then = next_for(events, 0.1, f"{RUN} --implementation program")
    assert "--implementation" not in then["command"]
    train = "graphsys train gnn web -o r --set batch_size=100 --set epochs=2"
    then = next_for(events, 0.1, train)
    assert then["command"] == (
        "graphsys profile -o again.html -- train gnn web -o r --set batch_size=200 --set "
        "epochs=2 --overwrite"
    )


def test_a_level_without_the_model_asks_for_it() -> None:
    then = next_for([launch(0, 95, 95, 95)], 0.1, RUN, level="L0")
    assert then["command"].startswith("graphsys profile -o again.html --level L1 -- run")
    # and other advice keeps the level
    events = [span("compile", 0, 90, compiled=4), launch(90, 95, 5, 5)]
    then = next_for(events, 0.1, RUN, level="L0")
    assert then["command"].startswith("graphsys profile -o again.html --level L0 -- run")


def test_what_is_no_command_line_has_none() -> None:
    events = [span("compile", 0, 90, compiled=4), launch(90, 95, 5, 5)]
    assert next_for(events, 0.1, "python", BUSY) is None
    assert ProfiledCommand("graphsys run --list").ordered("degree") is None
