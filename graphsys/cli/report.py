"""How a graph and an ingest are shown."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from graphsys.cli.console import print_facts, print_json
from graphsys.core.memory import format_bytes

if TYPE_CHECKING:
    from graphsys.storage.ingest.ingest import IngestReport

_LABELS = {
    "num_nodes": "nodes",
    "num_edges": "edges",
    "num_edges_by_split": "edges by split",
    "directed": "directed",
    "node_types": "node types",
    "edge_types": "edge types",
    "partitions": "partitions",
    "bytes_per_edge": "bytes per edge",
    "duplicates": "duplicates found",
    "self_loops": "self-loops found",
    "seconds": "seconds",
    "peak_memory_bytes": "peak memory",
}


def print_graph(facts: Mapping[str, Any]) -> None:
    """Print what ``info`` found, for people."""
    shown = {_LABELS.get(name, name): value for name, value in facts.items()}
    if "peak memory" in shown:
        shown["peak memory"] = format_bytes(shown["peak memory"])
    print_facts(shown)


def print_ingest_report(report: "IngestReport", *, as_json: bool) -> None:
    """Print what an ingest wrote and what it took."""
    from graphsys.storage.info import info

    with report.graph as graph:
        facts = {
            **info(graph.path),
            "duplicates": report.duplicates,
            "self_loops": report.self_loops,
            "seconds": report.seconds,
            "peak_memory_bytes": report.peak_memory_bytes,
        }
        if as_json:
            print_json(facts)
        else:
            saved = format_bytes(report.shared_bytes)
            shared = {"saved by shared rows": saved} if report.shared_bytes else {}
            print_graph({"graph": str(graph.path), **facts, **shared})
