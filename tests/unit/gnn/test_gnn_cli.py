"""``train gnn``, ``evaluate`` and ``predict`` as a user types them, in this process."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.csv
import pytest

from graphsys.cli import main as cli
from graphsys.storage import Graph
from tests.unit.gnn.conftest import NUM_NODES, Store

Call = Callable[..., tuple[int, str, str]]
SETTINGS = ("--set", "epochs=2", "--set", "dim=8", "--set", "batch_size=10")


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Return a function that runs the command and gives code, stdout and stderr."""

    def run(*arguments: object) -> tuple[int, str, str]:
        code = cli.main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture
def graph(groups: Store) -> Graph:
    return groups(2)


def test_json_of_train_evaluate_and_predict(
    graph: Graph, tmp_path: Path, call: Call
) -> None:
    run, out = tmp_path / "run", tmp_path / "classes.csv"
    code, said, _ = call("train", "gnn", graph.path, "-o", run, *SETTINGS, "--json")
    report = json.loads(said)
    assert code == 0
    assert set(report) == {"run", "epochs", "seconds", "edges_per_second", "metrics"}
    assert report["epochs"] == 2
    found = json.loads(call("evaluate", run, "--json")[1])
    assert found["split"] == "test"
    assert {"accuracy", "f1_micro", "f1_macro"} <= found["metrics"].keys()
    assert call("evaluate", run, "--split", "valid")[1].startswith("split")
    said = call("predict", run, "-o", out, "--json")[1]
    assert json.loads(said)["num_nodes"] == NUM_NODES
    assert pyarrow.csv.read_csv(out).column_names == ["id", "prediction", "probability"]


@pytest.mark.parametrize("name", ["some.txt", "some.csv"])
def test_predict_for_some_nodes(
    graph: Graph, tmp_path: Path, call: Call, name: str
) -> None:
    run, out, some = tmp_path / "run", tmp_path / "out.csv", tmp_path / name
    call("train", "gnn", graph.path, "-o", run, *SETTINGS)
    some.write_text("102\n147\n" if name.endswith("txt") else "id,other\n102,1\n147,2\n")
    assert call("predict", run, "--nodes", some, "-o", out)[0] == 0
    assert pyarrow.csv.read_csv(out)["id"].to_pylist() == [102, 147]


def test_resume_and_overwrite(graph: Graph, tmp_path: Path, call: Call) -> None:
    run = tmp_path / "run"
    train = ("train", "gnn", graph.path, "-o", run, "--json")
    assert call(*train, *SETTINGS)[0] == 0
    code, _, said = call(*train, *SETTINGS)
    assert code == 2
    assert "continue it with --resume or replace it with --overwrite" in said
    assert json.loads(call(*train, "--resume")[1])["epochs"] == 2
    code, _, said = call(*train, "--resume", "--set", "dim=16")
    assert code == 2
    assert "has other settings (dim: 8 -> 16)" in said
    assert call(*train, *SETTINGS, "--overwrite")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--preset", "cora"), "error: unknown preset 'cora'; known: "),
        (("--set", "fanout=[3]"), "error: settings: unknown key 'fanout'; did you mean"),
        (("--device", "tpu"), "error: --device: got 'tpu', expected cpu or cuda"),
        (("--memory", "1MB"), "error: memory: the training takes about "),
        (("--set", "label=y"), "error: task node_classification: no node type of "),
    ],
)
def test_bad_input_is_one_line(
    graph: Graph, tmp_path: Path, call: Call, arguments: Any, message: str
) -> None:
    out = ("-o", tmp_path / "run")
    code, said, error = call("train", "gnn", graph.path, *out, *arguments)
    assert (code, said) == (2, "")
    assert error.splitlines()[-1].startswith(message)
    assert not (tmp_path / "run").exists()


def test_dry_run_is_told_in_words(graph: Graph, tmp_path: Path, call: Call) -> None:
    said = call("train", "gnn", graph.path, "-o", tmp_path / "run", "--dry-run")[1]
    assert "peak memory" in said
    assert "batches per epoch" in said
    assert not (tmp_path / "run").exists()


def test_verbs_of_embeddings_refuse_networks(
    graph: Graph, tmp_path: Path, call: Call
) -> None:
    run = tmp_path / "run"
    call("train", "gnn", graph.path, "-o", run, *SETTINGS)
    for arguments, message in (
        (("nearest", run, "100"), "is a run of a graph neural network; write what it"),
        (("export", run, "-o", tmp_path / "x.npy"), "is a run of a graph neural network"),
        (("evaluate", run, "--candidates", "9"), "--candidates is for runs of embeddings"),
        (
            ("predict", run, "-o", tmp_path / "x.csv", "--relation", "r"),
            "this run of model sage does not tell relations apart; leave it out",
        ),
    ):
        code, _, error = call(*arguments)
        assert code == 2
        assert message in error


@pytest.mark.usefixtures("slow_batches")
@pytest.mark.parametrize(("prefetch", "low", "high"), [(0, 0.0, 0.0), (4, 0.3, 1.0)])
def test_a_profile_tells_the_overlap_that_the_training_tells(
    graph: Graph, tmp_path: Path, call: Call, prefetch: int, low: float, high: float
) -> None:
    page = tmp_path / "r.html"
    changes = ("--set", f"prefetch={prefetch}", "--set", "batch_size=5", "--json")
    words = ("train", "gnn", graph.path, "-o", tmp_path / "run", *SETTINGS, *changes)
    code, said, _ = call("profile", "-o", page, "--level", "L0", "--", *words)
    assert code == 0
    report = json.loads(page.with_suffix(".json").read_text())
    told = {metric["name"]: metric["value"] for metric in report["metrics"]}
    assert low <= told["overlap_alpha"] <= high
    of_run = json.loads(said)["metrics"]["overlap_alpha"]
    assert told["overlap_alpha"] == pytest.approx(of_run, abs=0.1)


def test_a_training_is_profiled(graph: Graph, tmp_path: Path, call: Call) -> None:
    page = tmp_path / "r.html"
    words = ("train", "gnn", graph.path, "-o", tmp_path / "run", *SETTINGS, "--json")
    code, said, _ = call("profile", "-o", page, "--", *words)
    assert code == 0
    facts = json.loads(said)
    report = json.loads(page.with_suffix(".json").read_text())
    metrics = {metric["name"]: metric["value"] for metric in report["metrics"]}
    batches = facts["metrics"]["batches"]
    assert metrics["supersteps"] == len(report["supersteps"]) == batches
    assert {step["phase"] for step in report["supersteps"]} == {"epoch 1", "epoch 2"}
    assert metrics["kernel_invocations"] > batches
    assert metrics["work_per_invocation"] > 0
    operators = {row["name"]: row for row in report["operators"]}
    assert operators["forward"]["calls"] == operators["sample"]["calls"] == batches
    assert operators["gemm"]["flop"] > 0
    assert operators["gemm"]["limit_share"] > 0
    spmm = operators["sum_messages"]
    assert 0 < spmm["flop"] < 8 * spmm["bytes"]
