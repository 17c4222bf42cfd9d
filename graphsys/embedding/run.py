"""A run on disk: what it is made of, how a checkpoint commits, who may write.

The guide of using a run lists them. Files are written under new names and flushed; the
atomic replacement of ``run.json`` makes them the checkpoint; only then do the old ones go.
A kill at any moment leaves the checkpoint before or the one after.
"""

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from graphsys.core import ownership
from graphsys.core.arrays import load_array, npy_pieces
from graphsys.core.checksums import digest
from graphsys.core.errors import CorruptStoreError
from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.training_log import LOG_NAME
from graphsys.storage import transaction
from graphsys.storage.manifest import file_name
from graphsys.storage.runs import run_folder
from graphsys.storage.runs.run_folder import CONFIG_NAME as CONFIG_NAME
from graphsys.storage.runs.run_folder import RUN_NAME as RUN_NAME
from graphsys.storage.runs.run_folder import describe_graph as describe_graph
from graphsys.storage.runs.run_folder import require_free as require_free
from graphsys.storage.runs.run_folder import require_same_graph as require_same_graph
from graphsys.storage.runs.run_folder import sync_folder
from graphsys.storage.runs.run_pins import remove_unlisted
from graphsys.storage.transaction import disk_errors
from graphsys.training import checkpoint
from graphsys.training.checkpoint import write_config as write_config

Floats = npt.NDArray[np.float32]


@dataclass(kw_only=True)
class EmbeddingRunState:
    """The content of ``run.json``: one checkpoint.

    Attributes:
        graph: Path, generation, fingerprint and counts of the graph trained on.
        epoch: Epochs completed.
        unit: Units of the current epoch completed.
        first_units: Places in the epoch's order of the units that were trained first in
            the current epoch, where a cluster took them in another order; the others
            follow in that order.
        serial: The last number given to a file; no name is ever given twice.
        seconds: Training time so far.
        cpu_seconds: Processor time of it, of all threads; 0 on a cluster.
        num_edges: Edges trained so far.
        losses: Mean loss per edge of every completed epoch.
        loss_sum: Summed loss of the current epoch so far.
        epoch_edges: Edges trained in the current epoch so far.
        is_complete: Whether the training ended, by all epochs, early or by a callback.
        metrics: Evaluations while training, and the final loss.
        order: Order of the units, and the capacity of the buffer it was made for; none
            in runs from before there was a choice, which went inside out.
        best: Best checkpoint so far, for early stopping: ``epoch``, ``value`` of the
            metric, and ``waited``, the evaluations since then.
        closed_epochs: Epochs after which evaluations and the like are done too.
        is_stopped: Whether training was ended before all epochs were done.
        log_bytes: Length of ``training.jsonl``.
        log_checksum: Checksum of so many of its bytes.
        held_out: Summed loss and number of held-out edges in this epoch so far.
        warm: What was taken from the run of ``init_from``.
        files: Bytes of every file of the checkpoint, by path.
        checksums: Checksum of all bytes of every file, and of ``config.toml``, as
            ``xxh3:...``; in version 1 the CRC-32 of the array in the file, or none.
        format_version: Version of the layout.
    """

    graph: dict[str, Any]
    epoch: int = 0
    unit: int = 0
    first_units: list[int] = field(default_factory=list)
    serial: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    num_edges: int = 0
    losses: list[float] = field(default_factory=list)
    loss_sum: float = 0.0
    epoch_edges: int = 0
    is_complete: bool = False
    metrics: dict[str, Any] = field(default_factory=dict)
    order: dict[str, Any] = field(default_factory=dict)
    best: dict[str, Any] = field(default_factory=dict)
    closed_epochs: int = 0
    is_stopped: bool = False
    log_bytes: int = 0
    log_checksum: str = ""
    held_out: list[float] = field(default_factory=lambda: [0.0, 0.0])
    warm: dict[str, Any] = field(default_factory=dict)
    files: dict[str, int] = field(default_factory=dict)
    checksums: dict[str, Any] = field(default_factory=dict)
    format_version: int = run_folder.FORMAT_VERSION

    def count(self, num_edges: int, loss: float) -> None:
        """Count edges trained, with their summed loss."""
        self.loss_sum += loss
        self.num_edges += num_edges
        self.epoch_edges += num_edges

    def end_epoch(self) -> None:
        """Count an epoch as completed."""
        self.losses.append(self.loss_sum / max(self.epoch_edges, 1))
        self.loss_sum, self.epoch_edges, self.unit = 0.0, 0, 0
        self.first_units = []
        self.epoch += 1
        self.metrics["loss"] = self.losses[-1]


def read_state(path: Path) -> EmbeddingRunState:
    """Read ``run.json``; see :func:`graphsys.training.checkpoint.read_state`."""
    # who asks may have meant a run of either trainer
    advice = "`graphsys train embedding GRAPH -o RUN` or `graphsys train gnn GRAPH -o RUN`"
    return checkpoint.read_state(path, EmbeddingRunState, "run", advice)


