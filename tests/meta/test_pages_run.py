"""Every fenced command of the pages that a stranger reads first is run by a test."""

import re

import pytest

from tests.conftest import ROOT
from tests.pages import sections_of

FENCE = re.compile(r"^\s*(?:```|~~~)", re.MULTILINE)


@pytest.mark.parametrize(
    "page", ["README.md", "datasets/FIRST_HOUR.md", "datasets/EXAMPLES.md"]
)
def test_every_block_lies_in_a_section_that_is_run(page: str) -> None:
    fences = FENCE.findall((ROOT / page).read_text())
    blocks = [block for section in sections_of(page).values() for block in section.blocks]
    assert 2 * len(blocks) == len(fences) > 0
