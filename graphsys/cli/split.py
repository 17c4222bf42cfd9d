"""``graphsys split``: edges of a graph held out for validation and test."""

from pathlib import Path

from graphsys.cli.console import print_json
from graphsys.cli.help_pages.declarations import described
from graphsys.cli.options import (
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


@described
def split(
    graph: GraphArgument,
    out: Path,
    ratio: str = "0.8,0.1,0.1",
    by: str = "random",
    negatives: int = 0,
    inverse: str | None = None,
    memory: MemoryOption = "4GB",
    seed: SeedOption = 0,
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
) -> None:
    """Write a graph again with edges held out as valid and test.

    At random every node and relation of valid and test stays in train too, and an edge,
    its copies and its reverse stay together. The outcome depends on the seed and the ids.
    What a graph has in test already stays there: --ratio 0.9,0.1,0 adds valid alone.

    Output:
        -o, --out GRAPH2: The folder to write; must not exist.

    Run:
        --ratio SHARES: Shares of train, valid and test, or numbers of edges of valid and
            test (1000,1000).
        --by HOW: random; time (the last are held out); relation (of each its share).
        --negatives N: Pairs to draw for each edge of valid and test that are edges in no
            split: the splits valid_negative and test_negative.
        --inverse HOW: Edges of inverse relations (parent, child) are held out together, or
            apart (by default, with a warning).
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
