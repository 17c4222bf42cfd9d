"""A run opened for use: its network with the weights that it keeps, and its graph."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError, StoreBusyError, cut_list
from graphsys.core.memory import require_budget, resident_bytes, stated_budget
from graphsys.core.progress import SILENT, Progress
from graphsys.datasets.temporary import GraphLike, graph_of
from graphsys.facade.graph import Graph
from graphsys.gnn import run as runs
from graphsys.gnn.config import GnnConfig, num_threads
from graphsys.gnn.context import GnnContext
from graphsys.gnn.data.device_transfer import open_transfer
from graphsys.gnn.layerwise_inference import (
    are_rows_on_disk,
    entries_within,
    infer,
    scratch_of,
    whole_bytes,
    whole_input,
    whole_output,
)
from graphsys.gnn.ops.adjacency import kernel_threads
from graphsys.gnn.run import GnnRunState, Weights
from graphsys.gnn.tasks.task import Learned
from graphsys.gnn.training.memory_watch import explained_whole
from graphsys.gnn.training.plan import inference_bytes
from graphsys.storage.reader import GraphReader
from graphsys.storage.remote.fetching import run_folder as local_run
from graphsys.storage.runs import run_folder
from graphsys.storage.runs.run_pins import pinned
from graphsys.storage.runs.trained_graph import open_trained_graph
from graphsys.training.history import run_table

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


class OpenedRun:
    """The weights of a run's best epoch (or last, as its config says).

    Args:
        path: The run's folder.
        graph: The graph it was trained on, opened from the recorded path if not given; or
            another one with the same features and edge types, to which nodes were added,
            say.
        device: Where the network computes, ``cpu`` or ``cuda``.
        memory: Budget of anonymous memory of the process, as ``"4GB"`` or in bytes.
        model: Where the file of a run's own model is, ``my_model.py:Net``; needed where
            the user has not trained with it here, for it is executed.
        checkpoint: State and settings of a checkpoint that the caller has pinned; the last
            one, pinned here, if not given.

    Attributes:
        budget: The same in bytes, None where there is none.

    Raises:
        ConfigError: There is no run, its graph is gone or was replaced, or there is no such
            device; and when rows are asked for, a graph that the network does not fit.
        CorruptStoreError: A file of the checkpoint is missing or damaged.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        graph: GraphLike | None = None,
        device: str = "cpu",
        memory: int | str | None = None,
        model: str | None = None,
        checkpoint: tuple[runs.GnnRunState, GnnConfig] | None = None,
    ) -> None:
        self.path, self.budget = local_run(path), stated_budget(memory)
        if checkpoint is None:
            last, self.pin = pinned(self.path, partial(_read, self.path, model), self)
            self.state, self.config = last
        else:
            self.state, self.config = checkpoint
            _check_given(self.path, self.state)
            if model is not None:  # its file is not run in this process yet
                self.config = replace(self.config, model=model)
        self.transfer = open_transfer(device, self.config)
        found = self._open_graph() if graph is None else graph_of(graph)
        self.graph: GraphReader = Graph.of(found)
        self._is_other = not run_folder.is_same_graph(self.state.graph, self.graph)
        if graph is None:
            self.require_same_graph()

    def _repr_html_(self) -> str:
        return run_table(self.path)

    def require_same_graph(self) -> None:
        """Check that the graph is the one trained on.

        Raises:
            ConfigError: It is another.
        """
        run_folder.require_same_graph(self.state.graph, self.graph, self.path)

    @cached_property
    def context(self) -> GnnContext:
        """The task, the graph and the network with its weights."""
        from graphsys.gnn.training.api import build_context

        graph = self.graph.by_ids()  # draws are keyed on ids
        context = build_context(
            graph, self.config, self.transfer, is_checking=False, learned=self._learned()
        )
        context = replace(context, budget=self.budget)
        weights = runs.load(self.path, self.state, "best")
        if weights is None:
            weights = runs.load(self.path, self.state, "weights")
        if weights is None:
            raise ConfigError(
                f"the run {self.path} has no weights yet; go on with --resume"
            )
        if self._is_other:
            require_fitting(self.path, self.state, weights, context)
        if self.state.units:
            context.task.units = self.state.units
        context.network.restore(weights, self.path)
        context.network.stored.open(self.path, self.state.files, is_writing=False)
        context.network.eval()
        return context

    @property
    def node_type(self) -> str:
        """Whose rows the network computes."""
        return self.context.task.node_type

    @explained_whole()
    def output(
        self,
        nodes: Ints | None = None,
        *,
        node_type: str | None = None,
        progress: Progress = SILENT,
    ) -> Floats:
        """Return the network's output for nodes, from all of their neighbors.

        Args:
            nodes: Numbers ``[n]``; all nodes of the type by default.
            node_type: Their type; the one that was trained for by default.
            progress: Receives a stage per layer.

        Returns:
            float32 ``[n, num_out]``.

        Raises:
            StoreBusyError: Rows on disk were trained meanwhile.
            BudgetError: The device's memory is too small.
        """
        context, config = self.context, self.config
        chosen = node_type or self.node_type
        with kernel_threads(num_threads(config, self.graph.num_edges)):
            if not config.is_whole_graph:
                scratch = scratch_of(context, self.path)
                found = infer(
                    context,
                    chosen,
                    nodes=nodes,
                    progress=progress,
                    scratch=scratch,
                    entries=entries_within(context),
                )
                self.require_still()
                return found
            sizes = context.message_graph.sampler.sizes
            everything = {name: np.arange(size) for name, size in sizes.items()}
            x = whole_input(config, context.features.gather(everything))
            layer = context.message_graph.whole()
            if self.transfer is not None:
                layer, x = self.transfer.layer(layer), self.transfer.input(x)
            found = whole_output(context.network, layer, x, chosen).cpu().numpy()
            return found if nodes is None else found[nodes]

    def require_room(
        self,
        what: str,
        node_types: Sequence[str],
        beside: int = 0,
        nodes: Ints | None = None,
    ) -> None:
        """Check that rows of nodes of some types can be computed within the budget.

        Args:
            what: What they are computed for.
            node_types: The types.
            beside: Bytes that are there while they are, or after.
            nodes: Numbers of nodes of each type ``[n]``; all by default.

        Raises:
            BudgetError: They cannot; the message names an amount that works.
        """
        if self.budget is None or self.transfer is not None:
            return
        sizes = self.context.message_graph.sampler.sizes
        chosen = [name for name in node_types if name in sizes]
        with kernel_threads(num_threads(self.config, self.graph.num_edges)):
            if self.config.is_whole_graph:
                needed = resident_bytes() + whole_bytes(self.context)
            else:
                needed = max(inference_bytes(self.context, name, nodes) for name in chosen)
        if not are_rows_on_disk(self.context):
            row_bytes = 4 * self.context.network.num_out
            beside += sum(row_bytes * sizes[name] for name in chosen[1:])
        require_budget(what, needed + beside, self.budget)

    def require_relation(self, relation: str | None) -> None:
        """Check that a relation is given only where nodes have rows of several.

        Raises:
            ConfigError: They have one row each.
        """
        if relation is not None and not self.context.task.relations:
            raise ConfigError(
                f"relation: got {relation!r}, but this run of model {self.config.model} "
                "does not tell relations apart; leave it out"
            )

    def require_still(self) -> None:
        """Check that no training has written over rows on disk that were read.

        Raises:
            StoreBusyError: A training has.
        """
        is_done = self.config.learned_rows == "memory" or self.state.is_complete
        if is_done or runs.read_state(self.path).serial == self.state.serial:
            return
        raise StoreBusyError(
            f"the run {self.path} went on training while its rows on disk were read; "
            "repeat this when it is done"
        )

    def _learned(self) -> Learned | None:
        """Return what to take for the labels of another graph than the one trained on."""
        state = self.state
        if not (self._is_other and state.node_type):
            return None
        if state.node_type not in self.graph.node_types:
            raise ConfigError(
                f"the graph {self.graph.path} has nodes of type "
                f"{cut_list(self.graph.node_types)}, the run {self.path} computes rows of "
                f"{state.node_type!r}; expected the node types of the graph trained on"
            )
        return Learned(
            node_type=state.node_type, classes=state.classes, is_multi=state.is_multi
        )

    def _open_graph(self) -> GraphReader:
        return open_trained_graph(self.state.graph, self.path)


