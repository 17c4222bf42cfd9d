"""``graphsys info``: what a graph holds, what a run is, or what a search has found."""

from pathlib import Path
from typing import Annotated, Any

import typer

from graphsys.cli.console import print_facts, print_json
from graphsys.cli.options import JsonOption, examples
from graphsys.cli.report import print_graph

EPILOG = examples(
    "graphsys info demo",
    "graphsys info demo --json | jq .num_edges",
    "graphsys info run",
    "graphsys info search",
)


def info(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="GRAPH|RUN|SEARCH",
            help="A graph's folder, a training run's or a search's, or s3://...",
            show_default=False,
        ),
    ],
    json: JsonOption = False,
) -> None:
    """Show what a graph holds (counts, types, partitions, size), or what a run is.

    Of a search, its best trials, while it runs too.
    """
    from graphsys.storage.folder_kinds import is_search
    from graphsys.storage.info import details
    from graphsys.storage.info import info as read_info
    from graphsys.training.history import is_run, run_info

    if is_run(path):
        found = run_info(path)
        if json:
            print_json(found)
        else:
            _show_run(found)
        return
    if is_search(path):
        from graphsys.cli.tune import print_search
        from graphsys.tuning.trials import search_report

        print_search(search_report(path), json=json)
        return
    facts = {**read_info(path), **details(path)}
    if json:
        print_json(facts)
    else:
        print_graph(facts)


def _show_run(found: dict[str, Any]) -> None:
    """Print what a run is for people; settings that are empty are left out."""
    from graphsys.cli.training_facts import with_unit
    from graphsys.core.config import settings_by_key
    from graphsys.core.memory import format_bytes

    state = "complete" if found["is_complete"] else "not complete"
    graph, best = found["graph"], found["best"]
    facts: dict[str, Any] = {
        "kind": found["kind"],
        "model": found["model"],
        "graph": graph["path"],
        "nodes": graph["num_nodes"],
        "edges": graph["num_edges"],
        "epochs": f"{found['epochs']} of {found['epochs_planned']}, {state}",
        "time of training": with_unit("seconds", found["seconds"]),
        "loss": found["loss"],
        "best": best
        and f"{best['metric']} {best['value']:.4g} after epoch {best['epoch']}",
        "size": format_bytes(found["bytes"]),
        "to train more": found["go_on"],
    }
    print_facts({name: it for name, it in facts.items() if it is not None})
    print_facts(
        {
            f"set {key}": value
            for key, value in settings_by_key(found["settings"]).items()
            if value not in ("", [])
        }
    )
