"""``graphsys plot``: how a training went, as a table or a picture."""

import sys
from pathlib import Path

from graphsys.cli.console import format_value, print_json, print_note, print_table
from graphsys.cli.help_pages.declarations import described
from graphsys.cli.options import JsonOption, OverwriteOption, RunArgument, examples

EPILOG = examples(
    "graphsys plot run",
    "graphsys plot run -o run.html",
    "graphsys plot run -o curves.svg",
    "graphsys plot run -o history.csv",
)


@described
def plot(
    run: RunArgument,
    out: Path | None = None,
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
) -> None:
    """Show the losses and evaluations of a run after each epoch.

    Output:
        -o, --out FILE: The file to write: a picture as .html or .svg, or the table as
            .parquet, .arrow, .csv, .tsv, .json or .jsonl; without it the table is shown.
    """
    from graphsys.analysis.page.training import SUFFIXES, plot_training
    from graphsys.training.history import history

    if out is not None and out.suffix in SUFFIXES:
        plot_training(run, out, overwrite=overwrite)
    elif out is not None:
        from graphsys.engine.output import check_output, write_table

        check_output(out, overwrite=overwrite)
        write_table(history(run).table(), out, overwrite=overwrite)
    found = history(run)
    table = found.table()
    if json:
        print_json({"run": str(run), "best": found.best, "history": table.to_pydict()})
    elif out is not None:
        print_note(f"wrote {out}")
    else:
        rows = [
            ["" if it is None else format_value(it) for it in row.values()]
            for row in table.to_pylist()
        ]
        print_table(table.column_names, rows)
        if best := found.best:
            value, epoch = best["value"], best["epoch"]
            sys.stdout.write(f"\nbest {best['metric']}: {value:.6g} after epoch {epoch}\n")
