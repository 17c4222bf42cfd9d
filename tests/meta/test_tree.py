"""The top level holds what architecture says and nothing else."""

import subprocess

from tests.conftest import ROOT

TOP = {
    "pyproject.toml", "constraints.txt", "README.md", "LICENSE", "CHANGELOG.md",
    "DEVELOPERS.md", "graphsys", "datasets", "partitioners", "tests", "scripts",
    ".ci", ".gitignore", ".pre-commit-config.yaml",
}  # fmt: skip


def test_the_top_level_is_the_agreed_one() -> None:
    if not (ROOT / ".git").exists():
        found = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")}
        found -= {"graphsys.egg-info", "build", "dist"}
        assert found <= TOP
        return
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert {name.split("/")[0] for name in listed.stdout.splitlines()} == TOP
