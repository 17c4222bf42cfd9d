"""What ``graphsys mine`` refuses, and how it shows what it found."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphsys.cli.console import print_facts, print_json, print_note, print_table
from graphsys.cli.results import STDOUT, print_preview, write_result
from graphsys.core.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

    from graphsys.distributed.mining_run import ClusterCounts
    from graphsys.mining import FrequentPattern
    from graphsys.storage import IngestReport
    from graphsys.storage.reader import GraphReader


def refuse_tables(out: Path | None, is_wanted: bool) -> None:
    """Refuse to write a table of what is one number."""
    if out is not None or is_wanted:
        raise ConfigError(
            "--pattern gives a number for the graph; tables (--out, --per-node, "
            "--per-edge, --features) are for --motifs 4"
        )


def refuse_without_support(support: int | None, out: Path | None) -> int:
    """Return the least support; refuse a search that says too little or too much."""
    if support is None:
        raise ConfigError("--frequent: how often? give --support 300, for example")
    if out is not None:
        raise ConfigError("--out is for counts of every node; --json prints the patterns")
    return support


def refuse_device(device: str, *, is_one_count: bool) -> None:
    """Refuse a GPU for what is done on the CPU alone, and where there is none."""
    from graphsys.mining.devices import check_device

    if device != "cpu" and not is_one_count:
        raise ConfigError(
            f"--device {device} counts patterns and motifs of the whole graph; lists, "
            "frequent patterns, --explain, --per-node and --per-edge need --device cpu"
        )
    check_device(device)


def refuse_on_cluster(*, is_one_count: bool, device: str, memory: str | None) -> None:
    """Refuse what workers do not do together."""
    if not is_one_count:
        raise ConfigError(
            "--cluster counts patterns and motifs of the whole graph; lists, frequent "
            "patterns, --explain, --per-node and --per-edge run without it"
        )
    if device != "cpu" or memory is not None:
        name = "--memory" if memory is not None else "--device"
        raise ConfigError(f"{name} does not go with --cluster; leave out one of them")


def refuse_other_orbits(motifs: int, induced: str, has_both: bool, is_lost: bool) -> None:
    """Refuse counts of nodes and edges that are not made."""
    if has_both:
        raise ConfigError("--per-node and --per-edge make two tables; ask for one of them")
    if motifs != 4:
        raise ConfigError(
            f"motifs of {motifs} nodes: the places of nodes and edges are counted in those "
            "of 4; ask for 4"
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


def report_counts(
    counts: dict[str, int], induced: str, facts: dict[str, float], *, as_json: bool
) -> None:
    """Print counts by pattern."""
    if as_json:
        print_json({"counts": counts, "induced": induced, **facts})
    else:
        print_facts({**counts, "counted": f"{induced}-induced, each once", **facts})


def report_cluster(done: "ClusterCounts", induced: str, *, as_json: bool) -> None:
    """Print what a cluster counted."""
    facts = {"seconds": done.seconds, "compile_seconds": done.compile_seconds}
    figures = done.figures()
    if as_json:  # a contract: of what a cluster tells besides, the workers alone
        report_counts(
            done.counts, induced, facts | {"workers": figures["workers"]}, as_json=True
        )
        return
    shown = {name.replace("_", " "): value for name, value in (facts | figures).items()}
    report_counts(done.counts, induced, shown, as_json=False)


def report_table(
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
    elif out != STDOUT:
        print_facts(facts)
        if out is None and table.num_rows:
            print_preview(table, "stored")


def is_store_wanted(out: Path | None, *, features: bool, per_node: bool) -> bool:
    """Whether features are to be written into a store: ``out`` has no suffix of a file."""
    return features and per_node and out not in (None, STDOUT) and not out.suffix


def report_store(
    report: "IngestReport[GraphReader]", facts: dict[str, Any], out: Path, *, as_json: bool
) -> None:
    """Say which store was written."""
    said = {"rows": report.graph.num_nodes, "induced": "vertex", **facts}
    said |= {"output": str(out)}
    if as_json:
        print_json(said)
    else:
        print_facts({"feature": "orbits", **said})


def report_patterns(
    found: "list[FrequentPattern]", facts: dict[str, Any], *, as_json: bool
) -> None:
    """Print frequent patterns and their support."""
    if as_json:
        rows = [{"pattern": it.pattern, "support": it.support} for it in found]
        print_json({"patterns": rows, "induced": "edge", **facts})
        return
    print_table(["pattern", "support"], [[it.pattern, it.support] for it in found])
    print_note(f"{len(found):,} patterns, edge-induced, in {facts['seconds']:.1f} s")


def report_listing(
    num: int, induced: str, out: str, facts: dict[str, float], *, as_json: bool
) -> None:
    """Say how many matches were written."""
    said = {"matches": num, "output": out, "induced": induced, **facts}
    if as_json:
        print_json(said)
    else:
        print_facts(said)
