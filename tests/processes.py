"""Processes of a test: those below one, waiting for something, a running Ray cluster."""

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

SIMULATED = {"NUMBA_ENABLE_CUDASIM": "1"}
"""What chooses numba's CUDA simulator, before numba is imported."""
INTERPRETED = {"TRITON_INTERPRET": "1"}
"""What chooses Triton's interpreter."""


def printed_by(
    *words: object,
    environment: dict[str, str] | None = None,
    without: str = "",
    timeout: float | None = None,
) -> list[str]:
    """Run Python at the root in a process of its own; return the lines that it prints.

    Args:
        words: What follows ``python``.
        environment: Variables besides this process's.
        without: One of its variables that is left out.
        timeout: Seconds.
    """
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if k != without} | (environment or {}),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


def rows_of(module: str, *cases: str, **options: Any) -> dict[str, dict[str, Any]]:
    """Return the rows of JSON that a module prints, by their case."""
    rows = map(json.loads, printed_by("-m", module, *cases, **options))
    return {row["case"]: row for row in rows}


def printed_by_case(
    request: pytest.FixtureRequest, program: str, **options: Any
) -> dict[str, list[str]]:
    """Run a program for all cases of a file that are tested, in one process.

    Args:
        request: Of a fixture of the file.
        program: Text of the program. It finds the cases, the parameters ``case``, in
            ``sys.argv``, and prints each in a line of its own ahead of its lines.
        options: For :func:`printed_by`.
    """
    chosen = [it for it in request.session.items if it.path == request.path]
    cases = dict.fromkeys(it.callspec.params["case"] for it in chosen)  # type: ignore[attr-defined]
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in printed_by("-c", program, *cases, **options):
        if line in cases:
            lines = found.setdefault(line, [])
        else:
            lines.append(line)
    return found


def descendants(process: int) -> list[tuple[int, str]]:
    """Return the processes below one, with their command lines.

    Numbers of processes begin anew at the largest one, so that a child's may be the
    smaller: nothing is taken from their order.
    """
    listed = subprocess.run(
        ["ps", "-e", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    )
    children: dict[int, list[tuple[int, str]]] = {}
    for line in listed.stdout.splitlines():
        pid, parent, *command = line.split(None, 2)
        children.setdefault(int(parent), []).append((int(pid), " ".join(command)))
    found: list[tuple[int, str]] = []
    above = [process]
    while above:
        below = children.get(above.pop(), [])
        found += below
        above += [pid for pid, _ in below]
    return found


def wait_for(condition: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def environ_of(pid: str) -> str:
    """Return the environment of a process, empty where it has ended."""
    try:
        return Path(f"/proc/{pid}/environ").read_text(errors="replace")
    except OSError:
        return ""


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@contextlib.contextmanager
def running_cluster(
    monkeypatch: pytest.MonkeyPatch,
    programs: Path = Path(sys.executable).parent,
    start: str = "start --head",
) -> Iterator[str]:
    """Have a cluster of two processors, as users start one; its environment is ours.

    Args:
        monkeypatch: Sets the token that the cluster asks for.
        programs: The folder of Ray's command.
        start: What the command is given to have a cluster.
    """
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    place = Path(tempfile.mkdtemp(prefix="gs-ray-"))  # sockets need short paths
    head = subprocess.Popen(
        [
            programs / "ray",
            *start.split(),
            "--block",
            "--num-cpus=2",
            f"--port={port}",
            f"--temp-dir={place}",
            "--include-dashboard=false",
            "--object-store-memory=100000000",
            "--disable-usage-stats",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(lambda: list(place.glob("session_latest/sockets/raylet")))
        yield f"127.0.0.1:{port}"
        assert head.poll() is None  # it is left as it is
    finally:
        below = [pid for pid, _ in descendants(head.pid)]
        head.terminate()
        head.wait(30)
        for pid in below:  # Ray's agents outlive a head that is ended
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(place, ignore_errors=True)
