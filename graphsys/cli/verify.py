"""``graphsys verify``: is every byte of a graph or a run as it was written?"""

import sys
from pathlib import Path
from typing import Annotated

import typer

from graphsys.cli.console import print_json, print_note
from graphsys.cli.options import JsonOption, examples

EPILOG = examples("graphsys verify demo && echo sound", "graphsys verify run")

Folder = Annotated[
    Path,
    typer.Argument(
        metavar="GRAPH|RUN",
        help="A graph's or a training run's folder.",
        show_default=False,
    ),
]


def verify(graph: Folder, json: JsonOption = False) -> None:
    """Read a whole graph or run and report what is wrong, one problem a line.

    Exit code 1 if there is any.
    """
    from graphsys.cli.progress import open_progress
    from graphsys.storage.folder_kinds import RUN_NAME
    from graphsys.storage.manifest import MANIFEST_NAME
    from graphsys.storage.verify.run import verify_run
    from graphsys.storage.verify.verify import verify as find_problems

    is_run = (graph / RUN_NAME).exists() and not (graph / MANIFEST_NAME).exists()
    progress = open_progress()
    report = (verify_run if is_run else find_problems)(graph, progress)
    progress.close()
    if json:
        found = [
            {"file": problem.file, "what": problem.what} for problem in report.problems
        ]
        print_json({"ok": report.ok, "problems": found})
    else:
        for problem in report.problems:
            sys.stdout.write(f"{problem.file}: {problem.what}\n")
        if report.ok:
            print_note(f"{graph}: no problems found")
    if not report.ok:
        raise typer.Exit(1)
