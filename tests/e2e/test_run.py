"""``graphsys run``, as a user would."""

import json
import shutil
import subprocess
from pathlib import Path

import networkx as nx
import pyarrow.parquet
import pytest

from tests.conftest import Run

pytestmark = pytest.mark.e2e

EDGES = [(1, 2, 4.0), (1, 3, 1.0), (3, 2, 2.0), (2, 4, 5.0), (10, 11, 1.0), (11, 10, 1.0)]
PROGRAM = """
import numpy as np
import graphsys as gs


class ShortestPaths(gs.VertexProgram):
    source: gs.NodeId
    distance = gs.state("float64", default=np.inf)
    combine = gs.minimum

    def start(self, graph):
        return {self.source: {"distance": 0.0}}

    def message(self, src, edge):
        return src.distance + edge.weight

    def update(self, node, message):
        return min(node.distance, message)
"""
BROKEN = PROGRAM.replace("src.distance + edge.weight", "src.lenght + edge.weight")


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory, run_cli: Run) -> Path:
    folder = tmp_path_factory.mktemp("ingested")
    lines = [f"{src} {dst} {weight}" for src, dst, weight in EDGES]
    (folder / "edges.txt").write_text("\n".join(lines))
    done = run_cli("ingest", folder / "edges.txt", "-o", folder / "graph")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def graph(tmp_path: Path, ingested: Path) -> Path:
    shutil.copytree(ingested, tmp_path, dirs_exist_ok=True)
    return tmp_path / "graph"


def values(path: Path) -> dict[int, object]:
    table = pyarrow.parquet.read_table(path)
    assert table.column_names == ["id", "value"]
    return dict(zip(*(column.to_pylist() for column in table.columns), strict=True))


def distances() -> dict[int, float | None]:
    oracle = nx.DiGraph()
    oracle.add_weighted_edges_from(EDGES)
    found = nx.single_source_dijkstra_path_length(oracle, 1)
    return {node: found.get(node) for node in oracle}


