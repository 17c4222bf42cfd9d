"""The package of the guide: found by its entry point, used, and keeping the contract."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.conftest import ROOT

GUIDE = (ROOT / "scripts/documenting/pages/guides/partitioners.md").read_text()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that holds the guide's package as an installer would leave it."""
    folder = tmp_path_factory.mktemp("site")
    (project,) = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
    module, contract = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    meta = tomllib.loads(project)["project"]
    points = meta["entry-points"]
    points["graphsys.partitioners"] |= {
        "wrong": "two_halves:np",
        "gone": "no_such_module:Thing",
    }
    lines = [f"Metadata-Version: 2.1\nName: {meta['name']}\nVersion: {meta['version']}\n"]
    info = folder / "two_halves-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(lines[0])
    (info / "entry_points.txt").write_text(
        "\n".join(
            f"[{group}]\n" + "\n".join(f"{name} = {value}" for name, value in found.items())
            for group, found in points.items()
        )
    )
    (folder / "two_halves.py").write_text(module)
    (folder / "test_two_halves.py").write_text(contract)
    return folder


def run(site: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-P", *command],
        capture_output=True,
        text=True,
        cwd=site,
        env={**os.environ, "PYTHONPATH": str(site)},
        timeout=120,
        check=False,
    )


def test_the_package_keeps_the_contract(site: Path) -> None:
    done = run(site, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_two_halves.py")
    assert done.returncode == 0, done.stdout
    assert "6 passed" in done.stdout


def test_the_package_is_found_and_broken_ones_are_named(site: Path) -> None:
    code = """if True:
        import graphsys as gs, numpy as np
        from graphsys.partitioners import partitioner_names
        print(*partitioner_names())
        edges = np.random.default_rng(0).integers(0, 50, (300, 2))
        src, dst = edges.T
        with gs.ingest((src, dst), "g", partitioner="halves", partitions=2).graph as graph:
            print(graph.manifest.partitioning["method"], graph.num_partitions("node"))
        gs.ingest((src, dst), "h", partitioner="halvse", partitions=2)
    """
    done = run(site, "-c", code)
    names, used = done.stdout.splitlines()
    assert "halves" in names.split()
    assert not {"wrong", "gone"} & set(names.split())
    assert used == "halves 2"
    assert "plug-in 'gone' (no_such_module:Thing) is broken" in done.stderr
    assert "plug-in 'wrong' (two_halves:np) is broken: ConfigError" in done.stderr
    assert "unknown partitioner 'halvse'" in done.stderr
    assert "did you mean 'halves'?" in done.stderr
