"""What is asked of a run keeps ``--memory``, or is refused with what is enough."""

import re
from pathlib import Path

import pytest

from graphsys.core.memory import parse_bytes
from graphsys.datasets import recipes
from tests.conftest import Run
from tests.e2e.test_memory import SLACK, peak_of
from tests.marks import slow_but

pytestmark = pytest.mark.e2e

NUM_NODES, DIM = 1 << 16, 1024
EMBEDDING = {
    "dim": DIM,
    "row_dtype": "float16",
    "epochs": 1,
    "batch_size": 500,
    "threads": 2,
    "num_batch_negatives": 10,
    "num_uniform_negatives": 10,
    "checkpoint_seconds": 600,
    "eval_fraction": 0.02,
}
NETWORK = {"model": "sage", "dim": 256, "epochs": 1, "eval_every": 0}
BUDGET = "200MB"
ASKED = {
    "evaluate": ("evaluate", "{run}", "--split", "held_out", "--candidates", "500"),
    "predict": ("predict", "{run}", "--nodes", "{nodes}", "-o", "{out}"),
    "nearest": ("nearest", "{run}", "1"),
    "export": ("export", "{run}", "-o", "{out}"),
}
OF_NETWORKS = {
    "evaluate": ("evaluate", "{run}"),
    "export": ("export", "{run}", "-o", "{out}"),
}


def settings(values: dict[str, object]) -> list[str]:
    """Return settings as the command line takes them."""
    return [word for n, value in values.items() for word in ("--set", f"{n}={value}")]


@pytest.fixture(scope="module")
def embeddings(tmp_path_factory: pytest.TempPathFactory, run_installed: Run) -> Path:
    """Return a run whose rows take 268 MB as they are computed with."""
    work = tmp_path_factory.mktemp("use")
    recipes.build("rmat", work / "graph", scale=16, edge_factor=1, partitions=2)
    words = ["train", "embedding", work / "graph", "-o", work / "run"]
    assert run_installed(*words, *settings(EMBEDDING)).returncode == 0
    return work / "run"


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory, run_installed: Run) -> Path:
    """Return a run of a graph neural network whose rows are many."""
    work = tmp_path_factory.mktemp("use")
    recipes.build("planted", work / "graph", num_nodes=1 << 16, dim=16)
    words = ["train", "gnn", work / "graph", "-o", work / "run"]
    assert run_installed(*words, *settings(NETWORK)).returncode == 0
    return work / "run"


def words_of(parts: tuple[str, ...], run: Path, out: Path) -> list[str]:
    """Return a command with its files."""
    nodes = run.parent / "nodes.txt"
    if "{nodes}" in parts:
        import graphsys

        with graphsys.open(run.parent / "graph") as graph:
            ids = graph.node_ids(graph.node_types[0])[:200].to_pylist()
        nodes.write_text("".join(f"{name}\n" for name in ids))
    return [part.format(run=run, out=out, nodes=nodes) for part in parts]


def amount_of(said: str) -> str:
    """Return the amount that a refusal names, of the one line that it is."""
    assert said.startswith("error: memory: ")
    assert said.count("\n") == 1
    named = re.search(r"--memory (\d+MB)", said)
    assert named is not None, said
    return named[1]


@pytest.mark.parametrize("verb", slow_but(["evaluate"], ASKED))
def test_questions_to_embeddings_keep_the_budget(
    embeddings: Path, tmp_path: Path, run_installed: Run, graphsys_command: str, verb: str
) -> None:
    assert parse_bytes(BUDGET) + SLACK < 4 * DIM * NUM_NODES  # of all rows
    words = words_of(ASKED[verb], embeddings, tmp_path / "out.parquet")
    refused = run_installed(*words, "--memory", "20MB")
    assert refused.returncode == 2
    enough = amount_of(refused.stderr)
    assert parse_bytes(enough) <= parse_bytes(BUDGET)
    peak, _ = peak_of(graphsys_command, *words, "--memory", BUDGET)
    assert peak <= parse_bytes(BUDGET) + SLACK
    again = [word.replace("out.parquet", "again.parquet") for word in words]
    peak, _ = peak_of(graphsys_command, *again, "--memory", enough)
    assert 0.75 * parse_bytes(enough) <= peak <= parse_bytes(enough) + SLACK


@pytest.mark.parametrize("verb", slow_but(["evaluate"], OF_NETWORKS))
def test_questions_to_networks_keep_the_budget(
    network: Path, tmp_path: Path, run_installed: Run, graphsys_command: str, verb: str
) -> None:
    words = words_of(OF_NETWORKS[verb], network, tmp_path / "out.parquet")
    refused = run_installed(*words, "--memory", "100MB")
    assert refused.returncode == 2
    enough = amount_of(refused.stderr)
    peak, _ = peak_of(graphsys_command, *words, "--memory", enough)
    assert 0.7 * parse_bytes(enough) <= peak <= parse_bytes(enough) + SLACK
