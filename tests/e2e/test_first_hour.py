"""The blocks of datasets/FIRST_HOUR.md work as they stand, on the data that they name."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.pages import run_script, sections_of

SECTIONS = sections_of("datasets/FIRST_HOUR.md")


def test_the_page_has_blocks_and_the_front_page_leads_to_them() -> None:
    assert len(SECTIONS) >= 9
    anchors = {re.sub(r"[^\w -]", "", name).lower().replace(" ", "-") for name in SECTIONS}
    named = re.findall(
        r"datasets/FIRST_HOUR\.md#([\w-]+)", (ROOT / "README.md").read_text()
    )
    assert len(named) == 6
    assert set(named) <= anchors


@pytest.mark.e2e
@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_works_as_it_stands(
    name: str, tmp_path: Path, warm_base_programs: str, shared_data: Path
) -> None:
    variables = {"DATA": str(shared_data)}
    done = run_script(SECTIONS[name].script(), warm_base_programs, tmp_path, variables)
    assert done.returncode == 0, done.stderr


def test_data_that_are_not_there_are_told(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "first_hour", "--data", tmp_path, "--once"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "My edges: passed over, wiki-Vote/wiki-Vote.txt is not there" in done.stdout
