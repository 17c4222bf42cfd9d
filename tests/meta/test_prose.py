"""Sentences of the pages can be read in one breath: thirty words at most."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

MOST_WORDS = 30
LISTS = {"CHANGELOG.md", "SETTINGS.md"}
"""Pages of one entry a line, not prose."""
FOLDERS = ("graphsys", "datasets", "partitioners", "scripts")


def pages() -> list[Path]:
    """Return the pages of prose, without what a symlink shows a second time."""
    patterns = ["*.md", *(f"{folder}/**/*.md" for folder in FOLDERS)]
    found = {path.resolve() for pattern in patterns for path in ROOT.glob(pattern)}
    return sorted(path.relative_to(ROOT) for path in found if path.name not in LISTS)


FENCED = re.compile(r"```.*?```", re.DOTALL)
PARAGRAPHS = re.compile(r"\n\s*\n|\n(?=\s*[-*] )|\n(?=\s*\d+\. )|\n(?=[#|])")
SENTENCES = re.compile(r"(?<=[.!?:])\s+(?=[A-Z\[*(])")


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a page; a code span is one word, a link is its text."""
    for paragraph in PARAGRAPHS.split(FENCED.sub("\n\n", text)):
        if paragraph.lstrip().startswith(("|", "#")):
            continue  # a table or a heading
        prose = " ".join(paragraph.split())
        prose = re.sub(r"\]\([^)]*\)", "]", prose)
        yield from SENTENCES.split(re.sub(r"`[^`]*`", "CODE", prose))


@pytest.mark.parametrize("page", pages(), ids=str)
def test_sentences_are_short(page: Path) -> None:
    found = sentences((ROOT / page).read_text(encoding="utf-8"))
    assert [it for it in found if len(it.split()) > MOST_WORDS] == []


def test_items_code_spans_links_and_blocks_are_recognized() -> None:
    prose = "# A heading\n\nOne `a b c`, [two](there.md). Three:\nFour.\n- an item\n1. next"
    rest = "\n\n| a | table |\n```sh\nno. Prose\n```\nlast\n"
    found = [it for it in sentences(prose + rest) if it]
    assert found == ["One CODE, [two].", "Three:", "Four.", "- an item", "1. next", "last"]
