"""What workers of embeddings are told, and what they and the driver make of it alike."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from graphsys.distributed.embedding.parameter_server import Floats
from graphsys.embedding import run as runs
from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.context import EmbeddingContext
from graphsys.embedding.data.schedule import Layout, Part
from graphsys.embedding.model import relation_sets
from graphsys.embedding.rows.table_files import Table, TableFiles
from graphsys.embedding.training.edge_sets import list_steps
from graphsys.storage.reader import GraphReader


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingWork:
    """A training, by paths and settings.

    Attributes:
        graph: Folder of the store, which every machine sees.
        path: Folder of the run, which every machine sees unless ``through`` is given.
        config: The settings; ``threads`` are those of one worker.
        through: Location on an object store by which files of the run travel, or "".
        is_profiled: Whether workers record themselves.
        first_units: An epoch, and which of its units come first: those trained before.
    """

    graph: str
    path: str
    config: EmbeddingConfig
    through: str = ""
    is_profiled: bool = False
    first_units: tuple[int, tuple[int, ...]] = (0, ())


def one_partition_parts(context: EmbeddingContext) -> set[Part]:
    """Return the partitions of types that have one, which all workers train."""
    graph = context.graph
    parts = {part for step in context.steps for part in (step.src, step.dst)}
    return {part for part in parts if graph.num_partitions(part[0]) == 1}


def tables_of(files: TableFiles, always: Mapping[Part, Table]) -> dict[str, Floats]:
    """Return what the parameter server holds, float32, by name.

    Args:
        files: The run's operators and global vectors.
        always: Rows and states of types with one partition.
    """
    tables = {f"relations/{name}": table for name, table in files.operators.items()}
    tables |= {f"globals/{name}": table for name, table in files.globals.items()}
    for (node_type, _), (rows, states) in always.items():
        tables |= {f"rows/{node_type}": rows, f"state/{node_type}": states}
    return tables


def by_exchange(
    tables: Mapping[str, Floats], config: EmbeddingConfig
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Return the tables that are at the parameter server, and those all-reduced.

    Dense, as most of it changes between exchanges, are operators and global vectors;
    sparse are rows and states of nodes, which always are at the server.
    """
    is_reduced = config.parameter_exchange == "all_reduce"
    summed = {
        name: table
        for name, table in tables.items()
        if is_reduced and name.startswith(("relations/", "globals/"))
    }
    return {name: t for name, t in tables.items() if name not in summed}, summed


def layout_of(state: runs.EmbeddingRunState) -> Layout:
    """Return the order of a run's units, which a resume keeps."""
    order = state.order or {"name": "inside_out", "capacity": 2}
    return Layout(order=order["name"], order_capacity=order["capacity"])


def context_of(graph: GraphReader, work: EmbeddingWork, path: Path) -> EmbeddingContext:
    """Return the training of a worker, with the checkpoint that is in a folder."""
    model = relation_sets(graph, work.config)
    state = runs.read_state(path)
    runs.require_same_graph(state.graph, graph, path)
    return EmbeddingContext(
        path=path,
        graph=graph,
        config=work.config,
        model=model,
        steps=list_steps(graph, model, work.config),
        state=state,
        layout=layout_of(state),
    )
