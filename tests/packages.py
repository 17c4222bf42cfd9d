"""Packages of others, as an installer leaves them, out of a README's example."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from tests import warm_command
from tests.conftest import ROOT


def block(text: str, language: str) -> str:
    """Return the first block of a language in Markdown."""
    found = re.search(rf"```{language}\n(.*?)```", text, re.DOTALL)
    assert found is not None
    return found[1]


def install(folder: Path, readme: str, heading: str) -> None:
    """Install the package that a section of a README has a file and a project of."""
    text = (ROOT / readme).read_text()
    section = text[text.index(f"## {heading}") :]
    meta = tomllib.loads(block(section, "toml"))["project"]
    module = meta["name"].replace("-", "_")
    (folder / f"{module}.py").write_text(block(section, "python"))
    describe(folder, meta["name"], meta["entry-points"], meta["version"])


def describe(
    folder: Path, name: str, points: dict[str, dict[str, str]], version: str = "1.0"
) -> None:
    """Write what an installer says of a package."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    )
    lines = [
        f"[{group}]\n" + "\n".join(f"{key} = {value}" for key, value in found.items())
        for group, found in points.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))


def run(site: Path, *arguments: str, code: int = 0, is_there: bool = True) -> str:
    """Run a command that finds the folder's packages, or not."""
    packages = site if is_there else None
    done = warm_command.shared()(arguments, site, 300, packages)
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout


def run_contracts(site: Path) -> str:
    """Run ``test_contracts.py`` of the folder as its author does; return what it prints."""
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_contracts.py")
    done = subprocess.run(
        [sys.executable, "-P", *words],
        capture_output=True,
        text=True,
        cwd=site,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": str(site)},
    )
    assert done.returncode == 0, done.stdout
    return done.stdout
