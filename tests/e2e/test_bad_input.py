"""Bad input: exit code 2, one ``error:`` line with place and remedy, nothing written."""

import gzip
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.conftest import Run

pytestmark = pytest.mark.e2e

GOOD = b"1\t2\n2\t3\n3\t1\n"
HEADER = b"%%MatrixMarket matrix coordinate "

TEXTS = {
    "too few columns": ("x.txt", b"1 2\n1\n", [], r"x\.txt:2: "),
    "too many columns": ("x.txt", b"1 2\n1 2 3\n", [], r"x\.txt:2: "),
    "letters for numbers": ("x.txt", b"1 2\n3 four\n", [], r"x\.txt:2: .*four"),
    "letters for a weight": ("x.txt", b"1 2 0.5\n3 4 heavy\n", [], r"x\.txt:2: .*heavy"),
    "negative id": ("x.txt", b"1 2\n3 -4\n", ["--ids", "int"], r"x\.txt:2: .*-4"),
    "id of 2**63": ("x.txt", b"1 2\n3 9223372036854775808\n", [], r"x\.txt:2: "),
    "NaN weight": ("x.txt", b"1 2 0.5\n3 4 nan\n", [], r"x\.txt:2: .*(?i:nan)"),
    "empty file": ("x.txt", b"", [], r"x\.txt.*(empty|no edge|no data)"),
    "only comments": ("x.txt", b"# nothing\n", [], r"x\.txt.*(empty|no edge|no data)"),
    "empty csv": ("x.csv", b"", [], r"x\.csv"),
    "header not skipped": ("x.txt", b"src dst\n1 2\n", ["--ids", "int"], r"x\.txt:1: "),
    "truncated gzip": ("x.txt.gz", gzip.compress(GOOD * 5000)[:-9], [], r"x\.txt\.gz"),
    "not gzip": ("x.txt.gz", GOOD, [], r"x\.txt\.gz"),
    "not Parquet": ("x.parquet", GOOD, [], r"x\.parquet"),
    "not Arrow": ("x.arrow", GOOD, [], r"x\.arrow"),
    "unknown suffix": ("x.xyz", GOOD, [], r"x\.xyz.*--format"),
    "unknown format": ("x.txt", GOOD, ["--format", "edgelst"], r"edgelst.*edgelist"),
    "no banner": ("x.mtx", b"3 3 1\n1 1 1\n", [], r"x\.mtx"),
    "complex values": (
        "x.mtx",
        HEADER + b"complex general\n2 2 1\n1 2 1.0 2.0\n",
        [],
        r"x\.mtx.*complex",
    ),
    "too few entries": (
        "x.mtx",
        HEADER + b"real general\n2 2 2\n1 2 1.0\n",
        [],
        r"x\.mtx",
    ),
    "index out of range": (
        "x.mtx",
        HEADER + b"real general\n2 2 1\n1 3 1.0\n",
        [],
        r"x\.mtx",
    ),
    "zero partitions": ("x.txt", GOOD, ["--partitions", "0"], r"--partitions.*'0'"),
    "unknown node type": ("x.txt", GOOD, ["--partitions", "user=2"], r"user"),
    "unknown partitioner": ("x.txt", GOOD, ["--partitioner", "hsah"], r"hsah.*hash"),
    "unknown order": ("x.txt", GOOD, ["--order", "degre"], r"degre.*degree"),
    "memory no amount": ("x.txt", GOOD, ["--memory", "lots"], r"memory.*lots"),
    "memory too small": ("x.txt", GOOD, ["--memory", "1KB"], r"(?i)memory|budget"),
    "unknown id kind": ("x.txt", GOOD, ["--ids", "integer"], r"ids.*integer"),
}


