"""``graphsys nearest``: which nodes are most like one."""

from typing import Annotated

import typer

from graphsys.cli.console import print_json, print_table
from graphsys.cli.options import JsonOption, RunArgument, examples

EPILOG = examples(
    "graphsys nearest run user:17 -k 5", "graphsys nearest run user:17 --index hnsw"
)


def nearest(
    run: RunArgument,
    node: Annotated[
        str, typer.Argument(metavar="NODE", help="A node's id.", show_default=False)
    ],
    k: Annotated[int, typer.Option("-k", min=1, help="How many neighbors.")] = 10,
    node_type: Annotated[
        str | None,
        typer.Option(
            "--node-type",
            metavar="NAME",
            help="The node's type; needed where several types have such an id.",
        ),
    ] = None,
    index: Annotated[
        str,
        typer.Option(
            "--index",
            metavar="NAME",
            help="How to search: exact, or faster and approximately: hnsw or ivf, by an "
            "index that is built once and kept in the run's folder.",
        ),
    ] = "exact",
    json: JsonOption = False,
) -> None:
    """Show the nodes whose embeddings are most like that of NODE."""
    from graphsys import embedding
    from graphsys.cli.options import require_embeddings

    require_embeddings(run)
    found = embedding.nearest(
        run,
        node,
        k,
        node_type=node_type,
        index=index,  # type: ignore[arg-type]  # checked there
    )
    rows = list(zip(found["id"].to_pylist(), found["score"].to_pylist(), strict=True))
    if json:
        print_json({"neighbors": [{"id": id_, "score": score} for id_, score in rows]})
    else:
        print_table(["id", "score"], rows)
