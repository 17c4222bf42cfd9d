"""``graphsys mine --memory``: what keeps more than rows stays within what it names."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.core.memory import parse_bytes
from graphsys.storage import EdgeChunk
from tests.conftest import Run
from tests.e2e.test_memory import SLACK, peak_of
from tests.stores import make_store

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def graph(tmp_path_factory: Any) -> Path:
    """Return a store of 2,000 nodes, each with an edge to one in twelve of the others."""
    folder: Path = tmp_path_factory.mktemp("mine") / "graph"
    src, dst = np.triu_indices(2000, 1)
    taken = np.random.default_rng(0).random(len(src)) < 0.08
    make_store(folder, EdgeChunk(src=src[taken], dst=dst[taken]), partitions=2)
    return folder


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(("--motifs", "5"), id="5 nodes"),
        pytest.param(
            ("--motifs", "4", "--per-edge", "-o"), id="edges", marks=pytest.mark.slow
        ),
        pytest.param(("--pattern", "a>b b>c c>a"), id="arrows", marks=pytest.mark.slow),
    ],
)
def test_the_least_that_is_named_is_kept(
    options: tuple[str, ...],
    graph: Path,
    tmp_path: Path,
    run_installed: Run,
    graphsys_command: str,
) -> None:
    out = [tmp_path / "out.parquet"] if "-o" in options else []
    words = ("mine", graph, *options, *out, "--json")
    refused = run_installed(*words, "--memory", "60MB")
    assert refused.returncode == 2
    [line] = refused.stderr.splitlines()
    assert re.match(r"error: memory: mining on 2000 nodes and \d+ edges needs ", line)
    named = re.search(r"give --memory (\d+MB)", line)
    assert named is not None, line
    assert not out or not out[0].exists()
    peak, found = peak_of(graphsys_command, *words, "--memory", named[1])
    assert peak <= parse_bytes(named[1]) + SLACK, f"{peak / 1e6:.0f} MB"
    free = json.loads(run_installed(*words, *(["--overwrite"] if out else [])).stdout)
    same = ("counts", "rows", "induced")
    assert {k: v for k, v in json.loads(found).items() if k in same} == {
        k: v for k, v in free.items() if k in same
    }
