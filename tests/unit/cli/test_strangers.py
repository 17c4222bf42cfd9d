"""What is the user's stays the user's, beside and inside of what every verb writes."""

import shutil
from pathlib import Path

import pytest

from graphsys.cli import main as cli
from tests.buckets import Bucket

SETTINGS = ["--set", "epochs=1", "--set", "dim=4"]
GRAPHS = {
    "ingest": "ingest edges.txt -o OUT",
    "split": "split graph -o OUT --ratio 0.8,0.1,0.1",
    "partition": "partition graph --partitioner hash --partitions 2 -o OUT",
    "dataset-build": "dataset build grid -o OUT --param rows=4 --param cols=4",
}
RUNS = {
    "train-embedding": "train embedding graph -o OUT --set epochs=1 --set dim=4",
    "train-gnn": "train gnn graph -o OUT --set epochs=1 --set dim=4 --set "
    "task=link_prediction --set num_negatives=1",
}
FILES = {
    "run": "run wcc graph -o OUT.parquet",
    "export": "export run -o OUT.parquet",
    "predict": "predict run --nodes nodes.txt --top-k 2 -o OUT.parquet",
    "mine": "mine graph --pattern triangle --list -o OUT.parquet",
    "profile": "profile -o OUT.html -- run wcc graph",
}
BESIDE = (
    "notes.md",
    "gen-1/notes.md",
    "gen-data.csv",
    "superstep-9/x.npy",
    ".out.graphsys-old/run.json",
    ".out.graphsys-old/config.toml",
    ".out.graphsys-old/mine.txt",
    ".out.parquet.4711.new",
    ".out.html.4711.new",
    ".out.parquet.0123456789abcdef.parts/x",
    "out.json.md",
    ".graphsys-0123456789abcdef",
)
"""Names of files of the user's that are like some of ours."""
INSIDE_A_GRAPH = (
    "gen-1/notes.md",
    "gen-7/notes.md",
    "gen-1/nodes/mine.txt",
    "gen-9/x.arrow",
)
INSIDE_A_RUN = ("rows/mine.npy", "mine.safetensors", "notes.md", "state/node/best.npy")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a graph and a run of embeddings that all tests copy."""
    folder = tmp_path_factory.mktemp("made")
    lines = [f"{k} {(k * step + 1) % 24}" for k in range(24) for step in (1, 3, 5)]
    (folder / "edges.txt").write_text("\n".join(lines) + "\n")
    (folder / "nodes.txt").write_text("1\n2\n")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        assert cli.main(["ingest", "edges.txt", "-o", "graph"]) == 0
        assert cli.main(["train", "embedding", "graph", "-o", "run", *SETTINGS]) == 0
    return folder


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work = tmp_path / "work"
    shutil.copytree(made, work)
    monkeypatch.chdir(work)
    return work


def plant(folder: Path, *names: str) -> dict[Path, str]:
    """Write files of the user's, and return what they hold."""
    files = {folder / name: f"mine: {name}" for name in names}
    for file, text in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return files


def run(command: str, *more: str) -> int:
    return cli.main([*command.replace("OUT", "out").split(), *more])


@pytest.mark.parametrize("verb", [*GRAPHS, *RUNS, *FILES])
def test_files_beside_an_output_stay(here: Path, verb: str) -> None:
    command = {**GRAPHS, **RUNS, **FILES}[verb]
    theirs = plant(here, *BESIDE)
    assert run(command) == 0
    assert run(command, "--overwrite") == 0 or verb == "profile"
    if verb == "profile":
        assert run(command.replace("-o", "--overwrite -o")) == 0
    assert {file: file.read_text() for file in theirs} == theirs