def expect_refusal(done: "subprocess.CompletedProcess[str]", pattern: str) -> None:
    """Check exit code 2, nothing on stdout, one line on stderr that matches."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("error: "), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert re.search(pattern, done.stderr), done.stderr


@pytest.mark.parametrize("what", TEXTS)
def test_ingest_refuses(tmp_path: Path, run_cli: Run, what: str) -> None:
    name, content, options, pattern = TEXTS[what]
    source = tmp_path / name
    source.write_bytes(content)
    done = run_cli("ingest", source, "-o", tmp_path / "graph", *options)
    expect_refusal(done, pattern)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("columns", "pattern"),
    [
        ({"src": [1, 2], "dst": [3, -4]}, "-4"),
        ({"src": [1.5, 2.0], "dst": [3.0, 4.0]}, "src"),
        ({"src": [1, None], "dst": [3, 4]}, "src|null"),
        ({"src": [1, 2], "dst": [3, 4], "weight": [1.0, float("nan")]}, "(?i)nan"),
        ({"from": [1, 2]}, "column"),
    ],
    ids=["negative", "fractions", "null", "nan", "no dst"],
)
def test_ingest_refuses_tables(
    tmp_path: Path, run_cli: Run, columns: dict[str, list[float | None]], pattern: str
) -> None:
    source = tmp_path / "x.parquet"
    pa.parquet.write_table(pa.table(columns), source)
    done = run_cli("ingest", source, "-o", tmp_path / "graph")
    expect_refusal(done, r"x\.parquet")
    expect_refusal(done, pattern)
    assert not (tmp_path / "graph").exists()


def test_ingest_refuses_ids_above_int64(tmp_path: Path, run_cli: Run) -> None:
    source = tmp_path / "x.parquet"
    huge = np.array([1, 2**63], dtype=np.uint64)
    pa.parquet.write_table(pa.table({"src": huge, "dst": huge}), source)
    done = run_cli("ingest", source, "-o", tmp_path / "graph")
    expect_refusal(done, "9223372036854775808")


def test_ingest_refuses_a_missing_file(tmp_path: Path, run_cli: Run) -> None:
    done = run_cli("ingest", tmp_path / "none.txt", "-o", tmp_path / "graph")
    expect_refusal(done, r"none\.txt")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["graph", "file", "folder"])
def test_ingest_refuses_an_existing_output(
    tmp_path: Path, run_cli: Run, edges_file: Path, small_graph: Path, kind: str
) -> None:
    out = tmp_path / "out"
    if kind == "graph":
        shutil.copytree(small_graph, out)
    elif kind == "file":
        out.write_text("mine")
    else:
        out.mkdir()
        (out / "notes.txt").write_text("mine")
    before = sorted(path.name for path in tmp_path.rglob("*"))
    done = run_cli("ingest", edges_file, "-o", out)
    expect_refusal(
        done, "already holds a graph.*--overwrite" if kind == "graph" else "already exists"
    )
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


def test_overwrite_keeps_the_old_graph_when_it_fails(
    tmp_path: Path, run_cli: Run, small_graph: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(small_graph, out)
    before = (out / "graph.json").read_bytes()
    bad = tmp_path / "bad.txt"
    bad.write_text("1 2\n" * 1000 + "1\n")
    expect_refusal(run_cli("ingest", bad, "-o", out, "--overwrite"), r"bad\.txt:1001: ")
    assert (out / "graph.json").read_bytes() == before
    assert run_cli("verify", out).returncode == 0


def test_overwrite_spares_a_folder_that_is_no_graph(
    tmp_path: Path, run_cli: Run, edges_file: Path
) -> None:
    out = tmp_path / "home"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    expect_refusal(run_cli("ingest", edges_file, "-o", out, "--overwrite"), "home")
    assert (out / "notes.txt").read_text() == "mine"


@pytest.mark.shared
def test_matrix_market_agrees_with_scipy_on_what_is_refused(
    tmp_path: Path, run_cli: Run, shared_data: Path
) -> None:
    import scipy.io

    refused = []
    for path in sorted((shared_data / "lagraph-data").glob("*.mtx")):
        try:
            scipy.io.mmread(path)
        except Exception:  # SciPy raises ValueError, OverflowError and others
            refused.append(path)
    assert len(refused) == 18
    for path in refused[::3]:  # all of them, without the command, in tests/golden
        done = run_cli("ingest", path, "-o", tmp_path / "graph")
        expect_refusal(done, re.escape(path.name))
        assert not (tmp_path / "graph").exists()


def alter_manifest(graph: Path, change: Callable[[str], str]) -> None:
    """Edit a manifest's text."""
    path = graph / "graph.json"
    path.write_text(change(path.read_text()))


