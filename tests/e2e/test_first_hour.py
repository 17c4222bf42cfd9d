"""The blocks of datasets/FIRST_HOUR.md work as they stand, on the data that they name."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

PAGE = (ROOT / "datasets" / "FIRST_HOUR.md").read_text()
NAMES = [
    section.splitlines()[0] for section in PAGE.split("\n## ")[1:] if "```sh\n" in section
]
SLOW = (
    "My friends, both ways",
    "My messages, by time",
    "My nodes, with features and labels",
    "My recommender",
)
"""Left to ``scripts/first_hour``: other tests run the same commands."""


def test_the_page_has_blocks_and_the_front_page_leads_to_them() -> None:
    assert len(NAMES) >= 9
    anchors = {re.sub(r"[^\w -]", "", name).lower().replace(" ", "-") for name in NAMES}
    named = re.findall(
        r"datasets/FIRST_HOUR\.md#([\w-]+)", (ROOT / "README.md").read_text()
    )
    assert len(named) == 6
    assert set(named) <= anchors


@pytest.mark.e2e
@pytest.mark.parametrize("name", [name for name in NAMES if name not in SLOW])
def test_a_block_works_as_it_stands(name: str, shared_data: Path) -> None:
    done = subprocess.run(
        [
            sys.executable, ROOT / "scripts" / "first_hour",
            "--data", shared_data, "--only", name, "--once",
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "cpu_s" in done.stdout


def test_data_that_are_not_there_are_told(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "first_hour", "--data", tmp_path, "--once"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "My edges: passed over, wiki-Vote/wiki-Vote.txt is not there" in done.stdout
