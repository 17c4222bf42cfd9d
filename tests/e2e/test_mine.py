"""``graphsys mine``, as a user would."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from tests.conftest import Run

pytestmark = pytest.mark.e2e

EDGES = [(1, 2), (2, 3), (3, 1), (3, 4), (4, 5), (5, 3), (1, 1), (2, 1)]
BUTTERFLY = {"3-path": 4, "triangle": 2}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory, run_cli: Run) -> Path:
    folder = tmp_path_factory.mktemp("mine")
    (folder / "edges.txt").write_text("\n".join(f"{a} {b}" for a, b in EDGES))
    done = run_cli("ingest", folder / "edges.txt", "-o", folder / "graph")
    assert done.returncode == 0, done.stderr
    return folder / "graph"


def test_motifs_are_counted(graph: Path, run_cli: Run) -> None:
    done = run_cli("mine", graph, "--motifs", "3", "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said.keys() == {"counts", "induced", "seconds", "compile_seconds"}
    assert said["counts"] == BUTTERFLY
    assert said["induced"] == "vertex"
    done = run_cli("mine", graph, "--motifs", "3", "--induced", "edge")
    lines = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert lines["3-path"] == "10"
    assert lines["counted"] == "edge-induced, each once"


def test_arrows_and_pairs_without_an_edge_are_counted(
    graph: Path, tmp_path: Path, run_cli: Run
) -> None:
    texts = ("a>b b>c c>a", "a<->b", "a>b b>c a!c")
    given = [word for text in texts for word in ("--pattern", text)]
    done = run_cli("mine", graph, *given, "--json")
    assert done.returncode == 0, done.stderr
    # 1 2 3 and 3 4 5 turn round; 1 and 2 lead to each other; 2 3 4 and 5 3 1 are open
    assert json.loads(done.stdout)["counts"] == dict(zip(texts, (2, 1, 2), strict=True))
    out = tmp_path / "both.parquet"
    done = run_cli("mine", graph, "--pattern", "a<->b", "--list", "-o", out, "--json")
    assert done.returncode == 0, done.stderr
    (row,) = pyarrow.parquet.read_table(out).to_pylist()
    assert set(row.values()) == {1, 2}
    done = run_cli("mine", graph, "--pattern", "a>b a!c b-c", "--explain")
    assert "edge from" in done.stdout or "edge to" in done.stdout


def test_places_of_nodes_and_edges_are_written(
    graph: Path, tmp_path: Path, run_cli: Run
) -> None:
    out = tmp_path / "orbits.parquet"
    done = run_cli("mine", graph, "--motifs", "4", "--per-node", "-o", out, "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["rows"] == 5
    table = pyarrow.parquet.read_table(out).to_pydict()
    triangles = dict(zip(table["id"], table["orbit_3"], strict=True))
    assert triangles == {1: 1, 2: 1, 3: 2, 4: 1, 5: 1}
    done = run_cli(
        "mine", graph, "--motifs", "4", "--per-edge", "-o", "-", "--format", "csv"
    )
    header, *rows = done.stdout.splitlines()
    assert header.replace('"', "").startswith("src,dst,3-path,triangle,4-path_end")
    assert len(rows) == 6
    done = run_cli("mine", graph, "--motifs", "4", "--per-node")
    assert done.returncode == 0, done.stderr
    assert "orbit_14" in done.stdout


def test_patterns_are_counted_as_typed(graph: Path, run_cli: Run) -> None:
    options = ["--pattern", "triangle", "--pattern", "a-b b-c", "--pattern", "bowtie"]
    done = run_cli("mine", graph, *options, "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["counts"] == {"triangle": 2, "a-b b-c": 10, "bowtie": 1}
    assert said["induced"] == "edge"
    done = run_cli("mine", graph, "--pattern", "a-b b-c", "--induced", "vertex")
    assert done.stdout.split()[:3] == ["a-b", "b-c", "4"]
    done = run_cli("mine", graph, "--pattern", "6-cycle", "--explain")
    assert done.stdout.splitlines()[1] == "  match by match, the last node counted:"
    done = run_cli("mine", graph, "--pattern", "bull", "--explain", "--json")
    assert json.loads(done.stdout) == {
        "plans": {"bull": ["bull: by the census of all motifs of 5 nodes"]},
        "induced": "edge",
    }


def test_matches_are_listed(graph: Path, tmp_path: Path, run_cli: Run) -> None:
    out = tmp_path / "matches.parquet"
    options = ["--pattern", "a-b b-c c-a", "--list", "-o", out, "--json"]
    done = run_cli("mine", graph, *options)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["matches"], said["induced"]) == (2, "edge")
    rows = pyarrow.parquet.read_table(out).to_pylist()
    assert {frozenset(row.values()) for row in rows} == {
        frozenset((1, 2, 3)),
        frozenset((3, 4, 5)),
    }
    done = run_cli("mine", graph, *options, "--limit", "1", "--overwrite")
    assert json.loads(done.stdout)["matches"] == 1


def test_frequent_patterns_are_found(graph: Path, run_cli: Run) -> None:
    done = run_cli("mine", graph, "--frequent", "--support", "5", "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said.keys() == {"patterns", "induced", "seconds", "compile_seconds"}
    assert said["patterns"][0] == {"pattern": "a-b", "support": 5}
    assert {"pattern": "a-b a-c b-c", "support": 5} in said["patterns"]
    done = run_cli("mine", graph, "--frequent", "--support", "5", "--max-edges", "1")
    assert done.stdout.splitlines() == ["pattern\tsupport", "a-b\t5"]
    assert "1 patterns, edge-induced" in done.stderr


def test_patterns_in_several_parts_are_counted_when_asked(
    graph: Path, run_cli: Run
) -> None:
    done = run_cli("mine", graph, "--pattern", "a-b c-d", "--disconnected", "--json")
    assert json.loads(done.stdout)["counts"] == {"a-b c-d": 5}, done.stderr


def test_places_of_nodes_are_features_to_train_on(run_cli: Run, tmp_path: Path) -> None:
    """The commands of the guide of patterns."""
    rng = np.random.default_rng(0)
    lines = [f"{a},{b}" for a, b in rng.integers(0, 40, (300, 2))]
    (tmp_path / "edges.csv").write_text("\n".join(["src,dst", *lines]))
    web, more = tmp_path / "web", tmp_path / "web-with-orbits"
    for words in (
        ("ingest", tmp_path / "edges.csv", "--split", "0.8,0.1,0.1", "-o", web),
        ("mine", web, "--motifs", "4", "--per-node", "--features", "-o", more),
        (
            "train",
            "gnn",
            more,
            "-o",
            tmp_path / "run",
            "--set",
            "task=link_prediction",
            "--set",
            'features=["orbits"]',
            "--set",
            "epochs=1",
            "--set",
            "dim=8",
        ),
    ):
        done = run_cli(*words)
        assert done.returncode == 0, done.stderr
    assert "features orbits float32[15]" in run_cli("info", more).stdout
    done = run_cli("mine", web, "--motifs", "4", "--per-node", "--features", "-o", more)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "web-with-orbits exists; pass --overwrite" in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "error: ask for one thing: --pattern triangle, "),
        (["--motifs", "4", "--frequent"], "error: ask for one thing: --pattern triangle, "),
        (["--motifs", "4", "--labels", "color"], "error: --labels is for --pattern and"),
        (["--pattern", "a-b", "--edge-labels"], "error: --support and --edge-labels are"),
        (["--pattern", "a:x>b"], "error: unknown label of nodes 'x'; known: node"),
        (["--pattern", "a>b a!b"], "error: the pattern says that a and b have an edge and"),
        (["--motifs", "4", "--explain"], "error: --explain is for --pattern"),
        (["--pattern", "bull", "--motifs", "4"], "error: ask for one thing: --pattern"),
        (["--pattern", "bull", "--per-node"], "error: --pattern gives a number for the"),
        (["--pattern", "a-b c-d"], "error: the pattern is in several parts"),
        (
            ["--pattern", "a-b c-d", "--disconnected", "--list", "-o", "x.parquet"],
            "error: --disconnected is for counts of --pattern; leave it out",
        ),
        (["--pattern", "hous"], "error: unknown pattern 'hous'; known: "),
        (["--pattern", "a-a"], "error: a pattern has no loops, but a-a is one"),
        (["--pattern", "a>b", "--memory", "9MB"], "error: memory: mining on "),
        (["--motifs", "5", "--memory", "9MB"], "error: memory: mining on "),
        (
            ["--frequent", "--support", "3", "--memory", "4GB"],
            "error: --memory is for --pattern and --motifs; --frequent keeps all",
        ),
        (["--pattern", "bull", "--memory", "much"], "error: "),
        (["--pattern", "9-path"], "error: pattern '9-path': expected 2 to 8 nodes"),
        (
            ["--motifs", "4", "--device", "gpu"],
            "error: device must be 'cpu' or 'cuda', got",
        ),
        (
            ["--motifs", "4", "--per-node", "--device", "cuda"],
            "error: --device cuda counts patterns and motifs of the whole graph; ",
        ),
        (["--motifs", "4", "--list"], "error: --list is for --pattern, --limit for --list"),
        (["--pattern", "bull", "--limit", "3"], "error: --list is for --pattern, --limit"),
        (["--pattern", "bull", "--list"], "error: --list writes the matches of one"),
        (
            ["--pattern", "bull", "--list", "-o", "x.csv"],
            "error: cannot list matches to 'x.csv': expected a .parquet file",
        ),
        (["--frequent"], "error: --frequent: how often? give --support 300"),
        (["--frequent", "--support", "0"], "error: support=0: expected 1 or more nodes"),
        (["--frequent", "--support", "1", "-o", "x.csv"], "error: --out is for counts of"),
        (
            ["--frequent", "--support", "1", "--labels", "color"],
            "error: unknown column of nodes 'color'; known: type",
        ),
        (["--motifs", "6"], "error: motifs of 6 nodes are not counted; "),
        (["--motifs", "4", "--induced", "node"], "error: induced='node' is neither"),
        (
            ["--motifs", "4", "--per-node", "--per-edge"],
            "error: --per-node and --per-edge make two tables",
        ),
        (["--motifs", "5", "--per-node"], "error: motifs of 5 nodes: the places of nodes"),
        (
            ["--motifs", "4", "--per-node", "--induced", "edge"],
            "error: --induced edge: places of nodes and edges are counted vertex-induced",
        ),
        (["--motifs", "4", "--per-node", "--json"], "error: counts of every node or edge"),
        (["--motifs", "4", "--features"], "error: --features is for counts of every node"),
        (["--motifs", "4", "-o", "x.parquet"], "error: --out is for counts of every node"),
    ],
)
def test_what_is_not_counted_is_said_in_a_line(
    graph: Path, run_cli: Run, options: list[str], said: str
) -> None:
    done = run_cli("mine", graph, *options)
    assert done.returncode == 2
    assert done.stderr.startswith(said)
    assert len(done.stderr.splitlines()) == 1
