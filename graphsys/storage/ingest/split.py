"""Writing a stored graph again with its edges in train, valid and test."""

import os

import numpy as np

from graphsys.core.progress import IN_NOTEBOOKS, Progress
from graphsys.storage.ids.id_mapping import ORDERS, Assignment
from graphsys.storage.info import kept_form
from graphsys.storage.ingest.ingest import IngestReport, ingest
from graphsys.storage.ingest.split_source import SplitSource, reserved_memory
from graphsys.storage.ingest.split_spec import Shares, split_spec
from graphsys.storage.reader import GraphReader, open_graph


def split(
    graph: GraphReader | str | os.PathLike[str],
    out: str | os.PathLike[str],
    shares: Shares = "0.8,0.1,0.1",
    *,
    by: str = "random",
    seed: int = 0,
    negatives: int = 0,
    inverse: str | None = None,
    memory: int | str = "4GB",
    overwrite: bool = False,
    progress: Progress = IN_NOTEBOOKS,
) -> IngestReport[GraphReader]:
    """Write a graph again with edges of each type parted into train, valid and test.

    Only edges of train are parted: where a graph comes with test alone, valid is held out
    of train by the shares "0.9,0.1,0", and test stays as it is.

    At random, copies of an edge and its reverse stay together, and every node and
    relation of valid and test is in train: an edge that is the only one of a node stays
    there. By time the last edges are held out, those of one time together, and edges of a
    type without times stay in train. Edges of another type that are the reverse of all
    edges of a type are held out with them. Nodes, features, partitions and numbers stay
    as they are.

    Args:
        graph: The graph or its path; none of its edges is in a split that is asked for.
        out: Folder of the new store.
        shares: Shares of train, valid and test, or two numbers of edges of valid and test.
        by: "random", "time", or "relation" (of each its share).
        seed: Seed of what is drawn; the outcome depends on it and on the user's ids alone.
        negatives: Pairs drawn for each edge of valid and test that are edges in no split
            (of its relation), with the edge's other columns: the splits
            ``valid_negative`` and ``test_negative``. They depend on the stored order, too.
        inverse: "together": edges of relations that are each other's inverse (parent and
            child) are held out together; "apart"; None: apart, and said where many leak.
        memory: Budget of anonymous memory for what is kept.
        overwrite: Whether a graph in ``out`` may be replaced.
        progress: Told of every stage.

    Raises:
        ConfigError: shares that are none, a column to split by that is not there, or more
            negatives than there are pairs without an edge.
        InputError: the graph has a split that is asked for, or train would be empty.
        BudgetError: ``memory`` is too little.
        OutputExistsError: ``out`` holds something and may not be replaced.
    """
    if not isinstance(graph, GraphReader):
        with open_graph(graph) as opened:
            return split(
                opened,
                out,
                shares,
                by=by,
                seed=seed,
                negatives=negatives,
                inverse=inverse,
                memory=memory,
                overwrite=overwrite,
                progress=progress,
            )
    spec = split_spec(shares, by=by, seed=seed, negatives=negatives, inverse=inverse)
    source = SplitSource(graph, spec)
    assigned = {name: as_stored(graph, name) for name in graph.node_types}
    return ingest(
        source,
        out,
        assigned=assigned,
        partitions={name: graph.num_partitions(name) for name in graph.node_types},
        partitioner=str(graph.manifest.partitioning.get("method", "hash")),
        order=stored_order(graph),
        seed=int(graph.manifest.partitioning.get("seed", 0)),
        memory=reserved_memory(graph, memory, spec),
        overwrite=overwrite,
        progress=progress,
        features_as=kept_form(graph.manifest),
    )


def stored_order(graph: GraphReader) -> str:
    """Return the order that all nodes are in, ``original`` where there are several."""
    orders = set(graph.manifest.order.values())
    order = orders.pop() if len(orders) == 1 else "original"
    return order if order in ORDERS else "original"


def as_stored(graph: GraphReader, node_type: str) -> Assignment:
    """Return the partitions and places that the nodes of a type have."""
    sizes = np.diff(graph.offsets(node_type))
    return Assignment(
        ids=graph.node_ids(node_type).combine_chunks(),
        parts=np.repeat(np.arange(len(sizes), dtype=np.uint32), sizes),
        ranks=np.arange(graph.num_nodes_of(node_type), dtype=np.uint64),
    )
