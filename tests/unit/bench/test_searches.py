"""Searches of presets' settings can be read, and search what their preset has."""

import tomllib
from pathlib import Path

import pytest

from graphsys.tuning.search import read_search

SEARCHES = Path(__file__).resolve().parents[3] / "scripts" / "bench" / "searches"


@pytest.mark.parametrize("file", sorted(SEARCHES.glob("*.toml")), ids=lambda it: it.stem)
def test_a_search_of_a_preset_can_be_read(file: Path) -> None:
    assert read_search(file).space
    text = file.read_text(encoding="utf-8")
    assert tomllib.loads(text)["preset"] == file.stem
    assert f"scripts/bench/searches/{file.name}" in text  # the command that repeats it
