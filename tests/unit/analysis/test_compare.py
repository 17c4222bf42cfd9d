"""Two reports side by side: whether their runs are of the same work."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphsys as gs
from graphsys.analysis.compare import compare_reports
from graphsys.analysis.page.comparison import comparison_page
from graphsys.cli.main import main
from graphsys.engine import algorithms
from graphsys.engine.topology import Topology


def report(command: str) -> dict[str, Any]:
    metric = {"name": "wall_seconds", "unit": "s", "value": float(len(command))}
    machine: dict[str, Any] = {}
    return {"command": command, "metrics": [metric], "machine": machine, "status": "done"}


@pytest.mark.parametrize(
    ("before", "after", "is_unlike"),
    [
        ("run bfs web -o a.csv", "run bfs web -o b.csv --threads 1", False),
        ("run bfs web", "run wcc web", True),
        ("run bfs web", "run bfs other", True),
        ("train embedding web -o run", "run bfs web", True),
    ],
)
def test_reports_of_other_work_are_told(before: str, after: str, is_unlike: bool) -> None:
    found = compare_reports(report(f"graphsys {before}"), report(f"graphsys {after}"))
    assert (found["unlike"] is not None) == is_unlike
    if is_unlike:
        assert found["unlike"].startswith("these are reports of unlike runs, ")


@pytest.fixture(scope="module")
def reports() -> list[dict[str, Any]]:
    topology = Topology.from_edges(np.arange(3), np.array([1, 2, 0]), num_nodes=3)
    found = []
    for iterations in (2, 250):
        with gs.profile() as p:
            algorithms.get("pagerank")(
                topology, implementation="program", iterations=iterations
            )
        found.append(p.report)
    return found


def test_the_page_has_both_reports_beside_each_other(reports: list[dict[str, Any]]) -> None:
    before, after = reports
    page = comparison_page(before, after, ("old.json", "<new>.json"))
    assert "&lt;new&gt;.json" in page
    assert "<new>" not in page
    left, right = ({it["name"]: it["value"] for it in r["metrics"]} for r in reports)
    calls = left["kernel_invocations"], right["kernel_invocations"]
    row = page[page.index("<td>Kernel invocations</td>") :].split("</tr>")[0]
    assert f'data-v="{calls[0]}">{calls[0]} launches</td>' in row
    assert f'data-v="{calls[1]}">{calls[1]} launches</td>' in row
    assert f'data-v="{calls[1] / calls[0]}">' in row
    assert row.count("<rect") == 2
    assert page.count('aria-label="when: supersteps"') == 2
    assert page.count('class="bar"') == 2  # where the wall time of each went
    numbers = page[page.index('id="numbers"') :].split("<h2>Measured")[0]
    assert numbers.count("<h2>") == 3
    assert f"<b>{calls[0]}</b>" in numbers
    assert f"<b>{calls[1]}</b>" in numbers
    assert "<td>Transfers</td>" not in page  # there were none in either
    steps = page[page.index('id="steps"') :].split("</svg>")[0]
    assert "means of 3 in a row" in page  # 250 supersteps share 84 groups of bars
    assert steps.count("old.json: ") == 1  # its two supersteps are one bar
    assert steps.count("&lt;new&gt;.json: ") == 84
    operators = page[page.index('id="operators"') :].split("</table>")[0]
    assert f"<code>{after['operators'][0]['name']}</code>" in operators
    assert 'id="unlike"' not in page


def test_a_page_of_unlike_runs_says_so(reports: list[dict[str, Any]]) -> None:
    other = {**reports[1], "command": "graphsys run wcc web"}
    page = comparison_page(
        {**reports[0], "command": "graphsys run bfs web"}, other, ("a", "b")
    )
    assert "These are reports of unlike runs" in page


def test_the_compared_reports_are_not_written_over(
    reports: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, own in zip("ab", reports, strict=True):
        (tmp_path / f"{name}.json").write_text(json.dumps(own))
    both = ["profile", "--compare", f"{tmp_path}/a.json", f"{tmp_path}/b.json"]
    (tmp_path / "b.html").touch()
    assert main([*both, "-o", f"{tmp_path}/b.html", "--overwrite"]) == 2
    assert "in place of a report that is compared" in capsys.readouterr().err
    assert json.loads((tmp_path / "b.json").read_text()) == reports[1]
    assert main([*both, "-o", f"{tmp_path}/c.html"]) == 0
    changes = json.loads((tmp_path / "c.json").read_text())["changes"]
    assert any(it["name"] == "supersteps" and it["ratio"] == 125 for it in changes)
    assert "beside" in (tmp_path / "c.html").read_text()
    assert main([*both, "-o", f"{tmp_path}/c.html"]) == 2
    assert "exists" in capsys.readouterr().err


@pytest.mark.parametrize("alter", ["metrics", "machine", "command", "verdict", "value"])
def test_altered_reports_are_one_line(
    tmp_path: Path, alter: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with gs.profile(tmp_path / "a.html", level="L0"):
        pass
    whole = json.loads((tmp_path / "a.json").read_text())
    changes: dict[str, dict[str, Any]] = {
        "metrics": {"metrics": [7, {"value": "x"}]},
        "machine": {"machine": 3},
        "command": {"command": "graphsys run 'bfs"},
        "verdict": {"verdict": []},
        "value": {"metrics": [{**whole["metrics"][0], "value": "many"}]},
    }
    (tmp_path / "b.json").write_text(json.dumps({**whole, **changes[alter]}))
    words = ["profile", "--compare", str(tmp_path / "a.json"), str(tmp_path / "b.json")]
    for more in ([], ["-o", str(tmp_path / "c.html")]):
        code = main([*words, *more])
        err = capsys.readouterr().err
        assert code == 2 or "Traceback" not in err
        if code:
            assert err.count("error: ") == 1
            assert "profile it again" in err
