"""``graphsys plan``: what a graph of some size would take, predicted."""

from typing import TYPE_CHECKING, Any

from graphsys.cli.console import print_json, print_note, print_table
from graphsys.cli.help_pages.declarations import described
from graphsys.cli.options import JsonOption, examples
from graphsys.cli.progress import open_progress

if TYPE_CHECKING:
    from graphsys.planning.predict import Plan
    from graphsys.planning.task import Outlook

EPILOG = examples(
    "graphsys plan --edges 1e12 --nodes 64e9 --machines 64",
    "graphsys plan --edges 1e9 --nodes 1e8 --memory 8GB --dim 64",
    "graphsys plan --edges 1e9 --nodes 1e8 --calibrate --json > plan.json",
)


@described
def plan(
    edges: float,
    nodes: float,
    machines: int = 1,
    memory: str | None = None,
    partitions: int | None = None,
    dim: int = 100,
    supersteps: int = 20,
    network: float = 10e9,
    calibrate: bool = False,
    json: JsonOption = False,
) -> None:
    """Predict memory, storage, network and time of every verb on a graph.

    Rates are measured on this machine when first needed, and kept.

    Options:
        --edges N: Edges, directed; 1e12 is a number.
        --nodes N: Nodes.

    Run:
        --machines N: Machines like this one.
        --memory SIZE: What a verb may take on each; by default what this machine has.
        --partitions N: Partitions of the store; by default as many as embeddings need.
        --dim N: Length of an embedding.
        --supersteps N: Of PageRank.
        --network BITS: Bits per second that a machine sends at most.
        --calibrate: Measure this machine again: some 20 seconds.
    """
    from graphsys.planning.predict import plan as predict

    sizes: dict[str, Any] = {"edges": edges, "nodes": nodes, "machines": machines}
    sizes |= {"memory": memory, "partitions": partitions, "dim": dim}
    sizes |= {"supersteps": supersteps, "network": network}
    # sizes are checked first: measuring takes a while
    found = predict(**sizes, calibrate_again=calibrate, progress=open_progress())
    if json:
        print_json(found.as_json())
    else:
        _show(found)


def _show(found: "Plan") -> None:
    from graphsys.core.memory import format_bytes

    task = found.task
    print_note(
        f"{task.num_nodes:,} nodes, {task.num_edges:,} edges, {task.partitions} parts; "
        f"{task.machines} machines with {format_bytes(task.memory)} each; of one machine:"
    )
    heads = ["verb", "memory", "disk", "read", "network", "CPU time", "time", "how"]
    print_table(heads, [_row(outlook) for outlook in found.verbs])
    if found.is_extrapolated:
        print_note("extrapolated: the graph is far larger than what was measured")
    for line in found.assumptions:
        print_note(f"assumed: {line}")


def _row(found: "Outlook") -> list[str]:
    from graphsys.core.memory import format_bytes

    sizes = (found.disk_bytes, found.read_bytes, found.network_bytes)
    return [
        found.verb,
        format_bytes(found.memory_bytes) + ("" if found.fits else " (too much)"),
        *(format_bytes(size) if size else "-" for size in sizes),
        _span(found.cpu_seconds),
        _span(found.seconds),
        "; ".join(found.notes),
    ]


def _span(seconds: float) -> str:
    """Write a time for people.

    Examples:
        >>> _span(0.25), _span(250), _span(7200), _span(1e6)
        ('0.2 s', '4.2 min', '2.0 h', '11.6 days')
    """
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size or (unit == "min" and seconds >= 120):
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"