def read_config(path: Path) -> EmbeddingConfig:
    """Return the settings that a run was trained with."""
    return checkpoint.read_config(path, EmbeddingConfig)


def check_files(path: Path, state: EmbeddingRunState, *, content: bool = True) -> None:
    """Check that every file of the checkpoint is there and is what was written.

    Args:
        path: The run's folder.
        state: The checkpoint.
        content: Whether to compare checksums too, of files not known to be sound.

    Raises:
        CorruptStoreError: One is missing, or has another size or content.
    """
    run_folder.check_files(path, state.files, state.checksums, content=content)


def commit(path: Path, state: EmbeddingRunState) -> None:
    """Make a checkpoint the current one; its files are durable, others' stay.

    Raises:
        StorageFullError: It cannot be written; the one before stays.
        TrainingFailedError: The folder, or a file of the checkpoint, is gone.
    """
    run_folder.require_there(path, state.files, state.checksums)
    state.format_version = run_folder.FORMAT_VERSION
    with disk_errors(path):
        for folder in {str((path / name).parent) for name in state.files}:
            sync_folder(Path(folder))
    run_folder.write_content(path, dataclasses.asdict(state))


def remove_superseded(path: Path, state: EmbeddingRunState) -> None:
    """Remove files of rows, states and relations that the checkpoint does not list."""
    remove_unlisted(path, state.files)


def discard(path: Path) -> None:
    """Remove a run of which nothing was trained; files that are not a run's stay."""
    remove_superseded(path, EmbeddingRunState(graph={}))
    ownership.remove_listed(path, (RUN_NAME, CONFIG_NAME, LOG_NAME))


def write_array(file: Path, array: npt.NDArray[Any]) -> int:
    """Write a new .npy file; return its size. A failed one is removed.

    It is durable after :func:`sync_file`: a file replaced before the next checkpoint need
    not reach the disk at all.

    Raises:
        StorageFullError: It cannot be written.
    """
    with disk_errors(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            with file.open("wb") as stream:
                for piece in npy_pieces(array):
                    stream.write(piece)
                return stream.tell()
        except BaseException:
            ownership.remove_made(file)
            raise


def array_checksum(array: npt.NDArray[Any]) -> str:
    """Return the checksum of the file that :func:`write_array` makes of an array."""
    return digest(*npy_pieces(array))


def sync_file(file: Path) -> None:
    """Flush a file to disk.

    Raises:
        StorageFullError: It cannot be written.
    """
    with disk_errors(file):
        transaction.sync_file(file)


def read_array(
    path: Path,
    name: str,
    *,
    mapped: Literal["r", "c"] | None = None,
    shape: tuple[int, ...] | None = None,
    dtype: npt.DTypeLike = np.float32,
) -> npt.NDArray[Any]:
    """Read a .npy file of a checkpoint, or map it: read-only or copied on write.

    Args:
        path: The run's folder.
        name: The file.
        mapped: How to map it; None to read it.
        shape: What its header must say; None for any.
        dtype: The type that goes with the shape.

    Raises:
        CorruptStoreError: It is missing or no such file, or of another shape or type.
    """
    try:
        array = load_array(path / name, mapped)
    except (OSError, ValueError, EOFError) as err:
        raise CorruptStoreError(
            f"{path / name} cannot be read: {err}; train the run again"
        ) from err
    if shape is not None and (array.shape != shape or array.dtype != np.dtype(dtype)):
        raise CorruptStoreError(
            f"{path / name} has shape {array.shape} and type {array.dtype}, expected "
            f"{shape} and {np.dtype(dtype)}; train the run again"
        )
    return array


def rows_file(node_type: str, part: int, serial: int) -> str:
    """Return the path of a partition's embeddings, relative to the run."""
    return f"rows/{file_name(node_type)}/part-{part}.{serial}.npy"


def state_file(node_type: str, part: int, serial: int) -> str:
    """Return the path of the states of a partition's rows, relative to the run."""
    return f"state/{file_name(node_type)}/part-{part}.{serial}.npy"


def relations_file(edge_type: str, serial: int) -> str:
    """Return the path of an edge type's operators, relative to the run."""
    return f"relations/{file_name(edge_type)}.{serial}.npy"


def globals_file(node_type: str, serial: int) -> str:
    """Return the path of a node type's global vector, relative to the run."""
    return f"globals/{file_name(node_type)}.{serial}.npy"


def find_file(state: EmbeddingRunState, name: str) -> str | None:
    """Return the file of a checkpoint that is some version of ``name``, or None."""
    stem = name.rsplit(".", 2)[0]
    return next((file for file in state.files if file.rsplit(".", 2)[0] == stem), None)
