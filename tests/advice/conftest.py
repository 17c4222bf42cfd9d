"""The command in this process, and graphs and runs that are made once."""

import json
import re
import shlex
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from graphsys.cli import main as cli
from tests.advice.case import Case
from tests.advice.messages import is_told
from tests.conftest import ROOT

FEW = "--set epochs=1 --set dim=4"
MADE = {
    "g": ("ingest twice.txt -o g",),
    "u": ("ingest twice.txt -o u --undirected --coalesce",),
    "labeled": (
        "ingest --nodes user=users.csv --edges user,trusts,user=trust.csv -o labeled",
    ),
    "run": (f"train embedding g -o run {FEW}",),
    "parted": (
        "ingest --nodes user=parted.csv --edges user,trusts,user=trust.csv -o parted",
    ),
    "net": (f"train gnn parted -o net {FEW}",),
    "links": (f"train gnn g -o links {FEW} --set task=link_prediction",),
    "flip": ("ingest flip.txt -o flip",),
}
"""Commands that make each graph or run, in a folder with ``FILES``."""
FILES = {
    "twice.txt": "1 2\n1 2\n1 2\n2 3\n",
    "users.csv": "id,label\na,0\nb,1\nc,0\n",
    "parted.csv": "id,label,split\na,0,train\nb,1,train\nc,0,test\n",
    "trust.csv": "src,dst\na,b\nb,c\nc,a\n",
    "flip.txt": "x a\na b\na c\nb y\nc y\n",
}


@dataclass(frozen=True)
class Done:
    """What a command has done.

    Attributes:
        code: Its exit code.
        out: What it printed to stdout.
        said: What it printed to stderr, on one line.
    """

    code: int
    out: str
    said: str


Command = Callable[[str], Done]
Follow = Callable[[Case], Done]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def command(folder: Path, capfd: pytest.CaptureFixture[str]) -> Command:
    """Return a function that does a command, here or, after ``$``, in a shell."""

    def do(line: str) -> Done:
        capfd.readouterr()
        if line.startswith("$ "):
            # what a budget has to be depends on all that a process has done before
            own = Path(sys.executable).parent / "graphsys"
            typed = line[2:].replace("{python}", sys.executable)
            typed = typed.replace("GRAPHSYS", str(own))
            shell = ["bash", "-c", f"set -eo pipefail; {typed}"]
            code = subprocess.run(shell, cwd=folder, check=False).returncode
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("always", UserWarning)
                words = shlex.split(line.removeprefix("graphsys "))
                code = cli.main(words)
        out, err = capfd.readouterr()
        return Done(code, out, " ".join(err.split()))

    return do


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that makes a graph or a run, once."""
    place = tmp_path_factory.mktemp("made")
    for name, content in FILES.items():
        (place / name).write_text(content)

    def make(name: str) -> Path:
        if not (place / name).exists():
            with pytest.MonkeyPatch.context() as patched:
                patched.chdir(place)
                for line in MADE[name]:
                    assert cli.main(shlex.split(line)) == 0, line
        return place / name

    return make


@pytest.fixture
def follow(folder: Path, command: Command, made: Callable[[str], Path]) -> Follow:
    """Return a function that meets the message of a case and does what it advises."""

    def do(case: Case) -> Done:
        if shutil.which(case.program) is None:
            pytest.skip(f"{case.program} is not installed")
        for name in case.uses:
            shutil.copytree(made(name), folder / name)
        for name, content in (FILES | case.files).items():
            data = content.encode() if isinstance(content, str) else content
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
        for line in case.before:
            done = command(line)
            assert done.code == 0, done.said
        refused = command(case.command)
        assert refused.code == case.code, refused.said
        if case.code:
            assert refused.said.count("error: ") == 1, refused.said
        advice = re.search(case.advice, refused.said)
        assert advice is not None, refused.said
        source = (ROOT / case.told_in).read_text()
        steps = [step.format(*advice.groups()) for step in case.then]
        for remedy in case.remedies:
            assert is_told(refused.said, remedy, source), f"{case.told_in} says no {remedy}"
            is_done = any(remedy.removeprefix("graphsys ") in step for step in steps)
            is_left_out = remedy in case.command and not is_done
            assert is_done or is_left_out, f"{remedy} is not followed by {steps}"
        for step in steps:
            done = command(step)
            assert done.code == 0, done.said
        if case.quiet:
            assert re.search(case.advice, done.said) is None, "it is advised again"
        if case.expected:
            told = json.loads(done.out)
            found = {key: told.get(key) for key in case.expected}
            assert found == case.expected
        return done

    return do
