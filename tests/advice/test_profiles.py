"""What profiles, counters and their pages advise leads to figures."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import graphsys as gs
from graphsys.analysis.host import figures_of
from graphsys.analysis.measured import RunConditions, host_metrics
from graphsys.analysis.metrics import by_name
from graphsys.analysis.model.compiled import program_of
from graphsys.analysis.next_command import ProfiledCommand
from graphsys.analysis.verdict import verdict_of
from graphsys.core.errors import ConfigError
from tests.advice.case import advised
from tests.advice.conftest import Command
from tests.conftest import ROOT
from tests.unit.analysis.test_host import MACHINE, amount, judged, launch, span

NCU = ROOT / "scripts" / "gpu_checking" / "stand_in_ncu"
COUNTED = ROOT / "tests" / "unit" / "analysis" / "traces" / "ncu_of_h100.csv"
BFS = "run bfs g -o hops.csv --param source=1 --overwrite"
VERDICT, VERB = "graphsys/analysis/verdict.py", "graphsys/cli/profile.py"
LARGE = MACHINE | {"memory_bytes": 64 << 30}
RUN = "graphsys run wcc g -o out.csv --overwrite"


@pytest.fixture(autouse=True)
def graph(folder: Path, command: Command) -> Path:
    """Make the graph ``g`` of three nodes in the current folder."""
    (folder / "a.txt").write_text("1 2\n2 3\n3 1\n")
    assert command("ingest a.txt -o g").code == 0
    return folder / "g"


@pytest.fixture
def on_a_gpu(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have commands in the shell find a GPU, numba's simulator, and a stand-in for ncu."""
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(
        "from tests.cuda_sim import warp_shim\nwarp_shim.install()\n"
    )
    (folder / "bin").mkdir()
    (folder / "bin" / "ncu").symlink_to(NCU)
    monkeypatch.setenv("PYTHONPATH", f"{folder / 'site'}{os.pathsep}{ROOT}")
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    monkeypatch.setenv("PATH", f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}")


def value_of(page: str, name: str) -> object:
    """Return a metric of a report."""
    metrics = json.loads(Path(page).with_suffix(".json").read_text())["metrics"]
    return next(it["value"] for it in metrics if it["name"] == name)


@pytest.mark.usefixtures("on_a_gpu")
def test_clocks_inside_kernels_need_a_gpu(command: Command) -> None:
    line = "$ GRAPHSYS profile -o p.html --overwrite --level L3 -- " + BFS
    first = command(line)
    advice = advised(
        first.said,
        "graphsys/analysis/traces/clocks.py",
        "no instrumented kernel ran; give the command (--device cuda)",
    )
    second = command(f"{line} {advice[1]}")
    assert second.code == 0, second.said
    assert "no clocks" not in second.said
    assert json.loads(Path("p.json").read_text())["clocks"]


