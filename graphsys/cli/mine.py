"""``graphsys mine``: how often small patterns are in a graph, and where."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphsys.cli.console import print_facts, print_json
from graphsys.cli.options import (
    CONTROL,
    OUTPUT,
    GraphArgument,
    JsonOption,
    OverwriteOption,
    examples,
)
from graphsys.cli.results import FormatOption, check_target, print_preview, write_result

if TYPE_CHECKING:
    import pyarrow as pa

EPILOG = examples(
    "graphsys mine web --motifs 4",
    "graphsys mine web --motifs 4 --per-node -o orbits.parquet",
    "graphsys mine web --motifs 4 --per-node --features -o features.parquet",
)

PATTERNS = "Patterns"
_STDOUT = Path("-")


# long: an option takes several lines of its signature, and a command has them all
def mine(
    graph: GraphArgument,
    motifs: Annotated[
        int | None,
        typer.Option(
            "--motifs",
            metavar="K",
            help="Count all connected motifs of 3, 4 or 5 nodes.",
            show_default=False,
            rich_help_panel=PATTERNS,
        ),
    ] = None,
    induced: Annotated[
        str,
        typer.Option(
            "--induced",
            metavar="KIND",
            help="vertex: sets of nodes whose edges are the motif; edge: sets of edges.",
            rich_help_panel=PATTERNS,
        ),
    ] = "vertex",
    per_node: Annotated[
        bool,
        typer.Option(
            "--per-node",
            help="With --motifs 4: in which places (orbits) every node stands how often.",
            rich_help_panel=PATTERNS,
        ),
    ] = False,
    per_edge: Annotated[
        bool,
        typer.Option(
            "--per-edge",
            help="The same of every edge.",
            rich_help_panel=PATTERNS,
        ),
    ] = False,
    features: Annotated[
        bool,
        typer.Option(
            "--features",
            help="With --per-node: a column of lists, log(1 + count), for ingest --nodes.",
            rich_help_panel=PATTERNS,
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="The file to write: .parquet, .arrow, .csv, .tsv, .json or .jsonl, or - "
            "for stdout; without it the first rows are shown.",
            show_default=False,
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    format_: FormatOption = None,
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads",
            metavar="N",
            min=1,
            help="Threads; all cores by default.",
            show_default=False,
            rich_help_panel=CONTROL,
        ),
    ] = None,
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
) -> None:
    """Count motifs of a graph, which counts as simple and undirected.

    Every set of nodes, or of edges, is counted once.
    """
    from graphsys.core.errors import ConfigError

    check_target(out, format_, overwrite=overwrite, as_json=json)
    if motifs is None:
        raise ConfigError("nothing to count; name motifs by --motifs 4, for example")
    if per_node or per_edge:
        _refuse_other_orbits(motifs, induced, per_node and per_edge, out is None and json)
        table, facts = _timed(lambda: _orbits(graph, per_edge, features, threads))
        _report_table(table, facts, out, format_, overwrite=overwrite, as_json=json)
        return
    if features or out is not None:
        given = "--features" if features else "--out"
        raise ConfigError(f"{given} is for counts of every node or edge; add --per-node")
    counts, facts = _timed(lambda: _census(graph, motifs, induced, threads))
    if json:
        print_json({"counts": counts, "induced": induced, **facts})
    else:
        print_facts({**counts, "counted": f"{induced}-induced, each once", **facts})


def _refuse_other_orbits(motifs: int, induced: str, has_both: bool, is_lost: bool) -> None:
    """Refuse counts of nodes and edges that are not made."""
    from graphsys.core.errors import ConfigError

    if has_both:
        raise ConfigError("--per-node and --per-edge make two tables; ask for one of them")
    if motifs != 4:
        raise ConfigError(
            f"--motifs {motifs}: nodes and edges are counted in motifs of up to 4 nodes; "
            "give --motifs 4"
        )
    if induced != "vertex":
        raise ConfigError(
            f"--induced {induced}: places of nodes and edges are counted vertex-induced; "
            "leave it out"
        )
    if is_lost:
        raise ConfigError(
            "counts of every node or edge are a table: name a file with --out FILE; --json "
            "is about the run alone"
        )


def _census(graph: Path, size: int, induced: str, threads: int | None) -> dict[str, int]:
    from graphsys import mining

    return mining.motif_census(graph, size, induced=induced, num_threads=threads)


def _orbits(
    graph: Path, is_per_edge: bool, features: bool, threads: int | None
) -> "pa.Table":
    from graphsys import mining

    per: Any = "edge" if is_per_edge else "node"
    return mining.orbits(graph, per=per, features=features, num_threads=threads)


def _timed(work: Any) -> tuple[Any, dict[str, float]]:
    """Return what a function does, and its seconds without and in compiling."""
    from graphsys.core.compiling import CompileWatch

    with CompileWatch() as watch:
        began = time.perf_counter()
        done = work()
        seconds = time.perf_counter() - began
    facts = {"seconds": seconds - watch.seconds, "compile_seconds": watch.seconds}
    return done, facts


def _report_table(
    table: "pa.Table",
    facts: dict[str, Any],
    out: Path | None,
    format_: str | None,
    *,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Write a table of counts, and say so."""
    facts = {"rows": table.num_rows, "induced": "vertex", **facts}
    if out is not None:
        write_result(table, out, format_, overwrite=overwrite)
        facts["output"] = str(out)
    if as_json:
        print_json(facts)
    elif out != _STDOUT:
        print_facts(facts)
        if out is None and table.num_rows:
            print_preview(table, "stored")