def truncate(graph: Path) -> None:
    victim = next(iter(sorted(graph.rglob("bucket-*.arrow"))))
    victim.write_bytes(victim.read_bytes()[:-100])


def remove(graph: Path) -> None:
    next(iter(sorted(graph.rglob("part-0.arrow")))).unlink()


def newer(graph: Path) -> None:
    manifest = json.loads((graph / "graph.json").read_text())
    name = next(name for name in manifest if "version" in name)
    alter_manifest(
        graph, lambda text: re.sub(rf'("{name}":\s*)"?\d+"?', r"\g<1>999", text, count=1)
    )


def escape(graph: Path) -> None:
    alter_manifest(graph, lambda text: text.replace("gen-", "../gen-", 1))


def cut_manifest(graph: Path) -> None:
    alter_manifest(graph, lambda text: text[: len(text) // 2])


def remove_manifest(graph: Path) -> None:
    (graph / "graph.json").unlink()


@pytest.mark.parametrize(
    ("damage", "pattern"),
    [
        (truncate, r"bucket-\d+-\d+\.arrow"),
        (remove, r"part-0\.arrow"),
        (newer, r"999.*(newer|version)|version.*999"),
        (escape, r"\.\./gen-|graph\.json"),
        (cut_manifest, r"graph\.json"),
        (remove_manifest, r"graph"),
    ],
)
def test_damaged_stores_are_refused(
    tmp_path: Path,
    run_cli: Run,
    small_graph: Path,
    damage: Callable[[Path], None],
    pattern: str,
) -> None:
    copy = tmp_path / "graph"
    shutil.copytree(small_graph, copy)
    damage(copy)
    expect_refusal(run_cli("info", copy), pattern)
    train = run_cli("train", "embedding", copy, "-o", tmp_path / "run")
    expect_refusal(train, pattern)
    assert not (tmp_path / "run").exists()


def test_a_relation_missing_from_the_config_is_refused(
    tmp_path: Path, run_cli: Run, demo_graph: Path
) -> None:
    config = tmp_path / "model.toml"
    config.write_text('dim = 8\n[relations."no such relation"]\noperator = "translation"\n')
    command = ["train", "embedding", demo_graph, "-o", tmp_path / "run", "--config", config]
    expect_refusal(run_cli(*command), "no such relation|relation")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        (["--preset", "demo-complx"], "demo-complx.*demo-complex"),
        (["--config", "none.toml"], r"none\.toml"),
        (["--preset", "demo-complex", "--config", "x.toml"], "preset.*config"),
        (["--set", "dimm=8"], "dimm.*dim"),
        (["--set", "dim=big"], "dim.*big"),
        (["--set", "dim"], "dim"),
        (["--memory", "lots"], "memory.*lots"),
    ],
)
def test_train_refuses(
    tmp_path: Path, run_cli: Run, small_graph: Path, options: list[str], pattern: str
) -> None:
    done = run_cli("train", "embedding", small_graph, "-o", tmp_path / "run", *options)
    expect_refusal(done, pattern)
    assert list(tmp_path.iterdir()) == []


