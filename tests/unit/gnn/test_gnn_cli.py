"""``train gnn``, ``evaluate`` and ``predict`` as a user types them, in this process."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pyarrow.csv
import pytest

from graphsys.storage import Graph
from tests.conftest import Call
from tests.unit.gnn.conftest import NUM_NODES, Store

SETTINGS = ("--set", "epochs=2", "--set", "dim=8", "--set", "batch_size=10")


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


def test_networks_are_asked_and_exported_as_embeddings_are(
    graph: Graph, tmp_path: Path, call: Call
) -> None:
    run = tmp_path / "run"
    links = ("--set", "task=link_prediction", "--set", "eval_every=0", *SETTINGS)
    assert call("train", "gnn", graph.path, "-o", run, *links)[0] == 0
    found = json.loads(call("nearest", run, "102", "-k", "3", "--json")[1])["neighbors"]
    assert len(found) == 3
    assert [it["score"] for it in found] == sorted(it["score"] for it in found)[::-1]
    some = tmp_path / "some.txt"
    some.write_text("102\n147\n")
    code, said, _ = call(
        "predict", run, "--top-k", "4", "--nodes", some, "-o", tmp_path / "r.csv", "--json"
    )
    facts = json.loads(said)
    assert (code, facts["num_queries"], facts["num_answers"]) == (0, 2, 8)
    table = pyarrow.csv.read_csv(tmp_path / "r.csv").to_pydict()
    assert table["head"] == [102] * 4 + [147] * 4
    assert table["rank"] == [1, 2, 3, 4] * 2
    assert call("export", run, "-o", tmp_path / "x.csv")[0] == 0
    rows = pyarrow.csv.read_csv(tmp_path / "x.csv")
    assert rows.column_names == ["id", *map(str, range(8))]
    assert rows.num_rows == NUM_NODES
    assert stat.S_IMODE((tmp_path / "x.csv").stat().st_mode) == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_what_networks_do_not_have_is_refused(
    graph: Graph, tmp_path: Path, call: Call
) -> None:
    run = tmp_path / "run"
    call("train", "gnn", graph.path, "-o", run, *SETTINGS)
    out = tmp_path / "x.csv"
    for arguments, message in (
        (("nearest", run, "100", "--index", "hnsw"), "--index hnsw is for runs of embed"),
        (("nearest", run, "100", "--node-type", "no"), "unknown node type 'no'"),
        (("nearest", run, "99999"), "node '99999' is not in the graph"),
        (("export", run, "-o", tmp_path / "x.xlsx"), "cannot export to 'x.xlsx'"),
        (("export", run, "-o", out, "--relation", "r"), "does not tell relations apart"),
        (
            ("export", run, "-o", out, "--relation-types", tmp_path / "r.tsv"),
            "--relation-types writes all of a run of embeddings",
        ),
        (("predict", run, "-o", out, "--top-k", "3"), "which has no links to predict"),
        (("predict", run, "-o", out, "--known", "mark"), "ask for them with --top-k"),
        (("evaluate", run, "--candidates", "9"), "--candidates is for runs of embeddings"),
        (
            ("predict", run, "-o", out, "--relation", "r"),
            "this run of model sage does not tell relations apart; leave it out",
        ),
    ):
        code, _, error = call(*arguments)
        assert code == 2, arguments
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
    text = page.read_text()
    assert 'id="epochs"' in text
    stages = sum(row["epoch"] == 1 for row in report["overlap"]["epochs"])
    assert text.count("epoch 1</td>") == batches // 2 + 1 + stages
    shown, _, measured = text.partition("<h2>Measured on this machine</h2>")
    assert "superstep" not in shown.partition("<body>")[2].lower()
    told, _, folded = measured.partition('<details id="unknown">')
    assert "Time in epochs" in told
    assert "superstep" not in told.lower()
    assert '<span class="soft">' not in told  # a figure of 0, or of none
    assert '<span class="soft">' in folded.partition("</details>")[0]
    assert metrics["kernel_invocations"] > batches
    assert metrics["work_per_invocation"] > 0
    operators = {row["name"]: row for row in report["operators"]}
    assert operators["forward"]["calls"] == operators["sample"]["calls"] == batches
    assert operators["gemm"]["flop"] > 0
    assert operators["gemm"]["limit_share"] > 0
    spmm = operators["sum_messages"]
    assert 0 < spmm["flop"] < 8 * spmm["bytes"]
