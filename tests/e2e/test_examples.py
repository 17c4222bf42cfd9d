"""The worked examples run as they stand, each in a folder of its own."""

from pathlib import Path

import pytest

from tests.pages import run_script, sections_of

pytestmark = pytest.mark.e2e
SECTIONS = sections_of("datasets/EXAMPLES.md")


def test_there_are_eight_and_each_looks_at_its_answer() -> None:
    assert len(SECTIONS) == 8
    assert all("assert " in section.script() for section in SECTIONS.values())


@pytest.mark.parametrize("heading", SECTIONS)
def test_an_example_runs(heading: str, tmp_path: Path, base_programs: Path) -> None:
    done = run_script(SECTIONS[heading].script(), base_programs, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr.lower()
