"""``graphsys verify``: is every byte of a graph as it was written?"""

import sys

import typer

from graphsys.cli.console import print_json, print_note
from graphsys.cli.options import GraphArgument, JsonOption, examples

EPILOG = examples("graphsys verify demo && echo sound")


def verify(graph: GraphArgument, json: JsonOption = False) -> None:
    """Read a whole graph and report what is wrong, one problem a line.

    Exit code 1 if there is any.
    """
    from graphsys.cli.progress import open_progress
    from graphsys.storage.verify import verify as find_problems

    progress = open_progress()
    report = find_problems(graph, progress=progress)
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
