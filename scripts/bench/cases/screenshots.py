"""Pictures of a report's page, taken by a browser, with what they were taken of.

Two runs on a drawn graph are profiled, a vertex program and a training of a network, and
the first again with one thread; their pages and one of both are opened in headless
Chromium, as wide as a desk's screen and as a phone's.
``pages/screenshots.json`` keeps the checksum of what draws the page and of each picture:
``tests/unit/bench/test_screenshots.py`` fails where the page has changed since.
"""

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.output import RESULTS, ROOT

PAGES = RESULTS.parent / "pages"
RECORD = PAGES / "screenshots.json"
DRAWN_BY = ("graphsys/analysis/page", "graphsys/analysis/templates")
"""Folders whose files make a report a page."""
BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome", "chrome")
RUNS: dict[str, tuple[str, ...]] = {
    "bfs": ("run", "bfs", "web", "-o", "hops.parquet", "--param", "source=2"),
    "gnn": (
        "train",
        "gnn",
        "planted",
        "-o",
        "run",
        "--set",
        "epochs=2",
        "--set",
        "batch_size=400",
        "--set",
        "numbers=true",
        "--set",
        "fanouts=[10, 5]",
    ),
}
SHOTS: dict[str, tuple[str, int, bool]] = {
    # file: the run, the window's width, whether colors are those of the night
    "report_desktop": ("bfs", 1280, False),
    "report_phone_dark": ("bfs", 400, True),
    "training_desktop": ("gnn", 1280, False),
    "training_phone": ("gnn", 400, False),
    "comparison_desktop": ("comparison", 1280, False),
}
MOST_PIXELS = 4000
"""Of a picture's height: what lies below is left out."""
_MEASURE = (
    "<script>addEventListener('load', () => { document.title = 'high' + "
    "document.documentElement.scrollHeight + 'end'; });</script></body>"
)


def sources() -> dict[str, str]:
    """Return the SHA-256 of every file that draws the page, by its path."""
    files = [
        path
        for folder in DRAWN_BY
        for path in sorted((ROOT / folder).iterdir())
        if path.suffix in (".py", ".html")
    ]
    return {path.relative_to(ROOT).as_posix(): checksum(path) for path in files}


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def browser() -> str | None:
    """Return the path of a Chromium, or None."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def take(page: Path, picture: Path, width: int, *, is_dark: bool, program: str) -> None:
    """Take a picture of a whole page.

    Args:
        page: HTML.
        picture: PNG to write.
        width: Of the window, in pixels.
        is_dark: Whether to draw as for somebody who prefers dark colors.
        program: The browser.

    Raises:
        RuntimeError: the browser took none.
    """
    text = page.read_text(encoding="utf-8")
    if is_dark:
        text = text.replace("@media (prefers-color-scheme: dark)", "@media all")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        probed, plain = folder / "probed.html", folder / "page.html"
        probed.write_text(text.replace("</body>", _MEASURE), encoding="utf-8")
        plain.write_text(text, encoding="utf-8")
        seen = _browse(program, folder, width, 800, "--dump-dom", probed.as_uri())
        found = re.search(r"<title>high(\d+)end</title>", seen)
        if found is None:
            raise RuntimeError(f"{program} did not lay {page} out")
        height = min(int(found.group(1)), MOST_PIXELS)
        picture.unlink(missing_ok=True)
        _browse(
            program,
            folder,
            width,
            height,
            "--hide-scrollbars",
            f"--screenshot={picture}",
            plain.as_uri(),
        )
    if not picture.is_file():
        raise RuntimeError(f"{program} took no picture of {page}")


def _browse(program: str, folder: Path, width: int, height: int, *words: str) -> str:
    command = [
        program,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={folder / 'profile'}",
        f"--window-size={width},{height}",
        *words,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise RuntimeError(f"{program} failed: {done.stderr.strip()[-300:]}")
    return done.stdout


def profiled(folder: Path) -> dict[str, Path]:
    """Profile the runs in a folder; return their pages by name."""
    graphsys = Path(sys.executable).with_name("graphsys")

    def call(*words: str) -> None:
        subprocess.run([graphsys, *words], cwd=folder, check=True, capture_output=True)

    call("dataset", "build", "rmat", "-o", "web", "--param", "scale=14")
    call("dataset", "build", "planted", "-o", "planted", "--param", "num_nodes=3000")
    pages = {}
    for name, words in RUNS.items():
        call(*words, "--overwrite")  # compiles
        pages[name] = folder / f"{name}.html"
        call("profile", "-o", pages[name].name, "--", *words, "--overwrite")
    old, new = (pages["bfs"].with_name(f"{name}.json") for name in ("bfs", "one_thread"))
    once = ("--threads", "1", "--overwrite")
    call("profile", "-o", f"{new.stem}.html", "--", *RUNS["bfs"], *once)
    pages["comparison"] = folder / "comparison.html"
    call("profile", "--compare", old.name, new.name, "-o", pages["comparison"].name)
    return pages


def main(arguments: Sequence[str]) -> int:
    """Take all pictures anew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.parse_args(arguments)
    program = browser()
    if program is None:
        print(
            "error: no Chromium; apt-get install chromium-headless-shell", file=sys.stderr
        )
        return 2
    with tempfile.TemporaryDirectory() as name:
        pages = profiled(Path(name))
        for shot, (run, width, is_dark) in SHOTS.items():
            take(pages[run], PAGES / f"{shot}.png", width, is_dark=is_dark, program=program)
            print(f"wrote {shot}.png")
    pictures = {f"{shot}.png": checksum(PAGES / f"{shot}.png") for shot in SHOTS}
    record: dict[str, Any] = {"sources": sources(), "pictures": pictures}
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0