@pytest.mark.parametrize("verb", [*GRAPHS, *RUNS])
@pytest.mark.parametrize("is_made", [True, False])
def test_files_in_an_output_stay(here: Path, verb: str, is_made: bool) -> None:
    command = {**GRAPHS, **RUNS}[verb]
    if is_made:
        assert run(command) == 0
    theirs = plant(here / "out", *(INSIDE_A_GRAPH if verb in GRAPHS else INSIDE_A_RUN))
    assert run(command) == 2
    code = run(command, "--overwrite")
    assert code == (0 if is_made and verb in GRAPHS else 2)
    assert {file: file.read_text() for file in theirs} == theirs


@pytest.mark.parametrize("verb", RUNS)
def test_files_in_a_run_stay_when_it_is_gone_on_with(here: Path, verb: str) -> None:
    assert run(RUNS[verb]) == 0
    theirs = plant(here / "out", *INSIDE_A_RUN)
    assert run(f"{RUNS[verb]} --resume") == 0
    assert {file: file.read_text() for file in theirs} == theirs


def test_files_in_a_graph_stay_when_it_grows_and_is_compacted(here: Path) -> None:
    theirs = plant(here / "graph", *INSIDE_A_GRAPH, "gen-1/deltas/notes.md")
    (here / "more.txt").write_text("1 23\n2 22\n")
    assert run("append graph more.txt") == 0
    assert run("append graph more.txt") == 0
    assert run("compact graph") == 0
    assert {file: file.read_text() for file in theirs} == theirs
    assert not (here / "graph" / "gen-1" / "edges").exists()  # what was ours is gone


def test_a_folder_where_the_next_delta_goes_is_not_written_into(here: Path) -> None:
    theirs = plant(here / "graph", "gen-1/deltas/1/notes.md")
    (here / "more.txt").write_text("1 23\n")
    assert run("append graph more.txt") == 2
    assert {file: file.read_text() for file in theirs} == theirs


def test_a_folder_of_the_users_is_no_checkpoint(here: Path) -> None:
    theirs = plant(here / "ck", "superstep-9/x.npy")
    command = "run pagerank graph -o out.parquet --param iterations=12 --checkpoint ck"
    assert run(command, "--checkpoint-every", "3") == 2
    assert {file: file.read_text() for file in theirs} == theirs
    assert run(command.replace(" ck", " other"), "--checkpoint-every", "3") == 0
    theirs = plant(here / "other", "superstep-9/x.npy")
    assert run(command.replace(" ck", " other"), "--resume", "--overwrite") == 2
    assert {file: file.read_text() for file in theirs} == theirs


@pytest.mark.parametrize("kind", ["embedding", "gnn"])
def test_a_configuration_in_the_output_is_not_overwritten(here: Path, kind: str) -> None:
    theirs = plant(here, "out/config.toml")
    (here / "out" / "config.toml").write_text("epochs = 1\ndim = 4\n")
    command = f"train {kind} graph -o out --config out/config.toml"
    for more in ([], ["--overwrite"]):
        assert run(command, *more) == 2
        assert next(iter(theirs)).read_text() == "epochs = 1\ndim = 4\n"


def test_a_run_in_the_place_of_one_that_was_replaced_is_not_trained_over(
    here: Path,
) -> None:
    shutil.copytree("run", ".out.graphsys-old")
    before = Path(".out.graphsys-old/run.json").read_bytes()
    assert run(RUNS["train-embedding"]) == 0
    assert run(RUNS["train-embedding"], "--overwrite") == 0
    assert Path(".out.graphsys-old/run.json").read_bytes() == before


def test_a_run_behind_a_link_is_replaced_and_the_link_stays(here: Path) -> None:
    (here / "disk").mkdir()
    shutil.move("run", "disk/first")
    Path("out").symlink_to("disk/first")
    before = Path("disk/first/run.json").read_bytes()
    for _ in range(2):
        assert run(RUNS["train-embedding"], "--overwrite") == 0
    assert Path("out").is_symlink()
    assert Path("disk/first/run.json").read_bytes() != before
    assert [path.name for path in (here / "disk").iterdir()] == ["first"]


