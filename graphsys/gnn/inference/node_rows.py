"""The rows of a run's nodes, by node type: nearest neighbors, files."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch

from graphsys.core.errors import ConfigError, unknown_name
from graphsys.core.progress import SILENT, Progress
from graphsys.datasets.temporary import GraphLike
from graphsys.gnn.inference.trained_model import OpenedRun, open_run
from graphsys.gnn.tasks.link_ranking import Ends
from graphsys.gnn.tasks.link_task import LinkTask
from graphsys.storage.find_node import find_node
from graphsys.training.row_files import check_target, write_rows

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
_COSINE_BYTES = 32  # of a node: lengths, the cosine, its order


class NetworkOutput:
    """What a network says of every node, by type; computed when it is asked for.

    Of links the rows of both ends (users and items); a type without rows of its own has
    the means of its neighbors' rows, as in evaluation. Of classes their scores.

    Args:
        run: An opened run.
        relation: Whose rows are wanted, of model gatne.
        progress: Receives a stage per layer.

    Raises:
        ConfigError: A relation is given where there is one row per node.
    """

    def __init__(
        self, run: OpenedRun, relation: str | None = None, progress: Progress = SILENT
    ) -> None:
        self.run, self.graph, self.relation, self._progress = (
            run,
            run.graph,
            relation,
            progress,
        )
        self._found: dict[str, Floats] = {}
        run.require_relation(relation)
        task = run.context.task
        self._links = task if isinstance(task, LinkTask) else None

    @property
    def node_types(self) -> list[str]:
        """The types that have rows."""
        if self._links is None:
            return [self.run.node_type]
        return self._links.row_types(self.relation)

    @property
    def most_asked(self) -> int:
        """The nodes of the largest type that has rows."""
        return max(map(self.graph.num_nodes_of, self.node_types))

    def dim_of(self, node_type: str) -> int:
        """Return the length of a type's rows."""
        return int(self.of(node_type).shape[1])

    def of(self, node_type: str) -> Floats:
        """Return the rows of all nodes of a type, float32 ``[N, F]``.

        Raises:
            UnknownNameError: The type has none.
        """
        if node_type not in self.node_types:
            raise unknown_name("node type", node_type, self.node_types)
        if node_type not in self._found:
            self._compute(node_type)
        return self._found[node_type]

    def rows(self, node_type: str, part: int) -> Floats:
        """Return the rows of a partition, float32 ``[n, F]``."""
        offsets = self.graph.offsets(node_type)
        return self.of(node_type)[int(offsets[part]) : int(offsets[part + 1])]

    def find(self, node: Any, node_type: str | None) -> tuple[str, int]:
        """Return the type and the number of a node given by its id.

        Raises:
            UnknownNameError: No type has it.
            ConfigError: Several types have it and none was given.
        """
        if node_type is None:
            return find_node(self.graph, node, self.node_types)
        if node_type not in self.node_types:
            raise unknown_name("node type", node_type, self.node_types)
        return node_type, int(self.graph.lookup(node_type, [node])[0])

    def ends(self) -> Ends:
        """Return the rows of both ends of links, and which links there are.

        Raises:
            ConfigError: The run's task has no links, or a relation is missing.
        """
        return self.links.ends(self._output, self.relation)

    @property
    def links(self) -> LinkTask:
        """The run's task.

        Raises:
            ConfigError: It has no links.
        """
        if self._links is None:
            raise ConfigError(
                f"the run {self.run.path} is of task {self.run.config.task}, which has no "
                "links to predict; leave out --top-k for what it says of nodes"
            )
        return self._links

    def _compute(self, node_type: str) -> None:
        if self._links is None:
            every = np.arange(self.graph.num_nodes_of(node_type))
            found = self._output(node_type, every)
        else:
            found = self._links.rows(self._output, node_type, self.relation)
        self._found[node_type] = found.numpy()

    def _output(self, node_type: str, nodes: Ints) -> torch.Tensor:
        found = self.run.output(nodes, node_type=node_type, progress=self._progress)
        return torch.from_numpy(found)


