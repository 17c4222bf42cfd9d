"""``graphsys verify``: is every byte of a graph or a run as it was written?"""

import sys
from pathlib import Path
from typing import Annotated

import typer

from graphsys.cli.console import print_json, print_note, visible
from graphsys.cli.options import JsonOption, examples

EPILOG = examples("graphsys verify demo && echo sound", "graphsys verify run")

Folder = Annotated[
    Path,
    typer.Argument(
        metavar="GRAPH|RUN",
        help="A graph's or a training run's folder, or s3://...",
        show_default=False,
    ),
]


def verify(graph: Folder, json: JsonOption = False) -> None:
    """Read a whole graph or run and report what is wrong, one problem a line.

    Exit code 1 if there is any.
    """
    from graphsys.cli.progress import open_progress
    from graphsys.storage.verify.folder import verify_folder

    progress = open_progress()
    report = verify_folder(graph, progress)
    progress.close()
    if json:
        found = [
            {"file": problem.file, "what": problem.what} for problem in report.problems
        ]
        print_json({"ok": report.ok, "problems": found})
    else:
        for problem in report.problems:
            sys.stdout.write(visible(f"{problem.file}: {problem.what}\n"))
        if report.ok:
            print_note(f"{graph}: no problems found")
    if not report.ok:
        raise typer.Exit(1)
