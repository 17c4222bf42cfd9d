"""Every verb as a user runs it: exit codes, JSON keys, what goes to which stream."""

import json
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pyarrow.parquet
import pytest

from tests.conftest import Run
from tests.e2e.conftest import answer

pytestmark = pytest.mark.e2e

INFO = {
    "num_nodes",
    "num_edges",
    "num_edges_by_split",
    "directed",
    "node_types",
    "edge_types",
    "partitions",
    "bytes_per_edge",
}
INGEST = INFO | {"duplicates", "self_loops", "seconds", "peak_memory_bytes"}
RANKS = {"mrr", "mr", "hits@1", "hits@3", "hits@10"}


def test_ingest_answers_with_its_counts(work: Path, run_cli: Run) -> None:
    source = work / "loops.txt"
    source.write_text("# three nodes\n1 2\n1 2\n2 2\n3 1\n")
    found = answer(run_cli("ingest", source, "-o", work / "loops", "--json"))
    assert set(found) == INGEST
    assert (found["num_nodes"], found["num_edges"], found["directed"]) == (3, 4, True)
    assert (found["duplicates"], found["self_loops"]) == (1, 1)
    assert found["num_edges_by_split"] == {"train": 4}
    assert found["node_types"] == {"node": 3}
    assert found["edge_types"] == {"edge": 4}
    assert found["partitions"] == 1
    for name in ("num_nodes", "num_edges", "duplicates", "self_loops", "peak_memory_bytes"):
        assert type(found[name]) is int


def test_ingest_options_clean_the_graph(work: Path, run_cli: Run) -> None:
    source = work / "unclean.txt"
    source.write_text("a,b\n1,2\n2,1\n2,2\n3,1\n")
    options = ["--format", "csv", "--skip", "1", "--columns", "src,dst", "--undirected"]
    options += ["--coalesce", "--drop-self-loops", "--partitions", "node=3"]
    out = work / "clean"
    found = answer(run_cli("ingest", source, "-o", out, *options, "--json"))
    assert (found["num_nodes"], found["num_edges"], found["directed"]) == (3, 2, False)
    assert (found["duplicates"], found["self_loops"], found["partitions"]) == (1, 1, 3)


def test_info_shows_what_ingest_wrote(small_graph: Path, run_cli: Run) -> None:
    found = answer(run_cli("info", small_graph, "--json"))
    assert set(found) >= INFO
    assert (found["num_nodes"], found["num_edges"], found["partitions"]) == (60, 60, 2)
    assert type(found["partitions"]) is int
    assert found["bytes_per_edge"] > 0


def test_info_for_people_is_neither_wrapped_nor_colored(
    small_graph: Path, run_cli: Run
) -> None:
    done = run_cli("info", small_graph)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    assert any(line.split()[:2] == ["nodes", "60"] for line in done.stdout.splitlines())


def test_verify_finds_nothing_in_a_sound_graph(small_graph: Path, run_cli: Run) -> None:
    assert answer(run_cli("verify", small_graph, "--json")) == {"ok": True, "problems": []}


