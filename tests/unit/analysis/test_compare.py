"""Two reports side by side: whether their runs are of the same work."""

from typing import Any

import pytest

from graphsys.analysis.compare import compare_reports


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
