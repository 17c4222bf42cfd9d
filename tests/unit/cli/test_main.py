"""What becomes of errors: exit code and one line, or the traceback of a fault of ours."""

import errno
import os
import re
import resource
import warnings

import pytest

from graphsys.cli import main as cli
from graphsys.cli.console import telling_what_is_kept
from graphsys.cli.options import parse_partitions
from graphsys.core.errors import (
    ConfigError,
    CorruptStoreError,
    InputError,
    NotConvergedError,
    TrainingFailedError,
)


def run_with(monkeypatch: pytest.MonkeyPatch, error: BaseException, *arguments: str) -> int:
    def fail(_: list[str]) -> int:
        raise error

    monkeypatch.setattr(cli, "_run", fail)
    return cli.main(arguments)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError("x.txt:2: got 3 columns"), 2),
        (ConfigError("dim: got 0"), 2),
        (TrainingFailedError("loss is nan"), 1),
        (NotConvergedError("stopped after 9 supersteps"), 1),
    ],
)
def test_our_errors_are_one_line_and_their_exit_code(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    code: int,
) -> None:
    assert run_with(monkeypatch, error) == code
    assert capsys.readouterr().err == f"error: {error}\n"


def test_a_command_warns_of_the_same_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def warn(_: list[str]) -> tuple[int, None]:
        for place in (1, 2):  # two places, or a place twice: Python would print both
            warnings.warn_explicit("rows are lost", UserWarning, "a.py", place)
        return 0, None

    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    monkeypatch.setattr(cli, "_run", warn)
    for _ in range(2):  # each command for itself
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            assert cli.main(["run"]) == 0
    assert capsys.readouterr().err.count("warning: rows are lost") == 2


def test_debug_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError):
        run_with(monkeypatch, InputError("x"), "info", "--debug")


def test_a_fault_of_ours_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ZeroDivisionError):
        run_with(monkeypatch, ZeroDivisionError())
    with pytest.raises(OSError, match="bad descriptor"):
        run_with(monkeypatch, OSError(errno.EBADF, "bad descriptor"))


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.ENOSPC, "no space left on device; free some space or choose another output"),
        (errno.EROFS, "read-only file system; choose an output where you may write"),
        (errno.ENOENT, "no such file or directory"),
        (errno.EACCES, "permission denied"),
    ],
)
def test_the_systems_refusals_are_one_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    number: int,
    message: str,
) -> None:
    assert run_with(monkeypatch, OSError(number, os.strerror(number), "there")) == 2
    assert capsys.readouterr().err == f"error: there: {message}\n"


def test_out_of_memory_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_with(monkeypatch, MemoryError()) == 2
    assert "--memory" in capsys.readouterr().err


def test_ctrl_c_is_130_and_says_what_is_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_with(monkeypatch, KeyboardInterrupt()) == 130
    assert "interrupted: nothing of this command is kept" in capsys.readouterr().err

    def told(_: list[str]) -> int:
        with telling_what_is_kept(lambda: "half of it; go on with --resume"):
            raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_run", told)
    assert cli.main(["train"]) == 130
    error = capsys.readouterr().err
    assert error == "interrupted: half of it; go on with --resume\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["bsf"], "error: no such command 'bsf'; see graphsys --help"),
        (["trian"], "'trian'; did you mean 'train'?; see graphsys --help"),
        (["pagerank", "web"], "'pagerank'; algorithms are run by graphsys run NAME"),
        (
            ["run", "sssp", "web", "source=1"],
            "(source=1); what an algorithm takes is given as --param source=VALUE\n",
        ),
        (
            ["run", "sssp", "web", "--source", "1"],
            "error: no such option: --source; what an algorithm takes is given as --",
        ),
        (
            ["mine", "triangle", "web"],
            "(web); write graphsys mine count GRAPH PATTERN, or see graphsys mine --help\n",
        ),
        (
            ["profile", "-o", "r.html", "run", "wcc", "web", "-o", "x.csv"],
            "after --: graphsys profile -o r.html -- run wcc web -o x.csv",
        ),
        (["profile", "-o", "r.html", "--", "rnu"], "unknown command to profile 'rnu'"),
    ],
)
def test_commands_that_are_not_there_are_one_clear_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    "text", ["", "0", "-1", "two", "user=", "user=0", "4,8", "a=1,a=2", "a=1,2", "=3"]
)
def test_partitions_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--partitions"):
        parse_partitions(text)


def test_too_many_open_files_names_the_limit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    hidden = CorruptStoreError("part-0.arrow is missing")
    hidden.__cause__ = plain
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    for error in (plain, hidden, ImportError(f"x.so: {os.strerror(errno.EMFILE)}")):
        assert run_with(monkeypatch, error) == 2
        found = capsys.readouterr().err
        assert found.startswith(f"error: too many open files: a process may open {limit:,}")
        assert found.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.EIO, "", "there"), "there: input/output error"),
        (RuntimeError("can't start new thread"), "cannot start a thread.*ulimit -u"),
        (RuntimeError("... DefaultCPUAllocator: can't allocate memory: ..."), "--memory"),
    ],
)
def test_what_the_machine_refuses_is_one_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    message: str,
) -> None:
    assert run_with(monkeypatch, error) == 2
    found = capsys.readouterr().err
    assert re.search(f"^error: .*{message}", found)
    assert found.count("\n") == 1


@pytest.mark.parametrize("option", ["-o", "--out", "--out="])
@pytest.mark.parametrize("command", ["ingest edges.txt", "train embedding g", "run wcc g"])
def test_an_empty_output_is_not_the_current_folder(
    command: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [option, ""] if option != "--out=" else [option]
    assert cli.main([*command.split(), *given, "--overwrite"]) == 2
    assert f"{option.rstrip('=')}: got an empty name" in capsys.readouterr().err