def _read(path: Path, model: str | None) -> tuple[runs.GnnRunState, GnnConfig]:
    """Read the last checkpoint, and check its files."""
    state, config = runs.read_state(path), runs.read_config(path, model)
    run_folder.check_files(path, state.files, state.checksums)
    return state, config


def _check_given(path: Path, state: runs.GnnRunState) -> None:
    """Check a checkpoint's files; a training may have written other settings since."""
    checksums = {k: v for k, v in state.checksums.items() if k != run_folder.CONFIG_NAME}
    run_folder.check_files(path, state.files, checksums)


def open_run(
    run: str | Path | OpenedRun,
    *,
    graph: GraphLike | None = None,
    device: str = "cpu",
    memory: int | str | None = None,
    model: str | None = None,
) -> OpenedRun:
    """Open a run for use, unless it is open; see :class:`OpenedRun`."""
    if isinstance(run, OpenedRun):
        return run
    return OpenedRun(run, graph=graph, device=device, memory=memory, model=model)


def require_fitting(
    run: Path, state: GnnRunState, weights: Weights, context: GnnContext
) -> None:
    """Check that the network made for another graph takes a run's weights.

    It does where nodes have the same features and messages go along the same edge types:
    then what was learned is of no node in particular.

    Args:
        run: The run's folder.
        state: Its checkpoint.
        weights: Of the run.
        context: The network for the other graph, and what it reads.

    Raises:
        ConfigError: It does not.
        InvalidGraphError: Features of the other graph are not finite.
    """
    where, is_on_disk = context.graph.path, context.network.config.learned_rows == "disk"
    for name, shape in context.features.shapes.items():
        if not shape.dim and (is_on_disk or not shape.is_bag):
            raise ConfigError(
                f"the run {run} has a learned row for each node of type {name!r} it was "
                f"trained on, and none for those of {where}; expected node types with "
                "features, or the graph trained on; train a new run"
            )
    if list(context.task.classes) != state.classes:  # of a run that does not say its type
        raise ConfigError(
            f"the graph {where} has classes {cut_list(context.task.classes)}, the run "
            f"{run} {cut_list(state.classes)}; expected the same"
        )
    own = {name: list(value.shape) for name, value in context.network.state_dict().items()}
    given = {name: list(value.shape) for name, value in weights.items()}
    if own != given:
        name = min(n for n in own.keys() | given.keys() if own.get(n) != given.get(n))
        raise ConfigError(
            f"the graph {where} does not fit the network of the run {run}: for it, {name} "
            f"would be {own.get(name, 'left out')}, it is {given.get(name, 'not there')}; "
            "expected the features and edge types of the graph trained on"
        )
    context.features.check()