def nearest(
    run: str | Path | OpenedRun,
    node: Any,
    k: int = 10,
    *,
    node_type: str | None = None,
    relation: str | None = None,
    graph: GraphLike | None = None,
    device: str = "cpu",
    memory: int | str | None = None,
    progress: Progress = SILENT,
) -> pa.Table:
    """Find the nodes of the same type whose rows point most nearly the same way.

    Args:
        run: A run or its folder.
        node: The user's id of the node, which is not among the answers.
        k: How many to return.
        node_type: Type of the node, needed where several types have its id.
        relation: Whose rows are compared, of model gatne.
        graph: The graph trained on, if it is not where it was.
        device: Where to compute, ``cpu`` or ``cuda``; an opened run has its own.
        memory: Budget of anonymous memory of the process, as ``"4GB"`` or in bytes; an
            opened run has its own.
        progress: Receives a stage per layer.

    Returns:
        Columns ``id`` and ``score``, the cosine (0 of a row of zeros), best first, ties by
        the order of the store.

    Raises:
        ConfigError: ``k`` is below 1, or the type or the relation is not clear.
        UnknownNameError: There is no such node or relation.
        BudgetError: The budget is too small; the message names one that works.
    """
    if k < 1:
        raise ConfigError(f"k: got {k}, expected an int >= 1")
    opened = open_run(run, graph=graph, device=device, memory=memory)
    rows = NetworkOutput(opened, relation, progress)
    chosen, number = rows.find(node, node_type)
    opened.require_room("looking for neighbors", [chosen], rows.most_asked * _COSINE_BYTES)
    found = rows.of(chosen)
    lengths = np.linalg.norm(found, axis=1)
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    cosine = (found @ (found[number] * scale[number]) * scale).astype(np.float64)
    cosine[number] = -np.inf
    best = np.argsort(-cosine, kind="stable")[: min(k, len(cosine) - 1)]
    ids = rows.graph.ids_of(chosen, best)
    return pa.table({"id": ids, "score": pa.array(cosine[best])})


def export(
    run: str | Path | OpenedRun,
    out: str | Path,
    *,
    node_type: str | None = None,
    relation: str | None = None,
    graph: GraphLike | None = None,
    device: str = "cpu",
    memory: int | str | None = None,
    overwrite: bool = False,
    progress: Progress = SILENT,
) -> Path:
    """Write the rows of all nodes to a file, as :func:`graphsys.embedding.export` does.

    Args:
        run: A run or its folder.
        out: The file: .parquet, .arrow, .csv, .tsv, .json, .jsonl, .npy or
            .safetensors.
        node_type: Only this type; all that have rows by default.
        relation: Whose rows are wanted, of model gatne.
        graph: The graph trained on, if it is not where it was.
        device: Where to compute, ``cpu`` or ``cuda``; an opened run has its own.
        memory: Budget of anonymous memory of the process, as ``"4GB"`` or in bytes; an
            opened run has its own.
        overwrite: Replace the file if there is one.
        progress: Receives a stage per layer, and one more.

    Returns:
        The file.

    Raises:
        ConfigError: The suffix is not a known one, or a relation is missing.
        UnknownNameError: There is no such node type or relation.
        OutputExistsError: The file exists.
        StorageFullError: It cannot be written.
        BudgetError: The budget is too small; the message names one that works.
    """
    out = Path(out)
    check_target(out, overwrite=overwrite)
    opened = open_run(run, graph=graph, device=device, memory=memory)
    rows = NetworkOutput(opened, relation, progress)
    types = rows.node_types if node_type is None else [node_type]
    opened.require_room("writing rows", types)
    for name in types:
        rows.of(name)
    return write_rows(
        rows,
        types,
        out,
        overwrite=overwrite,
        budget=opened.budget,
        is_planned=True,
        progress=progress,
    )
