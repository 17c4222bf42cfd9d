"""Output files: whole or as they were, outside of graphs and runs, nothing left behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from graphsys.core.errors import ConfigError, OutputExistsError
from graphsys.core.ownership import is_draft
from graphsys.storage.output_file import new_files, require_writable
from graphsys.storage.verify.verify import verify
from tests.stores import edge_chunk, make_store

KILLED = """
import os, signal, sys
from pathlib import Path
from graphsys.core.ownership import is_draft
from graphsys.storage.output_file import new_files
with new_files(Path(sys.argv[1])) as [new]:
    new.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_files_are_replaced_together_at_the_end(tmp_path: Path) -> None:
    one, two = tmp_path / "sub" / "a", tmp_path / "b"
    two.write_text("old")
    with new_files(one, two) as new:
        for path in new:
            path.write_text("new")
        assert two.read_text() == "old"
    assert one.read_text() == two.read_text() == "new"
    assert names(tmp_path) == ["b", "sub"]


def test_old_files_survive_an_error(tmp_path: Path) -> None:
    out = tmp_path / "a"
    out.write_text("old")

    def fail() -> None:
        with new_files(out) as [new]:
            new.write_text("half")
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert out.read_text() == "old"
    assert names(tmp_path) == ["a"]


def test_what_killed_writers_left_goes_with_the_next_writer(tmp_path: Path) -> None:
    out = tmp_path / "o.parquet"
    for _ in range(3):
        subprocess.run([sys.executable, "-c", KILLED, str(out)], check=False)
        assert len(names(tmp_path)) == 1  # the one before was swept away
    (tmp_path / ".o.parquet.new").write_text("somebody's")
    (tmp_path / ".other.parquet.1.new").write_text("somebody's")
    with new_files(out) as [new]:
        new.write_text("whole")
    assert names(tmp_path) == [".o.parquet.new", ".other.parquet.1.new", "o.parquet"]


def test_a_living_writer_keeps_its_file(tmp_path: Path) -> None:
    out = tmp_path / "o"
    waiting = "import time; time.sleep(60)"
    code = KILLED.replace(
        "    os.kill(os.getpid(), signal.SIGKILL)", f"    print(1, flush=True); {waiting}"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(out)], stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with new_files(out) as [new]:
            new.write_text("mine")
        left, written = names(tmp_path)
        assert is_draft(left, "o")
        assert written == "o"
        other.kill()
    assert out.read_text() == "mine"


def test_everything_is_on_the_disk_before_it_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[str] = []
    sync, replace = os.fsync, Path.replace

    def note_sync(fd: int) -> None:
        happened.append(f"sync {Path(os.readlink(f'/proc/self/fd/{fd}')).name}")
        sync(fd)

    def note_replace(self: Path, target: Path) -> Path:
        happened.append(f"name {target.name}")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(Path, "replace", note_replace)
    with new_files(tmp_path / "a") as [new]:
        new.write_text("x")
    assert happened == [f"sync {new.name}", "name a", f"sync {tmp_path.name}"]


@pytest.mark.parametrize("inner", ["x.csv", "gen-1/nodes/node/part-0.arrow", "graph.json"])
def test_no_output_goes_into_a_graph(store: Path, inner: str) -> None:
    with pytest.raises(ConfigError, match="which is a graph and holds no other files"):
        require_writable(store / inner, overwrite=True)


def test_no_graph_goes_into_a_graph(store: Path) -> None:
    with pytest.raises(ConfigError, match="which is a graph"):
        make_store(store / "gen-1" / "inner", edge_chunk([(0, 1)]), overwrite=True)
    assert verify(store).ok


def test_no_output_goes_into_a_run_or_through_a_link_to_one(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    for name in ("run.json", "config.toml"):
        (run / name).write_text("{}")
    (tmp_path / "link").symlink_to(run)
    for out in (run / "run.json", run / "rows" / "x.csv", tmp_path / "link" / "x.csv"):
        with pytest.raises(ConfigError, match="which is a training run"):
            require_writable(out, overwrite=True)
    require_writable(tmp_path / "run.csv", overwrite=False)


def test_folders_and_existing_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a folder; name a file"):
        require_writable(tmp_path, overwrite=True)
    (tmp_path / "x").write_text("")
    with pytest.raises(OutputExistsError, match="replace it with --overwrite"):
        require_writable(tmp_path / "x", overwrite=False)
    require_writable(tmp_path / "x", overwrite=True)
