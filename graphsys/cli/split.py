"""``graphsys split``: edges of a graph held out for validation and test."""

from pathlib import Path
from typing import Annotated

import typer

from graphsys.cli.console import print_json
from graphsys.cli.options import (
    CONTROL,
    OUTPUT,
    GraphArgument,
    JsonOption,
    MemoryOption,
    OverwriteOption,
    SeedOption,
    examples,
)
from graphsys.cli.report import print_graph
from graphsys.core.remote.locations import shown

EPILOG = examples(
    "graphsys split trust -o trust-split",
    "graphsys split trust -o trust-split --ratio 0.7,0,0.3 --by time",
    "graphsys split kg -o kg-split --ratio 1000,1000 --negatives 1",
)


def split(
    graph: GraphArgument,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="GRAPH2",
            help="The folder to write; must not exist.",
            show_default=False,
            rich_help_panel=OUTPUT,
        ),
    ],
    ratio: Annotated[
        str,
        typer.Option(
            "--ratio",
            metavar="SHARES",
            help="Shares of train, valid and test, or numbers of edges of valid and test "
            "(1000,1000).",
            rich_help_panel=CONTROL,
        ),
    ] = "0.8,0.1,0.1",
    by: Annotated[
        str,
        typer.Option(
            "--by",
            metavar="HOW",
            help="random; time (the last are held out); relation (of each its share).",
            rich_help_panel=CONTROL,
        ),
    ] = "random",
    negatives: Annotated[
        int,
        typer.Option(
            "--negatives",
            metavar="N",
            help="Pairs to draw for each edge of valid and test that are edges in no "
            "split: the splits valid_negative and test_negative.",
            rich_help_panel=CONTROL,
        ),
    ] = 0,
    inverse: Annotated[
        str | None,
        typer.Option(
            "--inverse",
            metavar="HOW",
            help="Edges of inverse relations (parent, child) are held out "
            "together, or apart (by default, with a warning).",
            rich_help_panel=CONTROL,
            show_default=False,
        ),
    ] = None,
    memory: MemoryOption = "4GB",
    seed: SeedOption = 0,
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
) -> None:
    """Write a graph again with edges held out as valid and test.

    At random every node and relation of valid and test stays in train too, and an edge,
    its copies and its reverse stay together. The outcome depends on the seed and the ids.
    """
    from graphsys.cli.progress import open_progress
    from graphsys.storage import open_graph
    from graphsys.storage.info import info
    from graphsys.storage.ingest import split as library
    from graphsys.storage.ingest.process_budget import kept_of_stored
    from graphsys.storage.ingest.split_source import split_bytes
    from graphsys.storage.ingest.split_spec import split_spec

    spec = split_spec(ratio, by=by, seed=seed, negatives=negatives, inverse=inverse)
    with open_graph(graph) as opened:
        held = split_bytes(opened, spec)
        kept, _ = kept_of_stored(memory, opened, "hash", "original", held)
        report = library.split(
            opened,
            out,
            ratio,
            by=by,
            seed=seed,
            negatives=negatives,
            inverse=inverse,
            memory=kept,
            overwrite=overwrite,
            progress=open_progress(),
        )
    with report.graph as written:
        facts = info(written.path)
    if json:
        print_json(facts)
    else:
        print_graph({"graph": shown(str(out)), **facts})
