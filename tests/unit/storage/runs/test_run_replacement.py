"""Replacing a run: whole at every moment, and nobody else's folder is touched."""

import errno
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from graphsys.core.errors import OutputExistsError, StorageFullError
from graphsys.storage.runs import run_replacement as replacement
from graphsys.storage.runs.run_folder import folder_to_train, writing

ROWS = "rows/node/part-0.1.npy"
KILLED = """
import os, signal, sys
from pathlib import Path
from graphsys.storage.runs import run_replacement
from graphsys.storage.runs.run_folder import writing
if sys.argv[2] == "moved":
    run_replacement._exchange = lambda one, other: False
place, seen = int(sys.argv[3]), 0
def watch(event, args):
    global seen
    if event in ("os.rename", "os.remove", "os.rmdir", "shutil.rmtree", "ctypes.dlsym"):
        seen += 1
        if seen > place:
            os.kill(os.getpid(), signal.SIGKILL)
out = Path(sys.argv[1])
with writing(out, resume=False, overwrite=True) as path:
    (path / "run.json").write_text("new")
    (path / "config.toml").write_text("new")
    sys.addaudithook(watch)
"""


def make_run(path: Path, text: str) -> Path:
    path.mkdir()
    for name in ("run.json", "config.toml"):
        (path / name).write_text(text)
    (path / "rows" / "node").mkdir(parents=True)
    (path / ROWS).write_text(text)
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def overwrite(out: Path, text: str = "new") -> None:
    with writing(out, resume=False, overwrite=True) as path:
        assert path != out
        for name in ("run.json", "config.toml"):
            (path / name).write_text(text)


def test_folders_of_the_user_next_to_a_run_are_never_touched(tmp_path: Path) -> None:
    out = make_run(tmp_path / "run", "old")
    for name in ("run.old", "run.partial", "run.new"):
        make_run(tmp_path / name, "mine")
    overwrite(out)
    assert names(tmp_path) == ["run", "run.new", "run.old", "run.partial"]
    assert (out / "run.json").read_text() == "new"
    assert names(out) == ["config.toml", "run.json"]
    assert (tmp_path / "run.old" / ROWS).read_text() == "mine"


def test_a_folder_with_our_name_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    out = make_run(tmp_path / "run", "old")
    theirs = make_run(tmp_path / ".run.graphsys-next", "mine")
    with pytest.raises(OutputExistsError, match="is none of ours; move it away"):
        overwrite(out)
    assert (theirs / "run.json").read_text() == "mine"
    assert (out / "run.json").read_text() == "old"


def test_an_error_leaves_the_old_run_and_nothing_else(tmp_path: Path) -> None:
    out = make_run(tmp_path / "run", "old")

    def fail() -> None:
        with writing(out, resume=False, overwrite=True):
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert names(tmp_path) == ["run"]
    assert (out / "run.json").read_text() == "old"


def test_an_unfinished_replacement_is_resumed_or_dropped_by_name(tmp_path: Path) -> None:
    out = make_run(tmp_path / "run", "old")
    staged = replacement.begin_replacement(out)
    (staged / "run.json").write_text("half")
    (staged / "config.toml").write_text("half")
    assert folder_to_train(out, resume=True, overwrite=False) == staged
    with writing(out, resume=True, overwrite=False) as path:
        assert path == staged
    assert (out / "run.json").read_text() == "half"
    assert names(tmp_path) == ["run"]
    staged = replacement.begin_replacement(out)
    (staged / "run.json").write_text("half again")
    with pytest.warns(UserWarning, match="had not been completed; it is dropped"):
        overwrite(out)
    assert (out / "run.json").read_text() == "new"
    assert names(tmp_path) == ["run"]


@pytest.mark.parametrize("way", ["exchanged", "moved"])
def test_a_kill_at_any_step_leaves_a_whole_run_and_the_next_training_cleans_up(
    tmp_path: Path, way: str
) -> None:
    texts = set()
    for place in range(30):
        folder = tmp_path / f"{place}"
        folder.mkdir()
        out = make_run(folder / "run", "old")
        done = subprocess.run(
            [sys.executable, "-c", KILLED, str(out), way, str(place)], check=False
        )
        was_killed = done.returncode == -signal.SIGKILL
        if way == "exchanged" or out.exists():
            found = {(out / name).read_text() for name in ("run.json", "config.toml")}
            assert found <= {"old", "new"}
            assert len(found) == 1
            texts |= found
        else:
            assert "rename it" in replacement.where_it_is(out)
        replacement.put_back(out)
        assert (out / "run.json").exists()
        if replacement.is_staged(out):
            with writing(out, resume=True, overwrite=False):
                pass
        overwrite(out, "third")
        assert names(folder) == ["run"]
        assert names(out) == ["config.toml", "run.json"]
        shutil.rmtree(folder)
        if not was_killed:
            break
    assert not was_killed
    assert place > 3
    assert texts == {"old", "new"}


def test_a_kill_while_an_unfinished_replacement_is_dropped_leaves_it_ours(
    tmp_path: Path,
) -> None:
    code = KILLED.replace(
        "out = Path(sys.argv[1])", "out = Path(sys.argv[1])\nsys.addaudithook(watch)"
    )
    for place in range(12):
        folder = tmp_path / f"{place}"
        folder.mkdir()
        out = make_run(folder / "run", "old")
        staged = replacement.begin_replacement(out)
        for name in (
            "run.json",
            "config.toml",
            "training.jsonl",
            ROWS,
            "best.1.safetensors",
        ):
            (staged / name).parent.mkdir(parents=True, exist_ok=True)
            (staged / name).write_text("half")
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code, str(out), "exchanged", str(place)],
            check=False,
        )
        assert (out / "run.json").read_text() in ("old", "new")
        overwrite(out, "third")
        assert names(folder) == ["run"]
    assert (out / "run.json").read_text() == "third"


def test_the_folders_are_exchanged_in_one_step(tmp_path: Path) -> None:
    one, other = make_run(tmp_path / "a", "a"), make_run(tmp_path / "b", "b")
    assert replacement._exchange(one, other)
    assert (one / "run.json").read_text() == "b"
    with pytest.raises(FileNotFoundError):
        replacement._exchange(one, tmp_path / "none")


def test_a_system_that_refuses_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(one: Path, other: Path) -> bool:
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(replacement, "_exchange", refuse)
    out = make_run(tmp_path / "run", "old")
    with pytest.raises(StorageFullError, match="permission denied"):
        overwrite(out)
    assert (out / "run.json").read_text() == "old"