@pytest.mark.usefixtures("on_a_gpu")
def test_counters_need_a_gpu(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    line = "$ GRAPHSYS profile -o p.html --overwrite --level L4 -- " + BFS
    monkeypatch.setenv("STAND_IN_NCU", "none")
    first = command(line)
    advice = advised(
        first.said,
        "graphsys/analysis/ncu_run.py",
        "no kernel ran on a GPU; give the command (--device cuda)",
    )
    monkeypatch.delenv("STAND_IN_NCU")
    second = command(f"{line} {advice[1]}")
    assert second.code == 0, second.said
    assert value_of("p.html", "kernel_invocations.ncu") == 2


def test_counters_without_ncu(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCU", "nowhere")
    refused = command(f"profile -o p.html --level L4 -- {BFS}")
    advice = advised(
        refused.said,
        "graphsys/analysis/ncu_run.py",
        r"name it in \$(NCU), import its CSV with (--ncu), or use (--level L3) for clocks",
    )
    assert command(f"profile -o csv.html {advice[2]} {COUNTED}").code == 0
    assert value_of("csv.html", "lane_utilization") is not None
    assert command(f"profile -o p.html {advice[3]} -- {BFS}").code == 0
    monkeypatch.setenv(advice[1], str(NCU))
    assert command(f"$ GRAPHSYS profile -o q.html --level L4 -- {BFS}").code == 0


def test_counters_around_python(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError) as refused, gs.profile(level="L4"):
        pass
    advice = advised(
        str(refused.value),
        "graphsys/analysis/profile.py",
        r"use (graphsys profile) (--level L4) -- COMMAND",
    )
    monkeypatch.setenv("NCU", str(NCU))
    done = command(f"{advice[1]} -o p.html {advice[2]} -- {BFS}")
    assert done.code == 0, done.said


def test_a_csv_of_others(folder: Path, command: Command) -> None:
    (folder / "own.csv").write_text("a,b\n1,2\n")
    refused = command("profile --ncu own.csv -o p.html")
    advice = advised(
        refused.said,
        "graphsys/analysis/traces/ncu.py",
        r"export it by ncu (--csv) (--page raw)$",
    )
    counters = "--metrics smsp__thread_inst_executed.sum --log-file own.csv"
    words = [NCU, advice[1], *advice[2].split(), *counters.split(), "true"]
    subprocess.run(list(map(str, words)), check=True)
    assert command("profile --ncu own.csv -o p.html").code == 0


def test_a_report_that_was_altered(folder: Path, command: Command) -> None:
    line = f"profile -o p.html --level L0 --overwrite -- {BFS}"
    assert command(line).code == 0
    report = json.loads((folder / "p.json").read_text())
    report["metrics"] = [{"name": 7, "value": 1}]
    (folder / "p.json").write_text(json.dumps(report))
    refused = command("profile --compare p.json p.json")
    advice = advised(
        refused.said,
        "graphsys/analysis/files.py",
        r"not as (graphsys profile) writes reports .*; profile it again$",
    )
    assert command(line.replace("profile", advice[1], 1)).code == 0
    assert command("profile --compare p.json p.json").code == 0


def test_what_is_compiled_has_a_program(command: Command) -> None:
    refused = command("profile --compile sm_90 leiden")
    advice = advised(
        refused.said,
        "graphsys/analysis/model/compiled.py",
        r"give an algorithm with a vertex program \((graphsys run) (--list)\)",
    )
    listed = json.loads(command(f"{advice[1]} {advice[2]} --json").out)
    names = [
        it["algorithm"] for it in listed["algorithms"] if "program" in it["implementations"]
    ]
    assert "leiden" not in names
    for name in names:
        assert program_of(name) is not None


def test_one_thing_is_compiled(command: Command) -> None:
    refused = command("profile --compile sm_90 pagerank wcc")
    one = advised(refused.said, VERB, r"^error: (--compile) takes one algorithm or")
    done = command(f"profile {one[1]} sm_90 pagerank --json")
    assert done.code == 0 or "CUDA's compiler is missing" in done.said


def test_traces_and_counters_take_no_command(folder: Path, command: Command) -> None:
    line = f"profile -o p.html --level L0 -- {BFS}"
    assert command(line).code == 0
    refused = command(f"profile -o q.html --ncu {COUNTED} -- {BFS}")
    advice = advised(
        refused.said,
        VERB,
        r"(--trace) takes one report's .json at most, (--ncu) nothing, and neither",
    )
    kernel = {"ph": "X", "cat": "kernel", "name": "pull", "ts": 1, "dur": 5, "pid": 0}
    kernel |= {"tid": 7, "args": {"grid": [1, 1, 1], "block": [32, 1, 1]}}
    (folder / "kernels.json").write_text(json.dumps({"traceEvents": [kernel]}))
    done = command(f"profile -o gpu.html {advice[1]} kernels.json p.json")
    assert done.code == 0, done.said
    assert command(f"profile -o n.html {advice[2]} {COUNTED}").code == 0


def told(
    events: list[Any], text: str = RUN, machine: Any = None, wall_s: float = 0.1
) -> str:
    """Return what a page advises after a run of which so much is known."""
    _, verdict = judged(events, wall_s, machine or LARGE, ProfiledCommand(text, "L1"))
    found = [it["advice"] for it in verdict["findings"]]
    return " ".join([*found, *(it["command"] or "" for it in verdict["findings"])])


def test_what_waits_for_the_disk_is_given_more_memory(command: Command) -> None:
    waited = [span("read", 0, 80), span("wait", 0, 80), launch(80, 95, 15, 15)]
    text = told(waited, f"{RUN} --memory 1GiB")
    advice = advised(
        text, VERDICT, r"Give it more (--memory), so that more partitions stay"
    )
    again = re.search(rf"graphsys profile \S+ \S+ -- .* {advice[1]} \S+", text)
    assert again is not None, text
    assert command(again[0]).code == 0


def test_uneven_rows_are_ordered_or_given_fewer_threads(command: Command) -> None:
    text = told([launch(0, 95, 90, 5)])
    advice = advised(text, VERDICT, r"order nodes by degree, or give fewer (--threads)\.")
    assert command(f"{RUN} {advice[1]} 1").code == 0
    again = re.search(r"graphsys partition g -o g-by-degree --order degree", text)
    assert again is not None, text
    assert command(again[0]).code == 0
    assert command("run wcc g-by-degree -o ordered.csv").code == 0


def test_what_is_bound_by_memory_is_ordered(command: Command) -> None:
    events = [
        launch(0, 90, 90, 90),
        amount("edges", 2e7),
        span("superstep", 0, 95, number=0, mode="pull"),
    ]
    text = told(events)
    advice = advised(
        text, VERDICT, r"more locality \((--order rabbit)\), moves fewer bytes"
    )
    assert command(f"partition g -o near {advice[1]}").code == 0
    assert command("run wcc near -o near.csv").code == 0


def test_what_was_compiled_is_compiled_before(command: Command) -> None:
    text = told([span("compile", 0, 90, compiled=4), launch(90, 95, 5, 5)])
    advice = advised(text, VERDICT, r"(graphsys doctor) (--warm-up) compiles what other")
    assert advice[2] in command(f"{advice[1]} --help").out


@pytest.mark.parametrize("kind", ["program", "embedding"])
def test_workers_that_wait_get_other_partitions(
    folder: Path, command: Command, kind: str
) -> None:
    rows = [{"seconds": 0.1}, {"seconds": 0.05}]
    cluster = {"workers": rows, "waiting_share": 0.5, "load_imbalance": 1.4, "kind": kind}
    figures = figures_of([launch(0, 95, 90, 90)])
    around = RunConditions(wall_s=0.1, peak_bytes=1, bandwidth=1e9)
    metrics = by_name(host_metrics(figures, around, MACHINE))
    verdict = verdict_of(figures, metrics, MACHINE, cluster)
    text = " ".join(it["advice"] for it in verdict["findings"])
    if kind == "program":
        advice = advised(text, VERDICT, r"as many edges \((--partitioner)\) share the work")
        line = f"partition g -o g2 {advice[1]} range --partitions 2"
    else:
        advice = advised(text, VERDICT, r"workers can hold \((--partitions)\) leave each a")
        line = f"partition g -o g2 {advice[1]} 2"
    assert command(line).code == 0
    assert json.loads(command("info g2 --json").out)["partitions"] == 2


def test_a_level_that_is_a_trace(folder: Path, command: Command) -> None:
    (folder / "kineto.json").write_text('{"traceEvents": []}')
    refused = command(f"profile -o p.html --level L2 -- {BFS}")
    assert refused.code == 2
    advice = advised(
        refused.said,
        "graphsys/analysis/profile.py",
        r"(profile -o) PAGE\.html (--trace) FILE",
    )
    done = command(f"{advice[1]} p.html {advice[2]} kineto.json")
    assert done.code == 0, done.said
