"""Two machines whose network breaks: namespaces of this one with a cable between them."""

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from graphsys.datasets import generators
from graphsys.engine import algorithms
from graphsys.storage import ingest
from tests.processes import descendants, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

BIN = Path(sys.executable).parent
PORT = 6391
LONG = ["--param", "iterations=100000", "--param", "tolerance=1e-300"]


class Machines:
    """A head and another machine, each a network namespace with a Ray node of one core.

    Args:
        place: Folder for Ray's sessions, of a short path.
    """

    def __init__(self, place: Path) -> None:
        self._place, self._tag = place, f"gs{os.getpid()}"
        self.names = [f"{self._tag}{side}" for side in "ab"]
        self.addresses = ["10.77.13.1", "10.77.13.2"]
        self._started: list[subprocess.Popen[bytes]] = []
        token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        self._environment = os.environ | token

    def open(self) -> None:
        """Lay the cable and start the nodes.

        Raises:
            OSError: This machine does not let us.
            subprocess.CalledProcessError: Likewise.
        """
        ends = [f"{self._tag}{side}" for side in "xy"]
        _ip("link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
        for name, end, address in zip(self.names, ends, self.addresses, strict=True):
            _ip("netns", "add", name)
            _ip("link", "set", end, "netns", name)
            inside = ("-n", name)
            _ip(*inside, "addr", "add", f"{address}/24", "dev", end)
            _ip(*inside, "link", "set", end, "up")
            _ip(*inside, "link", "set", "lo", "up")
        self._end = ends[1]
        options = [
            "--num-cpus=1",
            "--object-store-memory=100000000",
            "--block",
            "--disable-usage-stats",
        ]
        where = f"{self.addresses[0]}:{PORT}"
        self._start(
            0,
            [
                "--head",
                f"--port={PORT}",
                f"--temp-dir={self._place}",
                "--include-dashboard=false",
                *options,
            ],
        )
        wait_for(lambda: list(self._place.glob("session_latest/sockets/raylet")))
        self._start(1, [f"--address={where}", *options])

        def are_two() -> bool:
            done = self.run(["doctor", "--cluster", where, "--json"]).communicate()[0]
            return b'"workers": 2' in done or b'"workers":2' in done

        wait_for(are_two)

    def _start(self, which: int, options: Sequence[str]) -> None:
        address = f"--node-ip-address={self.addresses[which]}"
        command = self._inside(which, [BIN / "ray", "start", address, *options])
        self._started.append(
            subprocess.Popen(
                command,
                env=self._environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )

    def _inside(self, which: int, command: Sequence[Any]) -> list[str]:
        return ["ip", "netns", "exec", self.names[which], *map(str, command)]

    def run(self, words: Sequence[Any]) -> "subprocess.Popen[bytes]":
        """Start a command of graphsys on the head."""
        return subprocess.Popen(
            self._inside(0, [BIN / "graphsys", *words]),
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def cut(self) -> None:
        """Have all packets of the other machine lost."""
        self._neighbor("replace", "lladdr", "02:00:00:00:00:99", "nud", "permanent")

    def mend(self) -> None:
        """Have them arrive again."""
        self._neighbor("del")

    def _neighbor(self, verb: str, *words: str) -> None:
        where = (self.addresses[0], "dev", self._end)
        _ip("-n", self.names[1], "neigh", verb, where[0], *words, *where[1:])

    def close(self) -> None:
        """End the nodes and take the cable away."""
        for node in self._started:
            below = [pid for pid, _ in descendants(node.pid)]
            node.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                node.wait(10)
            for pid in [*below, node.pid]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            node.wait()
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture(scope="module")
def machines() -> Iterator[Machines]:
    place = Path(tempfile.mkdtemp(prefix="gs-net-"))
    made = Machines(place)
    try:
        try:
            made.open()
        except (OSError, subprocess.CalledProcessError) as err:
            pytest.skip(f"no network namespaces here: {err}")
        yield made
    finally:
        made.close()
        shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("net") / "web"
    ingest(generators.rmat(10, 8, seed=2), path, partitions=4, coalesce=True).graph.close()
    return path


def begun(machines: Machines, store: Path, folder: Path, words: Sequence[str]) -> Any:
    """Start PageRank on both machines, and return it when it is in the middle."""
    command = machines.run(
        [
            "run",
            "pagerank",
            store,
            "-o",
            folder / "ranks.parquet",
            *words,
            "--checkpoint",
            folder / "kept",
            "--checkpoint-every",
            "100",
            "--cluster",
            f"{machines.addresses[0]}:{PORT}",
        ]
    )
    wait_for(lambda: list(folder.glob("kept/*")))
    assert command.poll() is None
    return command


def test_a_run_goes_on_when_the_network_does(
    machines: Machines, store: Path, tmp_path: Path
) -> None:
    words = ["--param", "iterations=6000", "--param", "tolerance=1e-300"]
    command = begun(machines, store, tmp_path, words)
    machines.cut()
    time.sleep(4)
    assert command.poll() is None
    machines.mend()
    _, errors = command.communicate(timeout=300)
    assert command.returncode == 0, errors.decode()
    found = pq.read_table(tmp_path / "ranks.parquet")["value"].to_numpy()
    alone = algorithms.get("pagerank")(store, iterations=6000, tolerance=1e-300)
    assert found == pytest.approx(alone.to_numpy()["value"], rel=1e-9)


def test_a_machine_that_does_not_come_back_ends_the_run_with_a_line(
    machines: Machines, store: Path, tmp_path: Path
) -> None:
    command = begun(machines, store, tmp_path, LONG)
    machines.cut()
    try:
        _, errors = command.communicate(timeout=400)
    finally:
        machines.mend()
    assert command.returncode == 1, errors.decode()
    assert errors.decode().strip().splitlines()[-1].startswith("error: ")
    assert "Traceback" not in errors.decode()
