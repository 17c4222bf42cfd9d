"""``graphsys compact``: what was appended becomes one with the rest."""

from graphsys.cli.console import print_facts, print_json
from graphsys.cli.options import GraphArgument, JsonOption, MemoryOption, examples

EPILOG = examples("graphsys compact web", "graphsys compact web --memory 1GB")


def compact(
    graph: GraphArgument, memory: MemoryOption = "4GB", json: JsonOption = False
) -> None:
    """Fold the deltas of a graph in, and drop what was removed.

    Nodes get new numbers, results stay the same. Who reads the graph keeps the old one.
    """
    from graphsys.cli.progress import open_progress
    from graphsys.storage import open_graph
    from graphsys.storage.dynamic.compact import compact as library
    from graphsys.storage.dynamic.compact import how_written
    from graphsys.storage.ingest.process_budget import kept_of_stored

    with open_graph(graph) as opened:
        kept, _ = kept_of_stored(memory, opened, *how_written(opened.manifest))
    report = library(graph, memory=kept, progress=open_progress())
    with report.graph as now:
        facts = {
            "num_nodes": now.num_nodes,
            "num_edges": now.num_edges,
            "deltas": 0,
            "bytes_written": report.bytes_written,
            "seconds": report.seconds,
        }
    if json:
        print_json(facts)
    else:
        print_facts({"graph": str(graph), "folded": report.folded, **facts})