def test_verify_names_the_altered_file_and_exits_with_1(
    small_graph: Path, tmp_path: Path, run_cli: Run
) -> None:
    copy = tmp_path / "altered"
    shutil.copytree(small_graph, copy)
    victim = max(copy.rglob("bucket-*.arrow"), key=lambda path: path.stat().st_size)
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.write_bytes(content)
    name = str(victim.relative_to(copy))
    done = run_cli("verify", copy, "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 1
    assert found["ok"] is False
    assert [set(problem) for problem in found["problems"]] == [{"file", "what"}]
    assert found["problems"][0]["file"] == name
    plain = run_cli("verify", copy)
    assert plain.returncode == 1
    assert plain.stdout.startswith(f"{name}: ")
    assert plain.stdout.count("\n") == 1


def test_dataset_list_and_show(run_cli: Run) -> None:
    listed = run_cli("dataset", "list")
    assert listed.returncode == 0, listed.stderr
    names = {line.split("\t")[0] for line in listed.stdout.splitlines()[1:]}
    assert names >= {"demo", "fb15k237", "wn18rr", "cora", "citeseer", "rmat"}
    assert {
        entry["name"] for entry in answer(run_cli("dataset", "list", "--json"))["datasets"]
    }
    assert answer(run_cli("dataset", "show", "fb15k237", "--json"))["name"] == "fb15k237"
    assert "fb15k237" in run_cli("dataset", "show", "fb15k237").stdout


def test_demo_graph_has_the_types_it_promises(demo_graph: Path, run_cli: Run) -> None:
    found = answer(run_cli("info", demo_graph, "--json"))
    assert set(found["node_types"]) == {"user", "item", "category"}
    assert {"train", "valid", "test"} <= set(found["num_edges_by_split"])
    assert found["num_edges"] == found["num_edges_by_split"]["train"]


def test_train_evaluate_nearest_export(
    demo_graph: Path, demo_run: Path, tmp_path: Path, run_cli: Run
) -> None:
    found = answer(run_cli("evaluate", demo_run, "--json"))
    assert set(found) == {"split", "metrics"}
    assert found["split"] == "test"
    assert set(found["metrics"]) >= RANKS | {"unfiltered"}
    assert set(found["metrics"]["unfiltered"]) >= RANKS
    assert 0 < found["metrics"]["unfiltered"]["mrr"] <= found["metrics"]["mrr"] <= 1
    assert answer(run_cli("evaluate", demo_run, "--split", "valid", "--json"))["split"] == (
        "valid"
    )

    emb = tmp_path / "emb.parquet"
    assert answer(run_cli("export", demo_run, "-o", emb, "--json"))["output"] == str(emb)
    table = pyarrow.parquet.read_table(emb)
    graph = answer(run_cli("info", demo_graph, "--json"))
    assert table.num_rows == graph["num_nodes"]
    again = run_cli("export", demo_run, "-o", emb)
    assert again.returncode == 2
    assert again.stderr.startswith("error: ")

    node = table.column("id")[0].as_py()
    neighbors = answer(run_cli("nearest", demo_run, node, "-k", "3", "--json"))["neighbors"]
    assert [set(neighbor) for neighbor in neighbors] == [{"id", "score"}] * 3
    assert node not in [neighbor["id"] for neighbor in neighbors]
    assert run_cli("nearest", demo_run, node, "-k", "3").stdout.startswith("id\tscore\n")


def test_evaluate_tells_where_a_run_is_good(demo_run: Path, run_cli: Run) -> None:
    sampled = ["evaluate", demo_run, "--queries", "60", "--candidates", "50"]
    metrics = answer(run_cli(*sampled, "--draw", "degree", "--seed", "3", "--json"))[
        "metrics"
    ]
    assert set(metrics) >= {
        "by_category",
        "by_degree",
        "by_relation",
        "candidates",
        "confidence",
        "head",
        "num_queries",
        "roc_auc",
        "tail",
    }
    assert metrics["candidates"] == {"num": 50, "draw": "degree", "seed": 3}
    assert metrics["num_queries"] == 60
    assert sum(some["num_queries"] for some in metrics["by_relation"].values()) == 60
    low, high = metrics["confidence"]["mrr"]
    assert low < metrics["mrr"] < high
    shown = run_cli(*sampled).stdout
    assert "metric\tfiltered\t95% interval\thead\ttail\tunfiltered\n" in shown
    assert "\nrelation\tqueries\tmrr" in shown


def test_predict_writes_the_best_answers(
    demo_run: Path, tmp_path: Path, run_cli: Run
) -> None:
    relations = answer(run_cli("evaluate", demo_run, "--json"))["metrics"]["by_relation"]
    relation, out = next(iter(relations)), tmp_path / "out.parquet"
    options = ["--relation", relation, "-k", "3", "-o", out]
    found = answer(run_cli("predict", demo_run, *options, "--json"))
    assert set(found) == {"output", "num_queries", "num_answers", "known_splits", "seconds"}
    table = pyarrow.parquet.read_table(out)
    assert table.column_names == ["query", "rank", "head", "relation", "tail", "score"]
    assert table.num_rows == found["num_answers"] == 3 * found["num_queries"]
    heads = tmp_path / "heads.txt"
    some = table.column("head").unique().to_pylist()[:2]
    heads.write_text("".join(f"{head}\n" for head in some))
    assert run_cli("predict", demo_run, *options, "--nodes", heads).returncode == 2
    again = run_cli("predict", demo_run, *options, "--nodes", heads, "--overwrite")
    assert again.returncode == 0, again.stderr
    assert "6 answers to 2 questions" in again.stderr
    assert pyarrow.parquet.read_table(out).column("head").unique().to_pylist() == some


def test_nearest_by_an_index(demo_run: Path, run_cli: Run) -> None:
    node = "user-00001"
    options = ["nearest", demo_run, node, "--node-type", "user", "-k", "3", "--json"]
    exact = answer(run_cli(*options))["neighbors"]
    found = answer(run_cli(*options, "--index", "hnsw"))["neighbors"]
    assert len(found) == 3
    assert {one["id"] for one in exact} & {one["id"] for one in found}
    assert (demo_run / "indexes" / "user.hnsw.faiss").exists()


def test_train_answers_with_run_epochs_and_speed(
    demo_graph: Path, tmp_path: Path, run_cli: Run
) -> None:
    out = tmp_path / "run"
    options = ["--preset", "demo-complex", "--set", "epochs=1", "--set", "dim=8"]
    command = ["train", "embedding", demo_graph, "-o", out, *options]
    dry = run_cli(*command, "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert not out.exists()
    done = run_cli(*command, "--json")
    found = answer(done)
    assert set(found) == {"run", "epochs", "seconds", "edges_per_second", "metrics"}
    assert (found["run"], found["epochs"]) == (str(out), 1)
    assert found["edges_per_second"] > 0
    again = run_cli(*command)
    assert again.returncode == 2
    assert "--overwrite" in again.stderr or "--resume" in again.stderr
    assert run_cli(*command, "--overwrite", "--device", "cpu").returncode == 0

    resumed = run_cli(*command[:5], "--resume", "--json")  # with the run's own settings
    assert answer(resumed)["epochs"] == 1
    other = run_cli(*command[:5], "--resume", "--set", "dim=16")
    assert other.returncode == 2
    assert "dim: 8 -> 16" in other.stderr
    elsewhere = run_cli(*command, "--overwrite", "--device", "tpu")
    assert elsewhere.returncode == 2
    assert elsewhere.stderr.startswith("error: --device")


def test_doctor_describes_the_machine(run_cli: Run) -> None:
    found = answer(run_cli("doctor", "--json"))
    assert found["cpu"]["usable_cores"] >= 1
    assert found["memory"]["total_bytes"] > 0
    assert found["gpu"]["devices"] or found["gpu"]["reason"]
    assert found["packages"]["torch"]["version"]
    assert "CPU" in run_cli("doctor").stdout


def test_version_and_bare_command(run_cli: Run) -> None:
    assert run_cli("--version").stdout.startswith("graphsys 0.")
    bare = run_cli()
    assert bare.returncode == 0
    assert "ingest" in bare.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["ingest"],
        ["ingest", "x.txt"],
        ["info"],
        ["info", "--nonsense", "g"],
        ["nearest", "run", "node", "-k", "none"],
        ["dataset"],
        ["train"],
    ],
)
def test_usage_errors_are_one_line_and_exit_with_2(
    run_cli: Run, arguments: list[str]
) -> None:
    done = run_cli(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: ")
    assert "--help" in done.stderr


def test_debug_shows_the_traceback(tmp_path: Path, run_cli: Run) -> None:
    done = run_cli("info", tmp_path / "none", "--debug")
    assert done.returncode != 0
    assert "Traceback" in done.stderr


def test_closed_pipe_ends_quietly(graphsys_command: str) -> None:
    script = f"{graphsys_command} ingest --help | head -n 1"
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.startswith("Usage:")
    assert done.stderr == ""


def test_ctrl_c_ends_with_130_and_leaves_nothing(
    tmp_path: Path, graphsys_command: str
) -> None:
    source = tmp_path / "edges.txt"
    source.write_text("".join(f"{n} {n * 7919 % 1_000_003}\n" for n in range(2_000_000)))
    out = tmp_path / "graph"
    command = [graphsys_command, "ingest", str(source), "-o", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not list(out.glob("gen-*")):  # once it writes
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    printed, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert printed == b""
    assert b"Traceback" not in errors
    assert [path.name for path in tmp_path.iterdir()] == ["edges.txt"]


def test_progress_goes_to_stderr_only(work: Path, edges_file: Path, run_cli: Run) -> None:
    done = run_cli("ingest", edges_file, "-o", work / "quiet", "--json")
    assert answer(done)
    assert "\x1b" not in done.stderr


def test_what_stdout_cannot_show_is_escaped(
    tmp_path: Path, run_cli: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "edges.txt").write_text("\u00e9 \u00fc\n", encoding="utf-8")
    assert run_cli("ingest", tmp_path / "edges.txt", "-o", tmp_path / "g").returncode == 0
    options = ["--set", "epochs=1", "--set", "dim=2"]
    run = tmp_path / "run"
    done = run_cli("train", "embedding", tmp_path / "g", "-o", run, *options)
    assert done.returncode == 0, done.stderr
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    shown = run_cli("nearest", run, "\u00e9")
    assert shown.stdout.splitlines()[1].startswith("\\xfc\t")
    found = answer(run_cli("nearest", run, "\u00e9", "--json"))
    assert found["neighbors"][0]["id"] == "\u00fc"


def test_a_name_that_is_no_text_is_refused(tmp_path: Path, run_cli: Run) -> None:
    (tmp_path / "edges.txt").write_text("1 2\n")
    out = tmp_path / "\udcff"
    refused = run_cli("ingest", tmp_path / "edges.txt", "-o", out)
    assert refused.returncode == 2
    assert refused.stderr.count("error: ") == 1
    assert "not UTF-8" in refused.stderr
    assert not out.exists()
