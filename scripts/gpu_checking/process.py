"""A step in a process of its own: its rows at once in the result, its words in a log."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from gpu_checking.steps import Step

ROOT = Path(__file__).resolve().parents[2]
_COMPATIBLE = Path(__file__).parent / "compatible"
"""Has a ``sitecustomize``: a borrowed machine's packages are as they are."""
_LOG_BYTES = 2 << 20
"""Of a step's log, at most: eight files come back from a borrowed machine, of 16 MiB."""


def run_step(step: Step, out: Path, seconds: float, *, is_simulated: bool) -> None:
    """Run a step for at most some seconds; append its rows and its end to the result.

    Args:
        step: The step.
        out: The result, JSON lines; the step's words go to a log beside it.
        seconds: After these, the step's process group is killed.
        is_simulated: Whether the simulator and the interpreter stand in for a GPU.
    """
    began = time.monotonic()
    command = [sys.executable, "-P", "-m", "gpu_checking.child", step.name, str(seconds)]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, [ROOT / "scripts", ROOT, _COMPATIBLE])),
        "PYTHONUNBUFFERED": "1",
        "GPU_CHECK_FOLDER": str(out.parent.resolve()),
    }
    if is_simulated:
        environment |= {"NUMBA_ENABLE_CUDASIM": "1", "TRITON_INTERPRET": "1"}
    log = out.with_name(f"{out.stem}.log")
    with log.open("ab") as words:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=words,
            text=True,
            start_new_session=True,
        )
        killer = threading.Timer(seconds, kill_group, [process])
        killer.start()
        counts = {"rows": 0, "errors": 0}
        assert process.stdout is not None
        for line in process.stdout:
            row = as_row(line)
            if row is None:
                if words.tell() < _LOG_BYTES:
                    words.write(line.encode())
                    words.flush()
                continue
            counts["rows"] += 1
            counts["errors"] += "error" in row
            append(out, {"step": step.name, **row})
        code = process.wait()
        is_late = not killer.is_alive() and code < 0
        killer.cancel()
        kill_group(process)  # what it left running
    status = "timeout" if is_late else "failed" if code or counts["errors"] else "done"
    took = round(time.monotonic() - began, 1)
    append(
        out,
        {
            "step": step.name,
            "kind": "end",
            "status": status,
            "code": code,
            "seconds": took,
            **counts,
        },
    )
    print(f"{step.name}: {status} after {took} s, {counts['rows']} rows", flush=True)


def kill_group(process: subprocess.Popen[str]) -> None:
    """Kill a process and all that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def as_row(line: str) -> dict[str, Any] | None:
    """Return the row that a line of output is, or None for other words."""
    if not line.startswith("{"):
        return None
    try:
        row = json.loads(line)
    except json.JSONDecodeError:
        return None
    return row if isinstance(row, dict) else None


def append(out: Path, row: dict[str, Any]) -> None:
    """Append a row to the result, on the disk before anything else happens."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("a") as file:
        file.write(json.dumps(row) + "\n")
        file.flush()
        os.fsync(file.fileno())
