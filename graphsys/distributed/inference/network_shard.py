"""One worker's share of a network's layers: rows of some nodes, left in files for all."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from graphsys.core.arrays import distinct
from graphsys.distributed.inference.run_work import RunWork, require_checkpoint
from graphsys.distributed.shared_files import SharedFiles, shared_files
from graphsys.gnn.inference.trained_model import OpenedRun
from graphsys.gnn.layerwise_inference import entries_within, infer_sampled, scratch_of
from graphsys.gnn.layerwise_passes import LayerByLayer
from graphsys.gnn.ops.adjacency import kernel_threads
from graphsys.storage.reader import GraphReader
from graphsys.storage.transaction import disk_errors

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerSlices:
    """Nodes of a type in a layer, dealt out to workers.

    Attributes:
        stem: How the names of its files begin.
        bounds: Where each worker's nodes begin, and the end, in the list of the nodes.
        is_all: Whether that list is all nodes of the type; else it is in a file.
    """

    stem: str
    bounds: Sequence[int]
    is_all: bool

    @property
    def list_file(self) -> str:
        """The file with the numbers of the nodes, int64 ``[n]``."""
        return f"{self.stem}.nodes"

    def piece_file(self, rank: int) -> str:
        """Return the file with a worker's rows, float32 ``[m, F]``."""
        return f"{self.stem}.{rank}"

    @property
    def names(self) -> list[str]:
        """Its files."""
        pieces = map(self.piece_file, range(len(self.bounds) - 1))
        return [*([] if self.is_all else [self.list_file]), *pieces]

    def numbers(self, files: SharedFiles, rank: int) -> Ints:
        """Return the numbers of a worker's nodes, int64 ``[m]``."""
        low, high = self.bounds[rank], self.bounds[rank + 1]
        if self.is_all:
            return np.arange(low, high, dtype=np.int64)
        return np.array(*files.parts([(self.list_file, low, high)]))


class MappedLayer:
    """The rows of a layer as workers left them, mapped.

    Args:
        files: Where they did.
        shares: Whose rows are where; nodes that are listed ascend.
    """

    def __init__(self, files: SharedFiles, shares: LayerSlices) -> None:
        self._numbers = None if shares.is_all else files.load(shares.list_file)
        self._bounds = np.asarray(shares.bounds, dtype=np.int64)
        self._pieces: list[Floats | None] = [
            files.load(shares.piece_file(rank)) if low < high else None
            for rank, (low, high) in enumerate(
                zip(shares.bounds[:-1], shares.bounds[1:], strict=True)
            )
        ]

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows there are, and how long they are."""
        dims = [piece.shape[1] for piece in self._pieces if piece is not None]
        return int(self._bounds[-1]), dims[0]

    def of(self, nodes: Ints) -> Floats:
        """Return the rows of nodes that have one, float32 ``[n, F]``."""
        places = nodes
        if self._numbers is not None:
            places = np.searchsorted(self._numbers, nodes)
        found = np.empty((len(nodes), self.shape[1]), dtype=np.float32)
        ranks = np.searchsorted(self._bounds, places, side="right") - 1
        for rank in distinct(ranks):
            piece, is_its = self._pieces[rank], ranks == rank
            assert piece is not None  # a node lies in it
            found[is_its] = piece[places[is_its] - self._bounds[rank]]
        return found

    def write_to(self, out: Floats) -> None:
        """Write all rows, in the order of the list, float32 ``[n, F]``."""
        for low, piece in zip(self._bounds, self._pieces, strict=False):
            if piece is not None:
                out[low : low + len(piece)] = piece


class NetworkShard:
    """A worker that has a network's run open, and computes its share of a layer.

    Args:
        rank: Number of the worker.
        size: How many there are.
        work: The run.

    Raises:
        ConfigError: The run is not what the others have opened.
        CorruptStoreError: A file of it is damaged.
    """

    def __init__(self, rank: int, size: int, work: RunWork) -> None:
        self._rank, self._work = rank, work
        self._run: OpenedRun | None = None
        self._files: SharedFiles | None = None
        self._stack = ExitStack()  # of a killed worker, the next one drops the folder

    @property
    def run(self) -> OpenedRun:
        """The run."""
        if self._run is None:
            run = OpenedRun(self._work.path, graph=GraphReader(self._work.graph))
            require_checkpoint(self._work, run.path, run.state)
            self._run = run
        return self._run

    def ready(self) -> None:
        """Return when the network is there; what is wrong with the run ends here."""
        _ = self.run.context

    def compute(
        self,
        place: str,
        k: int,
        asked: Mapping[str, LayerSlices],
        known: Mapping[str, LayerSlices],
    ) -> list[str]:
        """Compute the own rows of a layer; twice leaves what once does.

        Args:
            place: Where rows of layers are.
            k: Number of the layer.
            asked: Its nodes by type.
            known: The rows of the layer before by type; none before the first.

        Returns:
            The types whose rows are in files now.

        Raises:
            StorageFullError: They cannot be written.
        """
        files = self._opened(place)
        before = {it: MappedLayer(files, known[it]) for it in known} if k else None
        context, written = self.run.context, []
        scratch = scratch_of(context, files.path)
        with kernel_threads(self._work.threads), torch.no_grad():
            for name, shares in asked.items():
                layers = LayerByLayer(context, scratch, entries_within(context))
                numbers = shares.numbers(files, self._rank)
                rows = layers.compute(k, name, numbers, before)
                if rows is not None:
                    save_rows(files, shares.piece_file(self._rank), rows)
                    written.append(name)
        for shares in known.values():
            files.let_go(shares.names)
        return written

    def compute_sampled(self, place: str, node_type: str, shares: LayerSlices) -> None:
        """Compute the own nodes' output, each from a sample; twice leaves what once does.

        Args:
            place: Where the rows go.
            node_type: Of the nodes.
            shares: The nodes, whole batches for each worker.

        Raises:
            StorageFullError: The rows cannot be written.
        """
        context, files = self.run.context, self._opened(place)
        numbers = shares.numbers(files, self._rank)
        first = shares.bounds[self._rank] // context.config.batch_size
        context.network.eval()
        if len(numbers):
            with kernel_threads(self._work.threads), torch.no_grad():
                rows = infer_sampled(context, node_type, numbers, first_batch=first)
            save_rows(files, shares.piece_file(self._rank), rows)

    def _opened(self, place: str) -> SharedFiles:
        if self._files is None or self._files.place != place:
            self._stack.close()
            self._files = self._stack.enter_context(shared_files(place))
        return self._files


def save_rows(files: SharedFiles, name: str, rows: npt.NDArray[Any]) -> None:
    """Write an array, whole or not at all.

    Raises:
        StorageFullError: It cannot be written.
    """
    with disk_errors(files.path):
        files.save(name, rows)
