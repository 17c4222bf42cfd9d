"""``graphsys info``: what a graph holds."""

from graphsys.cli.console import print_json
from graphsys.cli.options import GraphArgument, JsonOption, examples
from graphsys.cli.report import print_graph

EPILOG = examples("graphsys info demo", "graphsys info demo --json | jq .num_edges")


def info(graph: GraphArgument, json: JsonOption = False) -> None:
    """Show what a graph holds: counts, types, partitions, size."""
    from graphsys.storage.info import details
    from graphsys.storage.info import info as read_info

    facts = {**read_info(graph), **details(graph)}
    if json:
        print_json(facts)
    else:
        print_graph(facts)