def test_an_algorithm_writes_a_value_per_node(
    graph: Path, tmp_path: Path, run_cli: Run
) -> None:
    out = tmp_path / "d.parquet"
    done = run_cli("run", "sssp", graph, "-o", out, "--param", "source=1", "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    keys = {"algorithm", "supersteps", "seconds", "compile_seconds", "converged", "output"}
    assert set(facts) == keys
    assert (facts["algorithm"], facts["output"]) == ("sssp", str(out))
    assert values(out) == distances()


def test_an_answer_needs_no_file(graph: Path, run_cli: Run) -> None:
    done = run_cli("run", "wcc", graph, "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["result"], facts["output"]) == (2, None)
    done = run_cli("run", "pagerank", graph, "--json")
    assert done.returncode == 2
    assert "name a file with --out" in done.stderr


def test_without_a_file_the_first_rows_are_shown(graph: Path, run_cli: Run) -> None:
    done = run_cli("run", "sssp", graph, "--param", "source=1")
    assert done.returncode == 0, done.stderr
    facts, _, table = done.stdout.partition("\n\n")
    assert "sssp" in facts
    rows = [line.split("\t") for line in table.splitlines()]
    assert rows == [
        ["id", "value"],
        ["1", "0.0"],
        ["3", "1.0"],
        ["2", "3.0"],
        ["4", "8.0"],
        ["10", ""],
        ["11", ""],
    ]
    assert "6 of 6 rows, smallest value first; all of them: -o FILE" in done.stderr


def test_a_path_that_is_not_there_is_said(graph: Path, run_cli: Run) -> None:
    ends = ("--param", "source=1", "--param", "target=11")
    done = run_cli("run", "shortest_path", graph, *ends)
    assert done.returncode == 0, done.stderr
    assert "no rows: nothing was found that could be listed" in done.stderr


@pytest.mark.parametrize("kind", ["tsv", "csv", "jsonl", "arrow"])
def test_results_go_to_stdout_as_asked_for(
    kind: str, graph: Path, tmp_path: Path, run_cli: Run, graphsys_command: str
) -> None:
    run = ("run", "sssp", graph, "--param", "source=1", "-o")
    out = tmp_path / f"x.{kind}"
    file = run_cli(*run, out)
    assert file.returncode == 0, file.stderr
    # an Arrow stream is bytes: through a shell's redirection
    command = [graphsys_command, *map(str, run), "-", "--format", kind]
    done = subprocess.run(command, capture_output=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    if kind == "arrow":
        with pyarrow.ipc.open_file(out) as expected:
            found = pyarrow.ipc.open_stream(done.stdout).read_all()
            assert found.equals(expected.read_all())
    else:
        assert done.stdout == out.read_bytes()
        assert len(done.stdout.splitlines()) == 6 + (kind != "jsonl")


def test_nodes_are_given_in_a_list_or_a_file(
    graph: Path, tmp_path: Path, run_cli: Run
) -> None:
    (tmp_path / "ids.txt").write_text("1\n10\n")
    found = []
    for nodes in ("1,10", f"@{tmp_path / 'ids.txt'}", "10"):
        run = ("run", "betweenness", graph, "-o", "-", "--param", f"sources={nodes}")
        done = run_cli(*run)
        assert done.returncode == 0, done.stderr
        found.append(done.stdout)
    assert found[0] == found[1] != found[2]
    oracle = nx.DiGraph([edge[:2] for edge in EDGES])
    parts = nx.betweenness_centrality_subset(
        oracle, [1, 10], list(oracle), normalized=False
    )
    middle = max(parts, key=lambda node: parts[node])
    best = max(found[0].splitlines()[1:], key=lambda line: float(line.split("\t")[1]))
    assert best.split("\t")[0] == str(middle)


def test_words_are_completed(run_cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for words, expected in (
        ("graphsys ev", ["evaluate"]),
        ("graphsys run perso", ["personalized_pagerank"]),
        ("graphsys run pagerank --requ", ["--require-convergence"]),
        ("graphsys dataset show kin", ["kinships"]),
        ("graphsys train embedding g --preset wn18rr-t", ["wn18rr-transe"]),
        ("graphsys train gnn g --preset acm-r", ["acm-rgcn"]),
    ):
        monkeypatch.setenv("_GRAPHSYS_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
        done = run_cli()
        assert done.stdout.split() == expected, done.stderr
    monkeypatch.delenv("_GRAPHSYS_COMPLETE")
    done = run_cli("--show-completion", "bash")
    assert "_GRAPHSYS_COMPLETE=complete_bash" in done.stdout


def test_a_program_of_the_user_runs_and_explains_itself(
    graph: Path, tmp_path: Path, run_cli: Run
) -> None:
    (tmp_path / "mine.py").write_text(PROGRAM)
    program = f"{tmp_path / 'mine.py'}:ShortestPaths"
    for name, options in (("a", ()), ("b", ("--memory", "1GB", "--threads", "1"))):
        out = tmp_path / f"{name}.parquet"
        done = run_cli("run", program, graph, "-o", out, "--param", "source=1", *options)
        assert done.returncode == 0, done.stderr
        assert values(out) == distances()
    done = run_cli(
        "run",
        program,
        graph,
        "--param",
        "source=1",
        "-o",
        out,
        "--overwrite",
        "--memory",
        "1MB",
    )
    assert done.returncode == 2
    assert "give --memory " in done.stderr
    done = run_cli("run", program, graph, "--param", "source=1", "--explain")
    assert done.returncode == 0, done.stderr
    assert "minimum" in done.stdout


def test_algorithms_are_listed(run_cli: Run) -> None:
    done = run_cli("run", "--list", "--json")
    assert done.returncode == 0, done.stderr
    entries = json.loads(done.stdout)["algorithms"]
    names = {entry["algorithm"] for entry in entries}
    contract = {
        "bfs",
        "sssp",
        "pagerank",
        "wcc",
        "scc",
        "cdlp",
        "lcc",
        "triangle_count",
        "k_core",
        "betweenness",
        "coloring",
        "mis",
        "mst",
    }
    assert contract <= names
    tags = {entry["tags"]: entry["algorithm"] for entry in entries if entry["tags"]}
    assert tags == {  # of the paper's twelve
        "AGM": "matching",
        "APSP": "apsp",
        "BFS": "bfs",
        "CCL": "wcc",
        "GCL": "clustering",
        "GCO": "coloring",
        "GCU": "min_cut",
        "MIS": "mis",
        "MST": "mst",
        "PR": "pagerank",
        "SP": "survey_propagation",
        "SSSP": "sssp",
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("bsf",), "did you mean 'bfs'?"),
        (("bfs", "--param", "source=99"), "node '99' is not among"),
        (("bfs", "--param", "sourc=1"), "did you mean 'source'?"),
        (("bfs", "--param", "source"), "--param takes name=value"),
        (("bfs",), "needs the parameter 'source'"),
        (("pagerank", "--param", "damping=lots"), "got 'lots', expected a number"),
        (("pagerank", "--param", "damping=1.5"), "damping"),
        (("nowhere.py:X",), "there is no such file"),
        (("wcc", "--device", "tpu"), "tpu"),
        (("pagerank", "--out", "x.xlsx"), "ends in one of"),
        (("pagerank", "--out", "-", "--json"), "both write to stdout"),
        (("pagerank", "--out", "-", "--format", "tvs"), "did you mean 'tsv'?"),
        (("pagerank", "--out", "x.csv", "--format", "csv"), "--format csv is for --out -"),
        (("betweenness", "--param", "sources=@no"), "names no, which is no file"),
    ],
)
def test_bad_input_ends_in_one_line(
    arguments: tuple[str, ...], message: str, graph: Path, tmp_path: Path, run_cli: Run
) -> None:
    name, *options = arguments
    out = () if "--out" in options else ("-o", tmp_path / "x.parquet")
    done = run_cli("run", name, graph, *out, *options)
    assert done.returncode == 2, done.stderr
    lines = done.stderr.strip().splitlines()
    assert [line.startswith("error: ") for line in lines] == [True]
    assert message in lines[0]
    assert not (tmp_path / "x.parquet").exists()


def test_what_cannot_be_compiled_is_named_with_its_line(
    graph: Path, tmp_path: Path, run_cli: Run
) -> None:
    (tmp_path / "broken.py").write_text(BROKEN)
    line = next(i for i, text in enumerate(BROKEN.splitlines(), 1) if "lenght" in text)
    out = tmp_path / "x.parquet"
    done = run_cli("run", tmp_path / "broken.py", graph, "-o", out, "--param", "source=1")
    assert done.returncode == 2
    assert f"broken.py:{line}: " in done.stderr
    assert "src.lenght is not declared; there are distance" in done.stderr


def test_an_old_result_stays_without_overwrite(
    graph: Path, tmp_path: Path, run_cli: Run
) -> None:
    out = tmp_path / "x.csv"
    out.write_text("mine")
    done = run_cli("run", "wcc", graph, "-o", out)
    assert done.returncode == 2
    assert out.read_text() == "mine"
    done = run_cli("run", "wcc", graph, "-o", out, "--overwrite")
    assert done.returncode == 0, done.stderr
    assert out.read_text().startswith('"id","value"')


def test_a_limit_fails_only_when_convergence_is_asked_for(
    graph: Path, tmp_path: Path, run_cli: Run
) -> None:
    run = ("run", "wcc", graph, "--implementation", "program", "--max-supersteps", "1")
    done = run_cli(*run, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["converged"] is False
    assert "did not converge" in done.stderr
    done = run_cli(*run, "--require-convergence")
    assert done.returncode == 1
    assert "did not converge" in done.stderr
