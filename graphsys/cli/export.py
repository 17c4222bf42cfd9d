"""``graphsys export``: embeddings leave for other tools."""

from pathlib import Path
from typing import Annotated

import typer

from graphsys.cli.console import print_json, print_note
from graphsys.cli.options import OUTPUT, JsonOption, OverwriteOption, RunArgument, examples

EPILOG = examples("graphsys export run -o emb.parquet", "graphsys export run -o emb.npy")


def export(
    run: RunArgument,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="The file to write: .parquet, .arrow, .tsv, .npy or .safetensors.",
            show_default=False,
            rich_help_panel=OUTPUT,
        ),
    ],
    relation_types: Annotated[
        Path | None,
        typer.Option(
            "--relation-types",
            metavar="FILE",
            help="Write the operators too, both .tsv files as PyTorch-BigGraph does.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
) -> None:
    """Write a run's embeddings to a file, keyed by the nodes' ids."""
    from graphsys import embedding
    from graphsys.cli.options import require_embeddings

    require_embeddings(run)
    written = [out]
    if relation_types is None:
        embedding.export(run, out, overwrite=overwrite)
    else:
        written.append(relation_types)
        embedding.export_pbg(run, out, relation_types, overwrite=overwrite)
    if json:
        print_json({"output": str(out)})
    else:
        print_note(f"wrote {' and '.join(map(str, written))}")
