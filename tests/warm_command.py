"""The ``graphsys`` command in forks of a process that has imported what it needs.

Two seconds of most commands are spent on importing torch, numba and Arrow. What only looks
at what a command says and leaves behind need not pay for them again each time; what
measures memory, time or imports starts the installed command itself.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import pkgutil
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import graphsys
from graphsys.core.errors import MissingDependencyError

NOT_IMPORTED = ("__main__", "cuda", "distributed", "interop", "testing", "triton")
"""What only some commands need.

The threads that imports start, those of BLAS and of Arrow's allocator, are started again in
a fork by handlers of their own; numba and torch start theirs at their first loop.
"""
OF_OTHERS = ("pandas", "safetensors", "typer._adapters")
"""What libraries import on their first use."""
OF_THE_TEST = ("PYTEST_CURRENT_TEST", "PYTHONBREAKPOINT")
"""Variables that tests, or Ray in them, set, and that mean nothing to the command."""
OF_RAY = "RAY_"
"""What the names of variables of Ray begin with. It is not imported before a fork, and sets
some for good in the process of the test: a fork gets those of its caller."""


class WarmCommand:
    """Runs commands, one after the other, in forks of one process.

    Attributes:
        environment: What the process was started with; a command with any other variable
            needs a process of its own, since libraries read some as they are imported.
    """

    def __init__(self) -> None:
        self.environment = _environment()
        self._server = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            cwd="/",
        )

    def fits(self) -> bool:
        """Return whether a command would find the variables that it finds here."""
        return self._server.poll() is None and _environment() == self.environment

    def __call__(
        self,
        arguments: Sequence[str],
        cwd: Path | None,
        timeout: float,
        packages: Path | None = None,
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command.

        Args:
            arguments: Its words.
            cwd: Where; None for here.
            timeout: Seconds at most.
            packages: A folder of others' packages, as if it were PYTHONPATH.

        Raises:
            subprocess.TimeoutExpired: It took longer and was killed.
        """
        with tempfile.TemporaryDirectory() as folder:
            texts = [Path(folder, name) for name in ("out", "err")]
            asked: dict[str, Any] = {
                "arguments": list(arguments),
                "cwd": str(cwd or Path.cwd()),
                "texts": list(map(str, texts)),
                "of_ray": _of_ray(),
                "packages": packages and str(packages),
            }
            end = time.monotonic() + timeout
            pid = self._ask(asked)
            try:
                code = self._answer(end)
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                self._answer(time.monotonic() + timeout)
                raise subprocess.TimeoutExpired(asked["arguments"], timeout) from None
            out, err = (text.read_bytes().decode() for text in texts)
        return subprocess.CompletedProcess(asked["arguments"], code, out, err)

    def close(self) -> None:
        """End the process."""
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait(30)

    def _ask(self, asked: dict[str, Any]) -> int:
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(asked).encode() + b"\n")
        self._server.stdin.flush()
        return self._answer(time.monotonic() + 120)

    def _answer(self, end: float) -> int:
        assert self._server.stdout is not None
        # not select.select, which refuses descriptors from 1024 on
        with selectors.DefaultSelector() as selector:
            selector.register(self._server.stdout, selectors.EVENT_READ)
            if not selector.select(end - time.monotonic()):
                raise TimeoutError
        return int(self._server.stdout.readline())


@functools.cache
def shared() -> WarmCommand:
    """Return the one of this process and its tests."""
    return WarmCommand()


_CLIENT = """#!{python} -SI
import json, os, socket, sys

given = dict(os.environ)
for name in {left_out!r}:
    given.pop(name, None)
if given != {environment!r}:
    os.execv({command!r}, [{command!r}, *sys.argv[1:]])
server = socket.socket(socket.AF_UNIX)
server.connect({place!r})
asked = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(server, [b"%12d" % len(asked)], [0, 1, 2])
server.sendall(asked)
sys.exit(int(server.recv(12) or 1))
"""
"""The program of a shell: it hands over its words, folder, variables and files."""
OF_SHELLS = (*OF_THE_TEST, "PATH", "PWD", "OLDPWD", "SHLVL", "_", "DATA")
"""Variables in which a shell of pages differs from us, and that no library looks at."""


