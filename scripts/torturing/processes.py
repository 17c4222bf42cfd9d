"""Commands in forked processes, or by the installed command: their ends."""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LIMIT_S: Final = 90.0
_BROKEN: Final = 70
_MOST_FILES: Final = 100


Perform = Callable[[list[str]], int]
_COMMANDS: dict[str, Perform] = {}
"""What forks do besides the commands of graphsys."""


def command(name: str) -> Callable[[Perform], Perform]:
    """Have forks do a function by a command's name; it takes the words behind that."""

    def keep(function: Perform) -> Perform:
        _COMMANDS[name] = function
        return function

    return keep


@dataclass(frozen=True)
class Outcome:
    """How a command ended.

    Attributes:
        arguments: The command line, without the program.
        code: Its exit code, or minus the signal that ended it.
        out: What it printed to stdout.
        err: What it printed to stderr.
        seconds: How long it took.
        is_late: Whether it was ended because it took too long.
    """

    arguments: tuple[str, ...]
    code: int
    out: str
    err: str
    seconds: float
    is_late: bool = False

    @property
    def was_killed(self) -> bool:
        """Whether SIGKILL ended it, and not for being late."""
        return self.code == -signal.SIGKILL and not self.is_late


def forked(
    arguments: Sequence[str],
    setup: Callable[[], None] | None = None,
    *,
    kill_after_s: float | None = None,
    limit_s: float = LIMIT_S,
) -> Outcome:
    """Run a command of graphsys in a fork of this process.

    Args:
        arguments: The command line, without the program.
        setup: Called in the child before the command.
        kill_after_s: Kill it then, if it has not ended.
        limit_s: End it then: it hangs.
    """
    pipes = os.pipe(), os.pipe()  # no files: their size may be limited
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        try:
            _perform(list(arguments), setup, pipes[0][1], pipes[1][1])
        finally:
            os._exit(_BROKEN)  # whatever happens, this process never goes on
    for _, writing in pipes:
        os.close(writing)
    texts = [bytearray(), bytearray()]
    wait_s = limit_s if kill_after_s is None else kill_after_s
    is_late = _listen(pid, dict(zip((it[0] for it in pipes), texts, strict=True)), wait_s)
    if is_late:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    for reading, _ in pipes:
        os.close(reading)
    seconds = time.monotonic() - began
    is_hang = is_late and kill_after_s is None
    out, err = (text.decode("utf-8", "replace") for text in texts)
    code = os.waitstatus_to_exitcode(status)
    return Outcome(tuple(arguments), code, out, err, seconds, is_hang)


def installed(
    arguments: Sequence[str],
    *,
    environment: dict[str, str] | None = None,
    prefix: Sequence[str] = (),
    limit_s: float = 3 * LIMIT_S,
) -> Outcome:
    """Run the installed command in a process of its own.

    Args:
        arguments: The command line, without the program.
        environment: Variables to add.
        prefix: A command that runs it, as ``unshare`` does.
        limit_s: End it then: it hangs.
    """
    program = str(Path(sys.executable).parent / "graphsys")
    began = time.monotonic()
    try:
        done = subprocess.run(
            [*prefix, program, *arguments],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=limit_s,
            env={**os.environ, **(environment or {})},
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Outcome(tuple(arguments), -signal.SIGKILL, "", "", limit_s, True)
    texts = [text.decode("utf-8", "replace") for text in (done.stdout, done.stderr)]
    seconds = time.monotonic() - began
    return Outcome(tuple(arguments), done.returncode, texts[0], texts[1], seconds)


def _perform(
    arguments: list[str], setup: Callable[[], None] | None, out: int, err: int
) -> None:
    """Be the child: never returns."""
    code = 1
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        for descriptor in range(3, _MOST_FILES):  # as few are open as in a new process
            with contextlib.suppress(OSError):
                os.close(descriptor)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", closefd=False)
        if setup is not None:
            setup()
        from graphsys.cli.main import main

        own = _COMMANDS.get(arguments[0])
        code = own(arguments[1:]) if own else main(arguments)
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
        code = 1
    finally:
        with contextlib.suppress(BaseException):
            sys.stderr.flush()
        os._exit(code)


def _listen(pid: int, texts: dict[int, bytearray], seconds: float) -> bool:
    """Read what a child says, so long at most; return whether it still runs."""
    handle, end = os.pidfd_open(pid), time.monotonic() + max(0.0, seconds)
    poll = select.poll()
    for descriptor in (handle, *texts):
        poll.register(descriptor, select.POLLIN)
    is_over = False
    try:
        while True:
            left = 0.0 if is_over else max(0.0, end - time.monotonic())
            ready = [descriptor for descriptor, _ in poll.poll(left * 1000)]
            for descriptor in set(ready) - {handle}:
                piece = os.read(descriptor, 1 << 16)
                texts[descriptor] += piece
                if not piece:
                    poll.unregister(descriptor)
            is_over |= handle in ready
            if is_over and set(ready) <= {handle}:
                return False
            if not ready:
                return not is_over
    finally:
        os.close(handle)
