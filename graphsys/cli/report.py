"""How a graph and an ingest are shown."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from graphsys.cli.console import print_facts, print_json
from graphsys.core.memory import format_bytes
from graphsys.core.remote.locations import shown

if TYPE_CHECKING:
    from graphsys.storage.ingest.ingest import IngestReport
    from graphsys.storage.reader import GraphReader

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
    "bytes": "size",
}


def print_graph(facts: Mapping[str, Any]) -> None:
    """Print what ``info`` found, for people."""
    plain = {name: it for name, it in facts.items() if name not in ("nodes", "edges")}
    shown = {_LABELS.get(name, name): value for name, value in plain.items()}
    shown |= {f"node type {n}": _node_type(it) for n, it in facts.get("nodes", {}).items()}
    shown |= {f"edge type {n}": _edge_type(it) for n, it in facts.get("edges", {}).items()}
    if "size" in shown:
        sizes = {
            name: format_bytes(size) for name, size in shown.pop("size").items() if size
        }
        shown["size"] = sizes
    if "peak memory" in shown:
        shown["peak memory"] = format_bytes(shown["peak memory"])
    print_facts(shown)


def print_ingest_report(report: "IngestReport[GraphReader]", *, as_json: bool) -> None:
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
        if hasattr(report, "workers"):
            facts["workers"] = report.workers
        if as_json:
            print_json(facts)
        else:
            saved = format_bytes(report.shared_bytes)
            shared = {"saved by shared rows": saved} if report.shared_bytes else {}
            print_graph({"graph": shown(str(graph.path)), **facts, **shared})


def _node_type(facts: Mapping[str, Any]) -> str:
    parts = [
        f"{facts['id_type']} ids in {facts['order']} order",
        _count(facts["partitions"], "partition"),
        *(_listed(name, facts[name]) for name in ("columns", "splits", "features")),
    ]
    return "; ".join(part for part in parts if part)


def _edge_type(facts: Mapping[str, Any]) -> str:
    ends = f"{facts['src_type']} {'->' if facts['directed'] else '--'} {facts['dst_type']}"
    known = facts["relations"]
    relations = "" if known is None else _count(known, "relation")
    unit = f"times in {facts['time_unit']}, since 1970" if "time_unit" in facts else ""
    parts = (ends, relations, _listed("columns", facts["columns"]), unit)
    return "; ".join(part for part in parts if part)


def _listed(what: str, items: Mapping[str, Any]) -> str:
    return f"{what} {', '.join(f'{k} {v}' for k, v in items.items())}" if items else ""


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
