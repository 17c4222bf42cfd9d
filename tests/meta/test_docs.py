"""What the READMEs say is true: their Python runs, their links and commands exist."""

import re
import tomllib
from pathlib import Path

import pytest

import graphsys
from tests.conftest import ROOT, Run

READMES = sorted(
    path.relative_to(ROOT)
    for pattern in (
        "*.md",
        "graphsys/*/README.md",
        "datasets/*.md",
        "partitioners/*.md",
        "scripts/**/*.md",
    )
    for path in ROOT.glob(pattern)
    if not path.parent.is_symlink()
)

WRITTEN = {"rows/TYPE/", "gen-1/", "gen-7/", "remote/", "staging/"}
"""Folders that READMEs tell of and that commands write."""

GENERATED = ROOT / "scripts" / "documenting" / "pages" / "reference"
"""Where the site has pages that ``scripts/docs`` makes, and whose links it looks at."""


@pytest.mark.parametrize("readme", READMES, ids=str)
def test_links_lead_to_files(readme: Path) -> None:
    text = (ROOT / readme).read_text()
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", text)
    local = [target for target in targets if "://" not in target]
    places = [(ROOT / readme).parent.joinpath(target).resolve() for target in local]
    missing = [it for it in places if not it.exists() and GENERATED not in it.parents]
    assert missing == []


@pytest.mark.parametrize("readme", READMES, ids=str)
def test_files_and_folders_that_are_named_are_there(readme: Path) -> None:
    """In every cell and sentence: files of Python, folders (``rows/``), and patterns."""
    text = (ROOT / readme).read_text()
    named = set(re.findall(r"`((?:\.\./)*\w[\w./*-]*(?:\.py|/))`", text)) - WRITTEN
    folder = (ROOT / readme).parent
    bases = (
        ROOT,
        folder,
        ROOT / "scripts",
        ROOT / "graphsys",
        ROOT / "tests" / "unit" / folder.name,
    )
    assert [it for it in named if not any(_is_there(to, it) for to in bases)] == []


def _is_there(folder: Path, named: str) -> bool:
    head = named.rpartition("../")[0] + "../" * named.startswith("../")
    rest = named.removeprefix(head)
    return next((folder / head).glob(rest.rstrip("/")), None) is not None


def test_readme_stays_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 110


def test_readmes_beside_a_guide_say_what_a_reader_of_the_code_needs() -> None:
    texts = {readme: (ROOT / readme).read_text() for readme in READMES}
    beside = {it for it in texts if it.name == "README.md" and it.parent != Path()}
    beside = {it for it in beside if "pages/guides/" in texts[it]}
    assert {it: n for it in beside if (n := len(texts[it].splitlines())) > 60} == {}


@pytest.mark.parametrize("name", sorted(graphsys.__all__))
def test_public_names_resolve_and_are_documented(name: str, run_python: Run) -> None:
    code = f"import graphsys; thing = graphsys.{name}; print(bool(thing.__doc__))"
    done = run_python(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True\n"


def test_scripts_named_in_the_readme_can_be_run() -> None:
    text = (ROOT / "README.md").read_text()
    for name in set(re.findall(r"\bscripts/[a-z/]+\b(?!\.)", text)):
        path = ROOT / name
        assert path.is_dir() or path.stat().st_mode & 0o111, name


def test_the_version_is_that_of_the_changelog() -> None:
    """The newest version that the changelog cut, or one under way after it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == graphsys.__version__
    cut = re.findall(r"^## \[(\d[\d.]*)\]", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert f"\nversion: {graphsys.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    newest = max(tuple(map(int, it.split("."))) for it in cut)
    said = tuple(map(int, project["version"].split(".")[:3]))
    assert said > newest if "dev" in project["version"] else said == newest
