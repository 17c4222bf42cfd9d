"""Pictures of the page are of the page as it is."""

import importlib
import json
from pathlib import Path
from struct import unpack
from typing import Any

import pytest

from graphsys.analysis.page.page import page_of
from tests.conftest import ROOT
from tests.unit.analysis.test_page import report_of_many


@pytest.fixture
def shots(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the script's module."""
    monkeypatch.syspath_prepend(ROOT / "scripts")
    return importlib.import_module("bench.cases.screenshots")


def size_of(picture: Path) -> tuple[int, int]:
    content = picture.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    return unpack(">II", content[16:24])


def test_pictures_are_no_older_than_the_page(shots: Any) -> None:
    kept = json.loads(shots.RECORD.read_text())
    assert kept["sources"] == shots.sources(), (
        "the page has changed: take its pictures anew by scripts/bench/run screenshots"
    )
    assert "graphsys/analysis/templates/report.html" in kept["sources"]
    files = {path.name: shots.checksum(path) for path in shots.PAGES.glob("*.png")}
    assert kept["pictures"] == files
    for shot, (_, width, _) in shots.SHOTS.items():
        wide, high = size_of(shots.PAGES / f"{shot}.png")
        assert wide == width
        assert high > 1000


def test_a_picture_is_as_high_as_its_page(
    shots: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shots, "MOST_PIXELS", 20_000)
    program = shots.browser()
    if program is None:
        pytest.skip("no Chromium; apt-get install chromium-headless-shell")
    page, sizes = tmp_path / "page.html", []
    page.write_text(page_of(report_of_many(3)))
    for width, is_dark in ((1000, False), (390, True)):
        picture = tmp_path / f"{width}.png"
        shots.take(page, picture, width, is_dark=is_dark, program=program)
        sizes.append(size_of(picture))
    assert [wide for wide, _ in sizes] == [1000, 390]
    assert 1000 < sizes[0][1] < sizes[1][1]  # narrow pages are higher
    broken = tmp_path / "broken.html"
    broken.write_text("<html><body></html>")
    with pytest.raises(RuntimeError, match="did not lay"):
        shots.take(broken, tmp_path / "none.png", 390, is_dark=False, program=program)


def test_without_a_browser_nothing_is_changed(
    shots: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shots, "browser", lambda: None)
    before = shots.RECORD.read_text()
    assert shots.main([]) == 2
    assert "apt-get install chromium-headless-shell" in capsys.readouterr().err
    assert shots.RECORD.read_text() == before
