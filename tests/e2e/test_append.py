"""Append and compact as a user runs them."""

from pathlib import Path

import pyarrow.parquet
import pytest

import graphsys as gs
from graphsys.core.errors import ConfigError
from graphsys.datasets.append import append
from tests.conftest import Run
from tests.e2e.conftest import answer

pytestmark = pytest.mark.e2e

KEYS = {"num_nodes", "num_edges", "deltas", "bytes_written", "seconds"}


def test_append_and_compact_answer_with_their_counts(work: Path, run_cli: Run) -> None:
    graph, first = work / "changing", work / "first.csv"
    first.write_text("src,dst,time\n1,2,1\n2,3,2\n3,1,3\n4,1,4\n")
    (work / "more.csv").write_text("src,dst,time\n1,5,5\n6,2,6\n")
    (work / "gone.csv").write_text("src,dst,time\n2,3,7\n")
    answer(run_cli("ingest", first, "-o", graph, "--json"))
    options = ["--delete", work / "gone.csv", "--json"]
    found = answer(run_cli("append", graph, work / "more.csv", *options))
    assert set(found) == KEYS
    assert (found["num_nodes"], found["num_edges"], found["deltas"]) == (6, 5, 1)
    assert type(found["bytes_written"]) is int
    assert answer(run_cli("info", graph, "--json"))["deltas"] == 1
    assert answer(run_cli("verify", graph, "--json")) == {"ok": True, "problems": []}
    tables = []
    for name in ("with", "without"):
        out = work / f"{name}.parquet"
        answer(run_cli("run", "pagerank", graph, "-o", out, "--json"))
        tables.append(pyarrow.parquet.read_table(out).sort_by("id").to_pydict())
        found = answer(run_cli("compact", graph, "--json"))
        assert set(found) == KEYS
        assert (found["num_edges"], found["deltas"]) == (5, 0)
    assert tables[0]["id"] == tables[1]["id"] == [1, 2, 3, 4, 5, 6]
    assert tables[0]["value"] == pytest.approx(tables[1]["value"], rel=1e-9)


def test_append_says_what_is_wrong_and_leaves_the_graph(work: Path, run_cli: Run) -> None:
    graph, pairs = work / "staying", work / "pairs.csv"
    pairs.write_text("src,dst\n1,2\n")
    answer(run_cli("ingest", pairs, "-o", graph, "--json"))
    (work / "absent.csv").write_text("src,dst\n2,1\n")
    for arguments, text in (
        ([], "nothing to append: give edges, nodes, or edges to delete"),
        (["--delete", work / "absent.csv"], "the edge 2 -> 1 is not in"),
        ([work / "none.csv"], "none.csv"),
        ([pairs, "--missing-deletes", "skip"], "got 'skip', expected error or count"),
    ):
        done = run_cli("append", graph, *arguments)
        assert done.returncode == 2
        assert done.stdout == ""
        assert text in done.stderr
        assert done.stderr.splitlines()[-1].startswith("error: ")
    options = ["--delete", work / "absent.csv", "--missing-deletes", "count", "--json"]
    found = answer(run_cli("append", graph, *options))
    assert set(found) == KEYS | {"missing_deletes"}
    assert (found["missing_deletes"], found["deltas"], found["num_edges"]) == (1, 0, 1)


def test_nodes_and_edges_come_by_their_types(work: Path, run_cli: Run) -> None:
    graph = work / "shop"
    (work / "users.csv").write_text("id,label\nann,1\nbob,2\n")
    (work / "buys.csv").write_text("src,dst\nann,7\nbob,8\n")
    (work / "new-users.csv").write_text("id,label\ncid,3\n")
    (work / "new-buys.csv").write_text("src,dst\ncid,7\n")
    (work / "trivia.csv").write_text("id,label\ndot,4\n")
    names = [
        "--nodes",
        f"user={work}/users.csv",
        "--edges",
        f"user,buys,item={work}/buys.csv",
    ]
    answer(run_cli("ingest", *names, "-o", graph, "--json"))
    names = ["--nodes", f"user={work}/new-users.csv"]
    names += ["--edges", f"user,buys,item={work}/new-buys.csv"]
    found = answer(run_cli("append", graph, *names, "--json"))
    assert (found["num_nodes"], found["num_edges"]) == (5, 3)
    nodes = ["--nodes", f"user={work}/trivia.csv"]  # nodes alone
    assert answer(run_cli("append", graph, *nodes, "--json"))["num_nodes"] == 6


def test_python_appends_objects_and_files(work: Path) -> None:
    gs.ingest([(1, 2), (2, 3)], work / "py").graph.close()
    (work / "gone.txt").write_text("1 2\n")
    with gs.open(work / "py") as graph:
        report = graph.append([(3, 4), (4, 1)], delete=work / "gone.txt")
        assert (report.num_added, report.num_removed) == (2, 1)
        assert graph.num_edges == 2
        with report.graph as now:
            assert now.num_edges == 3
            assert now.neighbors(4) == [1]
    with pytest.raises(ConfigError, match="nothing to append"):
        append(work / "py")