class WarmPrograms:
    """Programs for a shell, of which ``graphsys`` runs in forks of one process.

    Args:
        programs: The folder of an environment's programs. Its ``graphsys`` is called where
            a variable differs that libraries may look at.
        folder: Where ours goes; a new one, with a short name.

    Attributes:
        path: What goes first in ``PATH``.
    """

    def __init__(self, programs: Path, folder: Path) -> None:
        self._folder, self.path = folder, f"{folder}:{programs}"
        client, place = folder / "graphsys", folder / "asked"
        known = {n: v for n, v in os.environ.items() if n not in OF_SHELLS}
        text = {
            "python": sys.executable,
            "left_out": OF_SHELLS,
            "environment": known,
            "command": str(programs / "graphsys"),
            "place": str(place),
        }
        client.write_text(_CLIENT.format(**text))
        client.chmod(0o755)
        command = [str(programs / "python"), "-P", __file__, str(place)]
        self._server = subprocess.Popen(command, cwd="/")
        end = time.monotonic() + 120
        while not place.exists():
            assert self._server.poll() is None
            assert time.monotonic() < end
            time.sleep(0.02)

    def close(self) -> None:
        """End the process."""
        self._server.terminate()
        self._server.wait(30)
        shutil.rmtree(self._folder)


def _environment() -> dict[str, str]:
    left_out = (*OF_THE_TEST, *_of_ray())
    return {name: value for name, value in os.environ.items() if name not in left_out}


def _of_ray() -> dict[str, str]:
    return {n: value for n, value in os.environ.items() if n.startswith(OF_RAY)}


def serve() -> None:
    """Fork for every line of stdin; print each child's pid, and its exit code."""
    _prepare()
    for line in sys.stdin:
        asked = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _be_the_command(**asked)
        os.write(1, b"%d\n" % pid)
        os.write(1, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    gc.unfreeze()  # else Triton's modules say that they leak


def serve_shells(place: str) -> None:
    """Fork for every call of a client that connects; each is told its exit code."""
    _prepare()
    server = socket.socket(socket.AF_UNIX)
    server.bind(place + ".new")
    server.listen()
    os.rename(place + ".new", place)  # now others find it, who need not try again
    while True:
        client, _ = server.accept()
        with contextlib.suppress(ChildProcessError):  # those that have ended since
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if os.fork():
            client.close()
            continue
        server.close()
        begin, files, _, _ = socket.recv_fds(client, 12, 3)
        with client.makefile("rb") as reader:
            arguments, cwd, variables = json.loads(reader.read(int(begin)))
        os.environ.clear()
        os.environ.update(variables)
        _end(arguments, cwd, files, partial(_tell, client))


def _tell(client: socket.socket, code: int) -> None:
    client.sendall(b"%d" % code)


def _prepare() -> None:
    """Import what commands need; leave it out where a fork looks for garbage."""
    _import_all(graphsys)
    for name in OF_OTHERS:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()


def _import_all(package: ModuleType) -> None:
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if found.name.rpartition(".")[2] in NOT_IMPORTED:
            continue
        # of an environment without extras: a command that needs one says so itself
        with contextlib.suppress(ImportError, MissingDependencyError):
            module = importlib.import_module(found.name)
            if found.ispkg:
                _import_all(module)


def _be_the_command(
    arguments: list[str],
    cwd: str,
    texts: list[str],
    of_ray: dict[str, str],
    packages: str | None = None,
) -> None:
    """Be the child: never returns."""
    if packages:
        os.environ["PYTHONPATH"] = packages
        sys.path.insert(0, packages)
    for name in _of_ray().keys() - of_ray.keys():
        del os.environ[name]
    os.environ.update(of_ray)
    files = []
    for descriptor, name in enumerate([os.devnull, *texts]):
        flags = os.O_WRONLY | os.O_CREAT if descriptor else os.O_RDONLY
        files.append(os.open(name, flags))
    _end(arguments, cwd, files, lambda _: None)


def _end(
    arguments: list[str], cwd: str, files: Sequence[int], tell: Callable[[int], None]
) -> None:
    """Run the command with files for stdin, stdout and stderr, tell its code, and exit."""
    code = 1
    try:
        for descriptor, opened in enumerate(files):
            os.dup2(opened, descriptor)
            os.close(opened)
        sys.stdin, sys.stdout, sys.stderr = (
            os.fdopen(descriptor, mode, closefd=False)
            for descriptor, mode in ((0, "r"), (1, "w"), (2, "w"))
        )
        os.chdir(cwd)
        sys.argv = ["graphsys", *arguments]
        from graphsys.cli.main import main

        code = main(arguments)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            threading._shutdown()  # type: ignore[attr-defined] # what an end waits for
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
        with contextlib.suppress(OSError):
            tell(code)
        os._exit(code)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        serve_shells(sys.argv[1])
    else:
        serve()
