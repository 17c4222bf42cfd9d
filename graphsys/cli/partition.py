"""``graphsys partition``: a graph in other partitions, and what each method gives."""

from pathlib import Path
from typing import TYPE_CHECKING

from graphsys.cli.console import print_facts, print_json, print_note, print_table
from graphsys.cli.help_pages.declarations import described
from graphsys.cli.options import (
    GraphArgument,
    JsonOption,
    MemoryOption,
    OrderOption,
    OverwriteOption,
    PartitionsOption,
    SeedOption,
    examples,
    parse_partitions,
)
from graphsys.core.remote.locations import shown

if TYPE_CHECKING:
    from graphsys.storage.ingest.partition_compare import PartitionQuality

EPILOG = examples(
    "graphsys partition web --partitions 8 --compare",
    "graphsys partition web --partitioner reldg --partitions 8 -o web8",
)

_COLUMNS = ("edge_cut", "node_balance", "edge_balance", "replication_factor", "seconds")
_COMPARED = (*_COLUMNS[:-1], "halo", "bucket_balance", "bucket_loads", "seconds")


@described
def partition(
    graph: GraphArgument,
    out: Path | None = None,
    partitioner: str = "reldg",
    partitions: PartitionsOption = "1",
    compare: bool = False,
    order: OrderOption = "auto",
    memory: MemoryOption = "4GB",
    seed: SeedOption = 0,
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
) -> None:
    """Write a graph again with other partitions; the old one stays as it is.

    Output:
        -o, --out GRAPH2: The folder to write; needed unless --compare is given.
        --compare: Print what every method would give, and which to take.

    Store:
        --partitioner NAME: hash, random, range, ldg, fennel, reldg, refennel, buckets,
            metis or kahip.
    """
    from graphsys.cli.progress import open_progress
    from graphsys.core.errors import ConfigError
    from graphsys.storage import open_graph
    from graphsys.storage.ingest import partition_compare, repartition
    from graphsys.storage.ingest.process_budget import compared_bytes, kept_of_stored

    counts = parse_partitions(partitions)
    if not compare and out is None:
        raise ConfigError("nothing to do: give --out GRAPH2, --compare, or both")
    with open_graph(graph) as opened:
        if compare:
            if isinstance(counts, dict):
                raise ConfigError(
                    f"--compare takes one count, got --partitions {partitions}"
                )
            lines = list(
                partition_compare.compare(
                    opened,
                    counts,
                    seed=seed,
                    memory=compared_bytes(memory, opened),
                    progress=open_progress(),
                )
            )
            _print_comparison(
                lines, partition_compare.advise(lines), as_json=json and out is None
            )
        if out is None:
            return
        kept, structure = kept_of_stored(memory, opened, partitioner, order)
        quality = repartition.repartition(
            opened,
            out,
            partitioner=partitioner,
            partitions=counts,
            seed=seed,
            memory=kept,
            structure_memory=structure,
            order=order,
            overwrite=overwrite,
            progress=open_progress(),
        )
    facts = {
        "graph": shown(str(out)),
        "partitioner": partitioner,
        **_figures(quality, _COLUMNS),
    }
    if json:
        print_json(facts)
    else:
        print_facts(facts)


def _figures(line: "PartitionQuality", names: tuple[str, ...]) -> dict[str, float]:
    return {name: getattr(line, name) for name in names}


def _print_comparison(
    lines: "list[PartitionQuality]", advice: dict[str, str], *, as_json: bool
) -> None:
    if as_json:
        methods = [
            {
                "partitioner": line.partitioner,
                **_figures(line, _COMPARED),
                "is_vertex_cut": line.is_vertex_cut,
                "problem": line.problem or None,
            }
            for line in lines
        ]
        print_json({"methods": methods, "advice": advice})
        return
    rows = [
        [
            line.partitioner + (" (edges)" if line.is_vertex_cut else ""),
            *(
                "-" if line.problem or value != value else round(value, 4)
                for value in _figures(line, _COMPARED).values()
            ),
        ]
        for line in lines
    ]
    print_table(["method", *_COMPARED], rows)
    for line in lines:
        if line.problem:
            print_note(f"{line.partitioner}: {line.problem}")
    for workload, name in advice.items():
        print_note(f"for {workload}: {name}")
