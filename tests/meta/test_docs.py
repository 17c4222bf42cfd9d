"""What the READMEs say is true: their Python runs, their links and commands exist."""

import re
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


@pytest.mark.parametrize("readme", READMES, ids=str)
def test_links_lead_to_files(readme: Path) -> None:
    text = (ROOT / readme).read_text()
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", text)
    local = [target for target in targets if "://" not in target]
    missing = [
        target for target in local if not (ROOT / readme).parent.joinpath(target).exists()
    ]
    assert missing == []


@pytest.mark.parametrize("readme", READMES, ids=str)
def test_tables_of_files_name_files_of_their_folder(readme: Path) -> None:
    cells = re.findall(r"^\| (`[^|]*)\|", (ROOT / readme).read_text(), re.MULTILINE)
    named = [it for cell in cells for it in re.findall(r"`([\w./-]+\.py)`", cell)]
    folders = ROOT, (ROOT / readme).parent
    assert [it for it in named if not any((to / it).exists() for to in folders)] == []


def test_readme_stays_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 110


@pytest.mark.parametrize("name", sorted(graphsys.__all__))
def test_public_names_resolve_and_are_documented(name: str, run_python: Run) -> None:
    code = f"import graphsys; thing = graphsys.{name}; print(bool(thing.__doc__))"
    done = run_python(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True\n"


def test_scripts_named_in_the_readme_can_be_run() -> None:
    text = (ROOT / "README.md").read_text()
    for name in set(re.findall(r"\bscripts/[a-z/]+\b", text)):
        path = ROOT / name
        assert path.is_dir() or path.stat().st_mode & 0o111, name
