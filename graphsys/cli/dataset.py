"""``graphsys dataset``: graphs by name."""

from pathlib import Path
from typing import Annotated

import typer

from graphsys.cli.console import print_facts, print_json, print_table
from graphsys.cli.help_pages.declarations import described
from graphsys.cli.help_pages.verbs import Verb, VerbGroup
from graphsys.cli.options import (
    GraphOutOption,
    JsonOption,
    MemoryOption,
    OrderOption,
    OverwriteOption,
    PartitionerOption,
    PartitionsOption,
    SeedOption,
    examples,
    parse_partitions,
)
from graphsys.cli.report import print_ingest_report
from graphsys.core.errors import unknown_name

app = typer.Typer(
    help="Build graphs that are known by name.",
    cls=VerbGroup,
    rich_markup_mode=None,
)


def _complete_name(incomplete: str) -> list[str]:
    from graphsys.datasets import recipes

    return [name for name in recipes.names() if name.startswith(incomplete)]


NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="A data set's name.",
        show_default=False,
        autocompletion=_complete_name,
    ),
]


@app.command("list", cls=Verb, epilog=examples("graphsys dataset list"))
def list_(json: JsonOption = False) -> None:
    """List the data sets; the files of unverified ones could not be tried here."""
    from graphsys.datasets import recipes

    cards = [recipes.show(name) for name in recipes.names()]
    if json:
        listed = [
            {"name": card.name, "title": card.title, "verified": not card.unverified}
            for card in cards
        ]
        print_json({"datasets": listed})
    else:
        marks = ["unverified" if card.unverified else "" for card in cards]
        rows = [[it.name, it.title, mark] for it, mark in zip(cards, marks, strict=True)]
        print_table(["name", "what", "tried"], rows)


@app.command(cls=Verb, epilog=examples("graphsys dataset show fb15k237"))
def show(name: NameArgument, json: JsonOption = False) -> None:
    """Show a data set's card: source, license, counts, the files it needs."""
    from graphsys.datasets import recipes

    card = recipes.show(name).card()
    if json:
        print_json(card)
    else:
        print_facts(card)


@app.command(
    cls=Verb,
    epilog=examples(
        "graphsys dataset build demo -o demo --partitions 4",
        "graphsys dataset build fb15k237 -o fb --from ~/downloads/fb15k237",
        "graphsys dataset build rmat -o kron20 --param scale=20 --memory 2GB",
    ),
)
@described
def build(
    name: NameArgument,
    out: GraphOutOption,
    from_: Path | None = None,
    param: list[str] | None = None,
    allow_other_counts: bool = False,
    partitions: PartitionsOption = "1",
    partitioner: PartitionerOption = "hash",
    order: OrderOption = "auto",
    memory: MemoryOption = "4GB",
    seed: SeedOption = 0,
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
) -> None:
    """Build a data set into a graph; generated ones need no files.

    Input:
        --from FOLDER: Where the data set's files lie, by their base names.
        --param NAME=VALUE: A parameter of a generated data set (its card lists them);
            repeatable.
        --allow-other-counts: Go on where nodes or edges are not as many as published.
    """
    from graphsys.cli.progress import open_progress
    from graphsys.core.config import apply_overrides
    from graphsys.datasets import recipes
    from graphsys.storage.ingest.process_budget import kept_bytes

    recipe = recipes.show(name)
    parameters = apply_overrides({}, param or [])
    for key in parameters:
        if key not in recipe.parameters:
            raise unknown_name(f"parameter of {name}", key, recipe.parameters)
    report = recipes.build(
        name,
        out,
        folder=from_,
        allow_other_counts=allow_other_counts,
        partitions=parse_partitions(partitions),
        partitioner=partitioner,
        order=order,
        memory=kept_bytes(memory),
        overwrite=overwrite,
        progress=open_progress(),
        **{"seed": seed, **parameters},
    )
    print_ingest_report(report, as_json=json)
