"""What a stranger types first: CI runs it, and it fails where it did not work."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graphsys.datasets import generators
from graphsys.storage import ingest
from tests.conftest import ROOT


def test_ci_runs_every_script_of_the_readmes_first_block() -> None:
    [block, *_] = re.findall(
        r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL
    )
    named = re.findall(r"^(scripts/\w+)", block, re.MULTILINE)
    assert named == ["scripts/demo", "scripts/check"]
    called = re.findall(r"\$root/(scripts/\w+)", (ROOT / ".ci" / "run").read_text())
    assert called == named


def test_ci_holds_the_demo_to_its_time() -> None:
    ci = (ROOT / ".ci" / "run").read_text()
    [limit] = re.findall(r"^GRAPHSYS_DEMO_SECONDS=(\d+) \"\$root/scripts/demo\"", ci, re.M)
    assert int(limit) <= 2.5 * 120  # two minutes, on the slowest machine seen
    demo = (ROOT / "scripts" / "demo").read_text()
    [check] = re.findall(r"^seconds=.*?^    fail .*?\n", demo, re.M | re.S)
    for most, code in (("", 0), ("7", 0), ("6", 2)):
        done = subprocess.run(
            ["bash", "-euc", f"fail() {{ exit 2; }}; SECONDS=7 installed=0\n{check}"],
            env={"GRAPHSYS_DEMO_SECONDS": most},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (code, "\n7 s after the install\n")


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "graph"
    ingest(generators.demo(num_users=400, num_categories=20), folder)
    return folder


def report(what: str, graph: Path, out: Path, **answers: Any) -> Any:
    """Run the demo's report on answers of commands."""
    for name, answer in answers.items():
        (out / f"{name.replace('_', '-')}.json").write_text(json.dumps(answer))
    script = ROOT / "scripts" / "_demo_report.py"
    command = [sys.executable, "-P", *map(str, (script, what, graph, out))]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def metrics(mrr: float) -> dict[str, float]:
    return {"mrr": mrr, "hits@1": mrr, "hits@10": mrr}


@pytest.mark.parametrize(("mrr", "code"), [(0.61, 0), (0.3, 1)])
def test_the_demo_fails_where_its_ranking_is_bad(
    mrr: float, code: int, graph: Path, tmp_path: Path
) -> None:
    answers = {
        "baselines": {"random": metrics(0.01)},
        "evaluate": {"metrics": metrics(mrr)},
    }
    done = report("ranking", graph, tmp_path, **answers)
    assert done.returncode == code
    assert ("error: the demo did not learn" in done.stderr) == bool(code)


@pytest.mark.parametrize("is_alike", [True, False])
def test_the_demo_fails_where_neighbors_are_of_other_groups(
    is_alike: bool, graph: Path, tmp_path: Path
) -> None:
    from graphsys.storage import Graph

    nodes = Graph(graph).nodes("item", 0).to_pylist()
    first, *others = nodes
    same = [row["id"] for row in others if (row["label"] == first["label"]) == is_alike]
    rows = [{"id": node, "score": 1.0} for node in same[:5]]
    (tmp_path / f"nearest-{first['id']}.json").write_text(json.dumps({"neighbors": rows}))
    done = report("neighbors", graph, tmp_path)
    assert done.returncode == (0 if is_alike else 1), done.stderr
    assert ("0% of the nearest" in done.stderr) != is_alike
