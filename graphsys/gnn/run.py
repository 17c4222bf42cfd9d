"""A run of a graph neural network on disk: ``run.json``, ``config.toml``, weights."""

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from graphsys.core.checksums import digest, file_digest
from graphsys.core.config import from_mapping, load_toml
from graphsys.core.errors import ConfigError, CorruptStoreError
from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.disk_embedding import StoredEmbedding
from graphsys.gnn.data.disk_rows import is_written_again
from graphsys.gnn.model_spec import is_file
from graphsys.gnn.user_models import require_word_for
from graphsys.storage.runs import run_folder
from graphsys.storage.runs.run_folder import CONFIG_NAME, GNN, write_durably
from graphsys.storage.runs.run_pins import remove_replaced, remove_unlisted
from graphsys.training import checkpoint

Weights = dict[str, torch.Tensor]


@dataclass(kw_only=True)
class GnnRunState:
    """The content of ``run.json``: one checkpoint.

    Attributes:
        graph: Path, generation, fingerprint and counts of the graph trained on.
        kind: ``gnn``, which tells such runs from those of embeddings.
        num_out: Features of the network's output.
        classes: Names of the classes, where nodes are classified.
        units: Mean and deviation of the labels, where they are numbers.
        node_type: Whose rows the network computes; "" in runs from before it was said.
        is_multi: Whether a node may have several classes.
        model_digest: Checksum of the file of a user's own model.
        epoch: Epochs completed.
        batch: Batches of the current epoch completed.
        serial: The last number given to a file; no name is ever given twice.
        seconds: Training time so far, evaluation apart.
        cpu_seconds: Processor time of it, of all threads.
        num_edges: Entries of the blocks trained on so far.
        losses: Mean loss of every completed epoch.
        loss_sum: Summed loss of the current epoch so far.
        num_seeds: Nodes or pairs that it is of.
        task_losses: Where there are side tasks, mean loss of every completed epoch by task,
            without its weight; ``task`` is that of the pairs.
        task_sums: Those losses of the current epoch so far, summed.
        history: Epoch, loss, metric, ``seconds`` and ``cpu_seconds`` of every evaluation
            while training.
        best_epoch: The epoch whose weights are kept; 0 for none.
        best_value: What ``monitor`` was then.
        is_complete: Whether the training is over.
        metrics: Times and evaluations.
        files: Bytes of every file of the checkpoint, by name.
        checksums: Checksum of all bytes of each, and of ``config.toml``, as ``xxh3:...``;
            none for segments of rows before the training is over, in which rows of the
            checkpoint lie among those that are written meanwhile.
        format_version: Version of the layout.
    """

    graph: dict[str, Any]
    kind: str = GNN
    num_out: int = 0
    classes: list[Any] = field(default_factory=list)
    units: list[float] = field(default_factory=list)
    node_type: str = ""
    is_multi: bool = False
    model_digest: str = ""
    epoch: int = 0
    batch: int = 0
    serial: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    num_edges: int = 0
    losses: list[float] = field(default_factory=list)
    loss_sum: float = 0.0
    num_seeds: int = 0
    task_losses: dict[str, list[float]] = field(default_factory=dict)
    task_sums: dict[str, float] = field(default_factory=dict)
    history: list[list[float]] = field(default_factory=list)
    best_epoch: int = 0
    best_value: float = 0.0
    is_complete: bool = False
    metrics: dict[str, Any] = field(default_factory=dict)
    files: dict[str, int] = field(default_factory=dict)
    checksums: dict[str, Any] = field(default_factory=dict)
    format_version: int = run_folder.FORMAT_VERSION


def read_state(path: Path) -> GnnRunState:
    """Read ``run.json``; see :func:`graphsys.training.checkpoint.read_state`."""
    advice = "`graphsys train gnn GRAPH -o RUN`"
    return checkpoint.read_state(path, GnnRunState, "run", advice, kind=GNN)


def read_config(path: Path, model: str | None = None) -> GnnConfig:
    """Return the settings that a run was trained with.

    Args:
        path: The run's folder.
        model: The place of the run's model, ``my_model.py:Net``, on the user's word; None:
            where the run says, if the user has named that before.

    Raises:
        ConfigError: The model's file is not to be executed, or the run has none.
    """
    settings = load_toml(path / CONFIG_NAME)
    if model is None:
        require_word_for(path, settings)
    elif not (is_file(model) and is_file(str(settings.get("model", "")))):
        raise ConfigError(
            f"model: got {model}, but the run {path} has the model "
            f"{settings.get('model')}, and none of a file; leave it out"
        )
    else:
        settings["model"] = model
    return from_mapping(GnnConfig, settings, where=str(path / CONFIG_NAME))


def begin(path: Path, config: GnnConfig, state: GnnRunState) -> None:
    """Write the first state of a run.

    Raises:
        StorageFullError: It cannot be written.
    """
    state.checksums[CONFIG_NAME] = checkpoint.write_config(path, config)
    commit(path, state, {})


def commit(
    path: Path,
    state: GnnRunState,
    tensors: dict[str, Weights | None],
    rows: StoredEmbedding | None = None,
) -> None:
    """Make a checkpoint the current one, and remove what it replaces.

    Args:
        path: The run's folder.
        state: Its state; ``files`` and ``serial`` are brought up to date.
        tensors: Contents of files by their stem; None for one that has not changed.
        rows: Learned rows on disk.

    Raises:
        StorageFullError: A file cannot be written; the checkpoint before stays.
        TrainingFailedError: The run's folder, or a file of it, is gone.
    """
    from safetensors.torch import save

    run_folder.require_there(path, state.files, state.checksums)
    before = set(state.files)
    files: dict[str, int] = {}
    checksums = {
        name: state.checksums[name] for name in (CONFIG_NAME,) if name in state.checksums
    }
    state.serial += 1
    for stem, content in tensors.items():
        if content is None:
            kept = [name for name in state.files if _stem(name) == stem]
            files |= {name: state.files[name] for name in kept}
            checksums |= {n: state.checksums[n] for n in kept if n in state.checksums}
            continue
        data = save({name: value.contiguous() for name, value in content.items()})
        name = f"{stem}.{state.serial}.safetensors"
        write_durably(path / name, data)
        files[name], checksums[name] = len(data), digest(data)
        del data  # before the next file is made
    if rows is not None:
        stored = rows.flush(state.serial, state.best_epoch if "best" in tensors else 0)
        files |= stored
        checksums |= {
            name: file_digest(path / name)
            for name in stored
            if state.is_complete or not is_written_again(name)
        }
    state.files, state.checksums = files, checksums
    state.format_version = run_folder.FORMAT_VERSION
    run_folder.write_content(path, dataclasses.asdict(state))
    if rows is not None:
        rows.committed()
    remove_replaced(path, before - files.keys())


def remove_superseded(path: Path, state: GnnRunState) -> None:
    """Remove weights and learned rows that the checkpoint does not list."""
    remove_unlisted(path, state.files)


def load(path: Path, state: GnnRunState, stem: str) -> Weights | None:
    """Return the tensors of a checkpoint's file, or None if it has no such file.

    Raises:
        CorruptStoreError: The file cannot be read.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    name = next((name for name in state.files if _stem(name) == stem), None)
    if name is None:
        return None
    try:
        found: Weights = load_file(path / name)
    except (OSError, SafetensorError, ValueError) as err:
        raise CorruptStoreError(
            f"{path / name} cannot be read: {err}; train the run again"
        ) from err
    return found


def _stem(name: str) -> str:
    return name.split(".", 1)[0]