def test_queries_refuse_what_is_not_there(
    tmp_path: Path, run_cli: Run, demo_run: Path
) -> None:
    expect_refusal(run_cli("evaluate", tmp_path / "none"), "none")
    expect_refusal(run_cli("evaluate", demo_run, "--split", "tset"), "tset.*test")
    expect_refusal(run_cli("nearest", demo_run, "nobody at all"), "nobody at all")
    expect_refusal(run_cli("nearest", demo_run, "x", "--node-type", "usr"), "usr")
    expect_refusal(run_cli("nearest", demo_run, "x", "--index", "annoy"), "annoy.*hnsw")
    expect_refusal(run_cli("evaluate", demo_run, "--draw", "deg"), "deg.*uniform, degree")
    out = tmp_path / "out.parquet"
    expect_refusal(run_cli("predict", demo_run, "-o", tmp_path / "out.xyz"), r"\.parquet")
    expect_refusal(run_cli("predict", demo_run, "-o", out), "relations.*say which")
    asked = ["predict", demo_run, "-o", out, "--relation"]
    expect_refusal(run_cli(*asked, "nothing like it"), "nothing like it")
    nodes = ["--nodes", tmp_path / "none.txt"]
    expect_refusal(run_cli("predict", demo_run, "-o", out, *nodes), r"none\.txt is no file")
    expect_refusal(run_cli("export", demo_run, "-o", tmp_path / "emb.xyz"), r"\.parquet")
    expect_refusal(run_cli("dataset", "show", "dmeo"), "dmeo.*demo")
    folder = tmp_path / "empty"
    folder.mkdir()
    build = ["dataset", "build", "fb15k237", "-o", tmp_path / "fb", "--from", folder]
    expect_refusal(run_cli(*build), "empty")
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


def in_small_disk(
    command: list[str], folder: Path, size: str
) -> "subprocess.CompletedProcess[str]":
    """Run a command with a tmpfs of ``size`` at ``folder``, in a mount namespace."""
    script = (
        'mount -t tmpfs -o "size=$1" tmpfs "$2" || exit 99; folder=$2; shift 2; '
        '"$@"; code=$?; '
        'echo "left: $(ls -A "$folder")"; exit $code'
    )
    shell = ["unshare", "--map-root-user", "--mount", "sh", "-c", script, "sh"]
    return subprocess.run(
        [*shell, size, str(folder), *command],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("name", "line"),
    [("x.txt", "{} {}\n"), ("x.jsonl", '{{"src": {}, "dst": {}}}\n')],
)
def test_a_full_disk_is_refused(
    name: str, line: str, tmp_path: Path, graphsys_command: str
) -> None:
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed")
    source = tmp_path / name
    source.write_text("".join(line.format(n, n * 7 % 90001) for n in range(100_000)))
    folder = tmp_path / "small"
    folder.mkdir()
    command = [graphsys_command, "ingest", str(source), "-o", str(folder / "graph")]
    done = in_small_disk(command, folder, "300k")
    if done.returncode == 99 or "unshare" in done.stderr:
        pytest.skip(f"no mount namespaces here: {done.stderr.strip()}")
    assert done.stdout == "left: \n"
    done.stdout = ""
    expect_refusal(done, r"space")


def test_a_read_only_target_is_refused(
    tmp_path: Path, edges_file: Path, graphsys_command: str
) -> None:
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed")
    script = 'mount -t tmpfs -o ro tmpfs "$1" || exit 99; shift; exec "$@"'
    folder = tmp_path / "locked"
    folder.mkdir()
    shell = ["unshare", "--map-root-user", "--mount", "sh", "-c", script, "sh", str(folder)]
    command = [graphsys_command, "ingest", str(edges_file), "-o", str(folder / "graph")]
    done = subprocess.run(
        [*shell, *command], capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode == 99 or "unshare" in done.stderr:
        pytest.skip(f"no mount namespaces here: {done.stderr.strip()}")
    expect_refusal(done, r"(?i)read-only|cannot be written")


def test_two_writers_at_once_one_is_refused(
    tmp_path: Path, run_cli: Run, edges_file: Path, small_graph: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(small_graph, out)
    # a first writer that holds the lock and waits
    code = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from graphsys.storage.locks import WriterLock\n"
        "lock = WriterLock(Path(sys.argv[1]))\n"
        "print('held', flush=True)\n"
        "time.sleep(60)\n"
    )
    first = subprocess.Popen(
        [sys.executable, "-c", code, str(out)], stdout=subprocess.PIPE, text=True, cwd="/"
    )
    try:
        assert first.stdout is not None
        assert first.stdout.readline() == "held\n"
        done = run_cli("ingest", edges_file, "-o", out, "--overwrite")
        expect_refusal(done, r"(?i)writ|lock|busy")
    finally:
        first.kill()
        first.wait()
    assert run_cli("ingest", edges_file, "-o", out, "--overwrite").returncode == 0