@pytest.mark.parametrize("verb", RUNS)
def test_a_run_is_gone_on_with_from_inside_its_folder(
    here: Path, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(RUNS[verb]) == 0
    monkeypatch.chdir(here / "out")
    command = RUNS[verb].replace("OUT", ".").replace(" graph ", " ../graph ")
    assert run(f"{command} --resume") == 0
    assert run(f"{command} --overwrite") == 0
    assert sorted(path.name for path in here.iterdir() if "graphsys" in path.name) == []


def test_a_lock_of_the_users_stays(here: Path) -> None:
    theirs = plant(here, "out/.lock")
    for command in (*GRAPHS.values(), *RUNS.values()):
        assert run(command, "--overwrite") == 2
        assert {file: file.read_text() for file in theirs} == theirs


@pytest.mark.parametrize(
    "output", ["-o out.json", "-oout.json", "--out out.json", "--out=out.json"]
)
def test_a_profile_does_not_replace_the_result_that_it_profiles(
    here: Path, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(f"profile -o OUT.html -- run wcc graph {output}") == 2
    assert "the command names it too" in capsys.readouterr().err
    assert not Path("out.json").exists()
    assert run("run wcc graph -o out.json") == 0
    before = Path("out.json").read_bytes()
    command = f"profile --overwrite -o OUT.html -- run wcc graph {output} --overwrite"
    assert run(command) == 2
    assert Path("out.json").read_bytes() == before


def test_objects_beside_a_graph_and_a_run_stay(here: Path, bucket: Bucket) -> None:
    place = bucket.place("kept")
    for command in (*GRAPHS.values(), RUNS["train-embedding"]):
        there = command.replace("OUT", place)
        for name in ("gen-data.csv", "gen-eva/notes.md", "gen-5/notes.md"):
            bucket.write(f"kept/{name}", b"mine")
            assert cli.main(there.split()) == 2
            assert cli.main([*there.split(), "--overwrite"]) == 2
            assert bucket.names("kept") == [name]
            bucket.client.delete_object(Bucket=bucket.name, Key=f"kept/{name}")
        assert cli.main(there.split()) == 0
        mine = ("gen-5/notes.md", f"{bucket.names('kept')[0].partition('/')[0]}/notes.md")
        for name in mine:
            bucket.write(f"kept/{name}", b"mine")
        assert cli.main([*there.split(), "--overwrite"]) == 0
        left = bucket.names("kept")
        assert {it for it in left if it.endswith("notes.md")} == set(mine)
        generations = {it.partition("/")[0] for it in left if not it.endswith("notes.md")}
        assert len(generations) == 2  # the new one, and the head
        for name in left:
            bucket.client.delete_object(Bucket=bucket.name, Key=f"kept/{name}")


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_cells_that_spreadsheets_compute_are_a_choice(here: Path, suffix: str) -> None:
    bad = ["=1+1", "+2", "-3", "@sum", "plain"]
    rows = "".join(f"{it}\t{other}\n" for it in bad for other in bad if it != other)
    Path("bad.edges").write_text(rows)
    assert run("ingest bad.edges -o bad --ids string") == 0
    assert run("train embedding bad -o vectors --set epochs=1 --set dim=4") == 0
    for verb in ("run wcc bad", "export vectors"):
        assert run(f"{verb} -o plain.{suffix} --overwrite") == 0
        assert run(f"{verb} -o safe.{suffix} --safe-cells --overwrite") == 0
        plain, safe = (ids_of(Path(f"{it}.{suffix}")) for it in ("plain", "safe"))
        assert set(bad) <= plain
        assert {f"'{it}" for it in bad[:-1]} | {"plain"} <= safe
        assert not safe & set(bad[:-1])
    assert run(f"run wcc bad -o plain.{suffix} --overwrite") == 0  # of this command alone
    assert set(bad) <= ids_of(Path(f"plain.{suffix}"))


def ids_of(file: Path) -> set[str]:
    mark = {".csv": ",", ".tsv": "\t"}[file.suffix]
    return {line.split(mark)[0].strip('"') for line in file.read_text().splitlines()}
