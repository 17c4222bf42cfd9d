"""Pages of the site run as they stand: how-to, guides, both sides of movers' pages."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.pages import FENCED, Section, run_script

pytestmark = pytest.mark.e2e
PAGES = ROOT / "scripts" / "documenting" / "pages"
HOW_TO = sorted(path.stem for path in (PAGES / "howto").glob("*.md"))
GUIDES = sorted(path.stem for path in (PAGES / "guides").glob("*.md"))
TITLED = re.compile(r'^```python title="([^"]+)"\n(.*?)^```', re.DOTALL | re.MULTILINE)
SIDES = {
    # page: what it needs, the side that is not ours (None: it does not install here)
    "pyg": ("torch_geometric", "PyG"),
    "dgl": ("dgl", "DGL"),
    "networkx": ("networkx", "NetworkX"),
    "pytorch_biggraph": (None, None),
}
KEEP = """
import json as _json

def _plain(it):
    if isinstance(it, (list, tuple)):
        return all(map(_plain, it))
    if isinstance(it, dict):
        return all(map(_plain, it.values()))
    return isinstance(it, (int, float, str, bool))

_found = {k: v for k, v in list(globals().items()) if k[0] != "_" and _plain(v)}
with open("found.json", "w") as _file:
    _json.dump(_found, _file)
"""
"""Behind a side's code: keeps the values that the two sides may name alike."""
PROGRAMS = Path(sys.executable).parent
"""Of this environment: pages use pandas, NetworkX and the peers."""


def test_every_task_of_the_index_has_a_page() -> None:
    index = (PAGES / "howto" / "index.md").read_text()
    assert {*re.findall(r"\]\((\w+)\.md\)", index)} == {*HOW_TO} - {"index"}


@pytest.mark.parametrize("page", [name for name in HOW_TO if name != "index"])
def test_a_how_to_page_runs(page: str, tmp_path: Path, warm_programs: str) -> None:
    script = blocks_of(f"howto/{page}").script()
    done = run_script(script, warm_programs, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", GUIDES)
def test_a_guide_runs(page: str, tmp_path: Path, warm_programs: str) -> None:
    script = blocks_of(f"guides/{page}").in_order()
    done = run_script(script, warm_programs, tmp_path)
    assert done.returncode == 0, done.stderr


def blocks_of(page: str) -> Section:
    """Return the blocks of a page that a reader can run."""
    text = (PAGES / f"{page}.md").read_text()
    blocks = tuple(it for it in FENCED.findall(text) if it[0] in ("sh", "python"))
    assert blocks
    return Section(page, blocks, text)


def test_a_command_that_fails_ends_a_page(tmp_path: Path, warm_programs: str) -> None:
    script = "graphsys info nowhere > out\necho after\n"
    done = run_script(script, warm_programs, tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: nowhere ")
    assert "after" not in done.stdout


def run_side(page: str, side: str, folder: Path) -> dict[str, Any]:
    """Run what a page has of a side, and return its plain values by name."""
    folder.mkdir()
    blocks = TITLED.findall((PAGES / "from" / f"{page}.md").read_text())
    code = "".join(text for title, text in blocks if title in ("both", side))
    (folder / "example.py").write_text(code + KEEP)
    variables = {"DGLBACKEND": "pytorch"}
    done = run_script("python -P example.py", PROGRAMS, folder, variables)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads((folder / "found.json").read_text())
    return found


@pytest.mark.parametrize("page", SIDES)
def test_both_sides_of_a_page_say_the_same(page: str, tmp_path: Path) -> None:
    needed, peer = SIDES[page]
    if needed is not None:
        pytest.importorskip(needed, reason=f"{needed} is not installed")
    ours = run_side(page, "graphsys", tmp_path / "ours")
    if peer is None:
        return
    theirs = run_side(page, peer, tmp_path / "theirs")
    shared = ours.keys() & theirs.keys()
    assert len(shared) >= 7
    for name in shared:
        assert ours[name] == pytest.approx(theirs[name], abs=1e-5), name
