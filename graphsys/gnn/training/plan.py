"""What a training would take, measured on a few batches whose steps are thrown away."""

import copy
import itertools
import shutil
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from graphsys.core.errors import StorageFullError
from graphsys.core.memory import MemoryMeter, format_bytes, resident_bytes
from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.loader import Batch
from graphsys.gnn.run import RunState
from graphsys.gnn.tasks.factory import make_objective
from graphsys.gnn.training.trainer import Parts, Trainer
from graphsys.storage.reader import Graph

_BATCHES = 3
_METER_S = 0.005
_SHARES = (16, 8, 4, 2)
_BESIDE_BYTES = 200 * 10**6  # of the 300 MB beside a budget that torch may take


def make_plan(config: GnnConfig, parts: Parts) -> Mapping[str, Any]:
    """Train a few batches on a copy of the network and extrapolate.

    Returns:
        ``planned_memory_bytes`` (the most that the process held, and the batches that
        wait), ``planned_parameter_bytes``, ``planned_rows_bytes`` (learned rows on disk,
        with those of two checkpoints), ``planned_disk_bytes`` (see :func:`disk_bytes`),
        ``planned_device_memory_bytes`` (the most taken on a GPU), ``planned_batches`` per
        epoch, ``probed_edges_per_batch``,
        ``estimated_seconds_per_epoch`` and ``estimated_seconds``, both without evaluation.
    """
    copied = replace(parts, network=copy.deepcopy(parts.network))
    trainer = Trainer(None, config, RunState(graph={}), copied)
    seeds = parts.objective.seeds(0)
    times, edges, waiting = [], 0, 0
    with MemoryMeter(_METER_S) as meter:
        for batch in itertools.islice(trainer.batches(0, seeds), _BATCHES):
            began = time.perf_counter()
            trainer.train_batch(0, batch, len(seeds))
            taken = time.perf_counter() - began
            times.append(taken + batch.sample_s + batch.gather_s)
            edges = max(edges, batch.num_edges)
            waiting = max(waiting, _input_bytes(batch))
            trainer.loader.release(batch)
    parameters = sum(p.numel() * p.element_size() for p in parts.network.parameters())
    rows = sum(each.most_bytes for each in parts.network.stored)
    epoch_s = min(times) * len(seeds)
    return {
        "planned_memory_bytes": meter.peak_bytes + waiting * config.prefetch,
        "planned_parameter_bytes": parameters,
        **({"planned_rows_bytes": rows} if rows else {}),
        "planned_disk_bytes": disk_bytes(config, parts),
        **({} if parts.mover is None else parts.mover.memory()),
        "planned_batches": len(seeds),
        "probed_edges_per_batch": edges,
        "estimated_seconds_per_epoch": epoch_s,
        "estimated_seconds": epoch_s * config.epochs,
    }


def bytes_beyond(graph: Graph, config: GnnConfig, parts: Parts, budget: int) -> int | None:
    """Return what a training would take, where not even its plan can be made.

    Smaller batches are trained first, of twice as many seeds each time. Batches take at
    most in proportion to their seeds, so that none is tried that could take more than the
    budget and what torch may take beside it.

    Args:
        graph: The graph, open.
        config: The settings; a whole graph is no batch, and has no smaller ones.
        parts: What would be trained; stays as it is.
        budget: Most memory of the process, in bytes.

    Returns:
        Bytes at most; None: the plan can be made.
    """
    for share in _SHARES:
        size = config.batch_size // share
        if not size:
            continue
        small = replace(config, batch_size=size)
        with torch.random.fork_rng(devices=[]), MemoryMeter(_METER_S) as meter:
            objective = make_objective(graph, small)
            network = copy.deepcopy(parts.network)
            trial = replace(parts, network=network, objective=objective)
            trainer = Trainer(None, small, RunState(graph={}), trial)
            base = resident_bytes()
            for batch in itertools.islice(trainer.batches(0, objective.seeds(0)), 1):
                trainer.train_batch(0, batch, 1)
                trainer.loader.release(batch)
        taken = max(meter.peak_bytes - base, 0)
        if base + 2 * taken > budget + _BESIDE_BYTES:
            return base + share * taken
    return None


def disk_bytes(config: GnnConfig, parts: Parts) -> int:
    """Return what a run takes on disk at most: two checkpoints, and learned rows.

    A checkpoint has the weights, two moments of each that is trained, and the best
    weights so far where they are kept.
    """
    network = parts.network
    weights: int = sum(t.nbytes for t in network.state_dict().values())
    moments: int = sum(2 * p.nbytes for p in network.parameters() if p.requires_grad)
    best = weights if config.keep == "best" and config.eval_every else 0
    rows: int = sum(each.most_bytes for each in network.stored)
    return 2 * (weights + moments + best) + rows


def require_disk(out: Path, needed: int) -> None:
    """Check that a run fits on the disk before it is begun.

    Raises:
        StorageFullError: It does not.
    """
    folder = next(p for p in (out.absolute(), *out.absolute().parents) if p.exists())
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise StorageFullError(
            f"the run takes {format_bytes(needed)} at {out} (two checkpoints) and "
            f"{format_bytes(free)} is free; free some space or choose another output"
        )


def _input_bytes(batch: Batch) -> int:
    rows = sum(
        x.numel() * x.element_size()
        for x in batch.x.values()
        if isinstance(x, torch.Tensor)
    )
    return rows + sum(
        each.indices.nbytes * 5 for hop in batch.hops for each in hop.values()
    )
