"""``graphsys evaluate``: how good a run is on held-out edges."""

from typing import Annotated, Any

import typer

from graphsys.cli.console import print_facts, print_json, print_note
from graphsys.cli.options import JsonOption, RunArgument, examples

EPILOG = examples("graphsys evaluate run", "graphsys evaluate run --split valid --json")


def evaluate(
    run: RunArgument,
    split: Annotated[
        str, typer.Option("--split", metavar="NAME", help="Which held-out edges.")
    ] = "test",
    json: JsonOption = False,
) -> None:
    """Measure a run on held-out edges: filtered ranking against all nodes of the type."""
    from graphsys import embedding
    from graphsys.cli.progress import open_progress

    progress = open_progress()
    result: dict[str, Any] = embedding.evaluate(run, split=split, progress=progress)
    progress.close()
    state = embedding.open_run(run).state
    if not state.is_complete:
        print_note(
            f"note: {run} is a checkpoint after {state.epoch} whole epochs; "
            "its training goes on with --resume"
        )
    if json:
        print_json(result)
    else:
        metrics = dict(result["metrics"])
        unfiltered = metrics.pop("unfiltered", {})
        raw = {f"{name} unfiltered": value for name, value in unfiltered.items()}
        print_facts({"split": result["split"], **metrics, **raw})
