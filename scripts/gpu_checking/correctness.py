"""The tests marked ``gpu``, room by room and side by side."""

import importlib.util
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from gpu_checking.steps import Context

ROOT = Path(__file__).resolve().parents[2]
FILES = {
    "tests/unit/engine/cuda/test_gpu.py": True,
    "tests/unit/embedding/cuda/test_embedding_gpu.py": False,
    "tests/unit/gnn/cuda/test_gnn_gpu.py": False,
    "tests/unit/mining/test_mining_gpu.py": True,
}
"""By name: collecting all tests takes longer than most of these. Whether pytest-xdist is to
spread them over processes: cores compile while the card waits. The others do so by
themselves."""
_COUNTED = re.compile(r"(\d+) (passed|failed|skipped|errors?|deselected)")


def planned() -> list[str]:
    """Return the rows that a card is to give."""
    return list(FILES)


def check(context: Context) -> None:
    """Run all files at once, each with a log of its own; simulated, only collect them."""
    folder = Path(os.environ["GPU_CHECK_FOLDER"])
    options = ["--collect-only"] if context.is_simulated else ["-rfE", "--maxfail=40"]
    spread = ["-n", str(max(2, (os.cpu_count() or 1) // 3))]
    has_xdist = importlib.util.find_spec("xdist") is not None and not context.is_simulated
    running = {}
    for name, is_spread in FILES.items():
        log = folder / f"gpu_check_{Path(name).stem}.txt"
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-m",
            "gpu",
            "-q",
            "-p",
            "no:cacheprovider",
            *options,
            *(spread if is_spread and has_xdist else ()),
            name,
        ]
        with log.open("w") as words:
            running[name] = (
                subprocess.Popen(command, cwd=ROOT, stdout=words, stderr=words),
                log,
            )
    for name, (process, log) in running.items():
        row: dict[str, Any] = {"case": name}
        try:
            code = process.wait(max(context.deadline - time.monotonic(), 1))
        except subprocess.TimeoutExpired:
            process.kill()
            context.tell(row | {"error": f"not done in time: {last_line(log)}"})
            continue
        row |= {word: int(count) for count, word in _COUNTED.findall(last_line(log))}
        if code:
            failed = [it for it in log.read_text().splitlines() if it.startswith("FAILED")]
            row["error"] = "; ".join(failed)[:1500] or last_line(log)
        context.tell(row)


def last_line(log: Path) -> str:
    """Return the last line of a log that says something."""
    lines = [line for line in log.read_text().splitlines() if line.strip()]
    return lines[-1] if lines else ""
