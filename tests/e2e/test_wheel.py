"""A wheel built of the tree has all that the tree has, and works where there is no tree."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.e2e
_LEFT_OUT = (".md",)
_LOOK = """
import sys, graphsys
from graphsys.embedding.config import load_config as embeddings, preset_names as of_those
from graphsys.gnn.config import load_config as networks, preset_names as of_these
from graphsys.datasets import generators
print(graphsys.__file__)
print(sum(embeddings(preset=name).dim > 0 for name in of_those()))
print(sum(networks(preset=name).dim > 0 for name in of_these()))
"""


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the wheel's content alone."""
    folder = tmp_path_factory.mktemp("content") / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def alone(site: Path, *words: object) -> str:
    """Run Python with the wheel's content before all else, in a folder of its own."""
    done = subprocess.run(
        [sys.executable, "-P", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        cwd=site.parent,
        env=os.environ | {"PYTHONPATH": str(site)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_file_of_the_package_is_in_the_wheel(site: Path) -> None:
    package = ROOT / "graphsys"
    rooms = {
        package: "",
        ROOT / "datasets": "datasets",
        ROOT / "partitioners": "partitioners",
    }
    expected = {
        str(Path(below) / path.relative_to(folder))
        for folder, below in rooms.items()
        for path in folder.rglob("*")
        if path.is_file()
        and path.suffix not in _LEFT_OUT
        and "__pycache__" not in path.parts  # what was compiled, and its locks
    }
    found = site / "graphsys"
    names = {str(path.relative_to(found)) for path in found.rglob("*") if path.is_file()}
    assert names == expected
    tops = {path.name for path in site.iterdir() if ".dist-info" not in path.name}
    assert tops == {"graphsys"}  # nothing called datasets lies beside it


def test_a_wheel_works_without_the_tree(site: Path) -> None:
    where, *counts = alone(site, "-c", _LOOK).splitlines()
    assert Path(where).is_relative_to(site)
    presets = [ROOT / "graphsys" / room / "presets" for room in ("embedding", "gnn")]
    assert [int(count) for count in counts] == [
        len(list(p.glob("*.toml"))) for p in presets
    ]
    listed = json.loads(alone(site, "-m", "graphsys", "dataset", "list", "--json"))
    recipes = (ROOT / "datasets" / "recipes").glob("*.toml")
    assert len(next(iter(listed.values()))) >= len(list(recipes))
    alone(site, "-m", "graphsys", "--help")
