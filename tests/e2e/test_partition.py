"""``graphsys partition``, as a user would."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import Run

pytestmark = pytest.mark.e2e


@pytest.fixture
def graph(tmp_path: Path, run_cli: Run) -> Path:
    rng = np.random.default_rng(0)
    src = rng.integers(0, 400, 4000)
    near = src // 50 * 50 + rng.integers(0, 50, 4000)
    dst = np.where(rng.random(4000) < 0.9, near, rng.integers(0, 400, 4000))
    np.savetxt(tmp_path / "edges.txt", np.stack([src, dst], axis=1), fmt="%d")
    done = run_cli(
        "ingest", tmp_path / "edges.txt", "-o", tmp_path / "graph", "--undirected"
    )
    assert done.returncode == 0, done.stderr
    return tmp_path / "graph"


def test_a_graph_is_written_with_other_partitions(
    graph: Path, tmp_path: Path, run_cli: Run
) -> None:
    options = ("--partitioner", "reldg", "--partitions", "4", "--json")
    done = run_cli("partition", graph, "-o", tmp_path / "new", *options)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    wanted = {"edge_cut", "node_balance", "edge_balance", "replication_factor", "seconds"}
    assert wanted <= set(facts)
    assert facts["edge_cut"] < 0.3
    shown = json.loads(run_cli("info", tmp_path / "new", "--json").stdout)
    before = json.loads(run_cli("info", graph, "--json").stdout)
    assert shown["partitions"] == 4
    assert shown["num_edges"] == before["num_edges"]
    assert run_cli("verify", tmp_path / "new").returncode == 0


def test_methods_are_compared_without_writing(
    graph: Path, tmp_path: Path, run_cli: Run
) -> None:
    done = run_cli("partition", graph, "--partitions", "4", "--compare", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    cuts = {line["partitioner"]: line["edge_cut"] for line in found["methods"]}
    assert cuts["reldg"] < cuts["hash"]
    assert found["advice"]["embeddings"] in {"hash", "random", "range"}
    # the ids follow the groups, so even ranges of them are good
    assert cuts[found["advice"]["GNN sampling"]] < 0.2 < cuts["hash"]
    line = next(line for line in found["methods"] if line["partitioner"] == "hash")
    assert {"halo", "bucket_balance", "bucket_loads"} <= set(line)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "nothing to do"),
        (("--compare", "--partitions", "node=2"), "takes one count"),
        (("-o", "new", "--partitioner", "reldgg"), "did you mean 'reldg'"),
    ],
)
def test_mistakes_are_one_error_line(
    graph: Path, tmp_path: Path, run_cli: Run, options: tuple[str, ...], said: str
) -> None:
    done = run_cli("partition", graph, *options, cwd=tmp_path)
    assert done.returncode == 2
    line = next(line for line in done.stderr.splitlines() if said in line)
    assert line.startswith("error:")
    assert not (tmp_path / "new").exists()
