"""The worked examples run as they stand, each in a folder of its own."""

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT, Run

pytestmark = pytest.mark.e2e
_TEXT = (ROOT / "datasets" / "EXAMPLES.md").read_text()
EXAMPLES = dict(
    re.findall(r"^## (.*?)$.*?^```python\n(.*?)^```", _TEXT, re.DOTALL | re.MULTILINE)
)


def test_there_are_five_and_each_looks_at_its_answer() -> None:
    assert len(EXAMPLES) == _TEXT.count("\n## ") == 5
    assert all("assert " in code for code in EXAMPLES.values())


@pytest.mark.parametrize("title", EXAMPLES)
def test_an_example_runs(title: str, tmp_path: Path, run_python: Run) -> None:
    (tmp_path / "example.py").write_text(EXAMPLES[title])
    done = run_python("import runpy; runpy.run_path('example.py')", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr.lower()
