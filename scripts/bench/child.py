"""A run in a process of its own: fresh memory, fresh imports, its own peak."""

import importlib
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.harness import Outcome

_INTERVAL_S = 0.02
_PSS_INTERVAL_S = 0.5  # the kernel walks all pages for it


class ChildFailedError(Exception):
    """A run in a child ended with an error."""


def in_child(
    target: str, *, python: str = sys.executable, pss: bool = False, **arguments: Any
) -> Callable[[], Outcome]:
    """Return a run that calls ``target`` in a fresh process.

    Args:
        target: ``package.module:function``. The function returns what it computed, or an
            :class:`Outcome` if it timed itself; else all of the call is timed. The import
            of its module is ``load_s``.
        python: The interpreter, where a peer has an environment of its own; it sees
            ``bench`` but not graphsys.
        pss: Sample the proportional set size instead, which shares what processes share
            and counts mapped files: for peers that work in several processes.
        arguments: Passed on as JSON.
    """

    def run() -> Outcome:
        with tempfile.TemporaryDirectory() as folder:
            answer = Path(folder) / "answer.json"
            command = [python, "-P", "-m", "bench.child", target]
            process = subprocess.Popen(
                [*command, json.dumps(arguments, default=str), str(answer)],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            errors: list[str] = []
            reader = threading.Thread(target=lambda: errors.append(process.stderr.read()))
            reader.start()
            peak = _watch(process, pss)
            reader.join()
            if process.returncode != 0:
                raise ChildFailedError(f"{target} failed:\n{''.join(errors)[-4000:]}")
            return Outcome(**{**json.loads(answer.read_text()), "peak_bytes": peak})

    return run


def _watch(process: "subprocess.Popen[str]", pss: bool) -> int:
    """Sample the process and what it started until it ends; return the peak in bytes."""
    peak = 0
    while process.poll() is None:
        peak = max(peak, tree_bytes(process.pid, pss=pss))
        time.sleep(_PSS_INTERVAL_S if pss else _INTERVAL_S)
    return peak


def tree_bytes(pid: int, *, pss: bool = False) -> int:
    """Return RssAnon + RssShmem, or Pss, of a process and its descendants, in bytes."""
    total = 0
    file, names = "status", ("RssAnon:", "RssShmem:")
    if pss:
        file, names = "smaps_rollup", ("Pss:",)
    try:
        for line in Path(f"/proc/{pid}/{file}").read_text().splitlines():
            if line.startswith(names):
                total += int(line.split()[1]) * 1024
        children = [
            child
            for task in Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
    except OSError:  # it has just ended
        return total
    return total + sum(tree_bytes(int(child), pss=pss) for child in children)


def main(target: str, arguments: str, answer: str) -> None:
    """Call the target and write its outcome."""
    module, _, function = target.partition(":")
    began = time.perf_counter()
    call = getattr(importlib.import_module(module), function)
    load_s = time.perf_counter() - began
    began = time.perf_counter()
    result = call(**json.loads(arguments))
    if not isinstance(result, Outcome):
        result = Outcome(seconds=time.perf_counter() - began, result=result)
    outcome = {
        "seconds": result.seconds,
        "result": result.result,
        "load_s": load_s + (result.load_s or 0.0),
        "compile_s": result.compile_s,
    }
    Path(answer).write_text(json.dumps(outcome, default=str))


if __name__ == "__main__":
    main(*sys.argv[1:])
