"""What a training would take, measured on a few batches whose steps are thrown away."""

import copy
import itertools
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from graphsys.core.memory import (
    MemoryMeter,
    release_free_memory,
    resident_bytes,
    return_large_blocks,
)
from graphsys.gnn.config import GnnConfig
from graphsys.gnn.context import GnnContext
from graphsys.gnn.layerwise_inference import are_rows_on_disk, probe
from graphsys.gnn.models.model import key_of
from graphsys.gnn.models.network import Network
from graphsys.gnn.models.recomputation import LayerCosts, choose_layers
from graphsys.gnn.run import GnnRunState
from graphsys.gnn.tasks.factory import make_task
from graphsys.gnn.tasks.task import epoch_seeds
from graphsys.gnn.training.memory_watch import addresses_of, batch_bytes
from graphsys.gnn.training.sharded_parameters import are_cut, largest_part_bytes
from graphsys.gnn.training.trainer import GnnTrainer

Ints = npt.NDArray[np.int64]
_BATCHES = 3
_KEPT_BLOCK = 4 << 20
_TRIES = 3  # of layers to recompute: what the heap keeps is not theirs
_KEPT_BYTES = 48 << 20
_LEAST_KEPT_BYTES = 32 << 20
_METER_S = 0.005
_SHARES = (32, 16, 8, 4, 2)
_ALONE_BYTES = 100 * 10**6  # a first batch of this size is told by itself
_MOST_ENTRIES = 4 << 20  # of a batch that is sampled to be counted
_AROUND_BYTES = 96 << 20  # what the first batches load, and the heap keeps of them
_VARIES = 0.06  # plans of one training, measured again and again, differ by twice that
_BESIDE_BYTES = 200 * 10**6  # of the 300 MB beside a budget that torch may take


def make_plan(context: GnnContext) -> Mapping[str, Any]:
    """Train a few batches on a copy of the network and extrapolate.

    Returns:
        ``planned_memory_bytes`` (the most that the process held, and the batches that
        wait, or an evaluation or a checkpoint if that takes more),
        ``planned_memory_split`` (its parts, see :mod:`graphsys.training.memory_split`),
        ``planned_parameter_bytes``, ``planned_gathered_bytes`` (with sharding parameters:
        weights of a layer and their gradients, or all weights in an evaluation),
        ``planned_rows_bytes`` (learned rows on disk, with those of two checkpoints),
        ``planned_disk_bytes`` (see :func:`disk_bytes`),
        ``planned_device_memory_bytes`` (the most taken on a GPU), ``planned_batches`` per
        epoch, ``probed_edges_per_batch``,
        ``estimated_seconds_per_epoch`` and ``estimated_seconds``, both without evaluation.
    """
    config = context.config
    kept = checkpoint_bytes(context)
    trainer = GnnTrainer(_untrained(context))
    seeds = epoch_seeds(context.task, config, 0)
    times, edges = [], 0
    waiting: dict[str, int] = {}
    release_free_memory()  # of smaller batches that were tried
    with MemoryMeter(_METER_S) as meter:
        base = resident_bytes()
        for batch in itertools.islice(trainer.batches(0, seeds), _BATCHES):
            began = time.perf_counter()
            # the first as an epoch of its own, which ends with a step: moments are there
            trainer.train_batch(0, batch, len(seeds) if batch.number else 1)
            taken = time.perf_counter() - began
            times.append(taken + batch.sample_s + batch.gather_s)
            edges = max(edges, batch.num_edges)
            for name, size in batch_bytes(batch).items():
                waiting[name] = max(waiting.get(name, 0), size)
            trainer.loader.release(batch)
            del batch  # its rows are not there in an evaluation
    evaluated = _evaluation_bytes(context)
    parameters = sum(p.numel() * p.element_size() for p in context.network.parameters())
    rows = sum(each.most_bytes for each in context.network.stored)
    epoch_s = min(times, default=0.0) * len(seeds)
    ahead = {name: size * abs(config.prefetch) for name, size in waiting.items()}
    planned = max(at_most(meter, base) + sum(ahead.values()), evaluated, kept)
    return {
        "planned_memory_bytes": planned,
        "planned_memory_split": trainer.stepper.memory.split(planned, ahead),
        "planned_parameter_bytes": parameters,
        **_gathered(context),
        **({"planned_rows_bytes": rows} if rows else {}),
        "planned_disk_bytes": disk_bytes(context),
        **({} if context.transfer is None else context.transfer.memory()),
        "planned_batches": len(seeds),
        "probed_edges_per_batch": edges,
        "estimated_seconds_per_epoch": epoch_s,
        "estimated_seconds": epoch_s * config.epochs,
    }


def _gathered(context: GnnContext) -> dict[str, int]:
    """Return what each of several processes has whole of weights that they share out."""
    network, config = context.network, context.config
    if config.sharding != "parameters" or not isinstance(network, Network):
        return {}
    step = 2 * largest_part_bytes(network)  # with their gradients
    everything = _trained_bytes(context) if config.eval_every else 0
    return {"planned_gathered_bytes": max(step, everything)}


def plan_within(context: GnnContext, budget: int | None) -> Mapping[str, Any]:
    """Make a plan; where it exceeds the budget, have layers recomputed that it fits.

    Args:
        context: What would be trained; ``recomputed`` of its network is set.
        budget: Most memory of the process, in bytes; None: no limit.

    Returns:
        As :func:`make_plan`, and ``recomputed_layers`` where there are any.
    """
    network = context.network
    if budget is None or not may_choose_layers(context):
        plan = make_plan(context)
    else:
        assert isinstance(network, Network)  # as may_choose_layers() says
        costs = _layer_costs(context)
        # what surely does not fit is not tried
        saved = max(resident_bytes() + costs.peak(()) - budget, 0)
        for _ in range(_TRIES):
            if saved:  # what a layer frees is not to stay in the heap
                return_large_blocks(_KEPT_BLOCK)
            chosen = choose_layers(costs, saved) if saved else frozenset()
            network.recomputed = chosen
            plan = make_plan(context)
            planned = plan["planned_memory_bytes"]
            if not exceeds(planned, budget):
                break
            saved += planned - budget
            if choose_layers(costs, saved) == chosen:  # nothing else saves more
                break
    layers = sorted(getattr(network, "recomputed", ()))
    return {**plan, "recomputed_layers": layers} if layers else plan


def may_choose_layers(context: GnnContext) -> bool:
    """Tell whether a plan may have layers recomputed, and has none yet."""
    network = context.network
    is_asked = context.config.recompute == "auto" and context.transfer is None
    is_able = isinstance(network, Network) and network.can_recompute
    return is_asked and is_able and not network.recomputed


def _layer_costs(context: GnnContext) -> LayerCosts:
    """Measure the layers in the forward pass of a batch, the second of two."""
    trainer = GnnTrainer(_untrained(context))
    network: Any = trainer.network
    network.train()
    seeds = epoch_seeds(context.task, context.config, 0)
    costs = LayerCosts()
    with torch.random.fork_rng(devices=[]):
        for batch in itertools.islice(trainer.batches(0, seeds), 1):
            for _ in range(2):
                gathered = network.shards.addresses if network.shards else ()
                network.costs = costs = LayerCosts(addresses_of(network, batch), gathered)
                network(batch.hops, batch.x)
            trainer.loader.release(batch)
    return costs


def bytes_beyond(context: GnnContext, budget: int) -> int | None:
    """Return what a training would take, where not even its plan can be made.

    Smaller batches are trained first, of twice as many seeds each time. Batches take in
    proportion to the rows and entries that are sampled, and something that does not grow
    with them, so that two of them tell what a third takes; none is tried that could take
    more than the budget and what torch may take beside it, if its rows grew as its seeds.
    Learned rows are known by their number, so that batches are tried with one row for all;
    see also :func:`checkpoint_bytes`.

    Args:
        context: What would be trained; stays as it is. Learned rows may be absent but for
            one of a type. A whole graph is no batch, and has no smaller ones.
        budget: Most memory of the process, in bytes.

    Returns:
        Bytes at most, as a plan has them; None: the plan can be made.
    """
    slim, tables = _without_tables(context)
    weights = _trained_bytes(slim)
    absent = _absent_bytes(context)
    times = _step_tables(context)
    held = int(times * tables + (times + 1) * absent)
    kept = checkpoint_bytes(context)
    before, most = None, kept
    config = context.config
    least = 2 if config.in_batch and not config.num_negatives else 1  # others are negatives
    for share in _SHARES:
        size = config.batch_size // share
        if size < least:
            continue
        base, peak = _try_batch(slim, size)
        # half as many seeds took all of this but half of what grows with them
        once = base + int(times * weights)
        grown = max(peak - (once if before is None else before), 0)
        doubled = grown if before is None else 2 * grown
        is_told = before is not None or doubled > _ALONE_BYTES
        if is_told and held + peak + doubled > budget + _BESIDE_BYTES:
            is_first = before is None and size // 2 < least
            if before is None and not is_first:  # what any first batch takes is no growth
                grown = max(peak - _try_batch(slim, size // 2)[1], 0)
            most = max(
                kept,
                held + peak + int(_times_grown(slim, size, is_first=is_first) * grown),
            )
            return most + _LEAST_KEPT_BYTES if exceeds(most, budget) else None
        before = peak
    is_beyond = before is not None and exceeds(kept, budget)
    return most + _LEAST_KEPT_BYTES if is_beyond else None


def _times_grown(context: GnnContext, size: int, *, is_first: bool) -> float:
    """Return how many times what the last seeds added all others of a batch add.

    Batches of more seeds are sampled and not trained: their surroundings meet.

    Args:
        context: What would be trained.
        size: Seeds of the batch that was tried.
        is_first: Whether all of them are the last seeds, else half of them.
    """
    full = context.config.batch_size
    if context.config.is_of_events:
        return (full - size) / (size if is_first else size - size // 2)
    counts = {0: np.zeros(2)}
    at = 0 if is_first else size // 2
    for number in (*([] if is_first else [at]), size):
        counts[number] = _sampled(context, number)
    added = np.maximum(counts[size] - counts[at], 1)
    before, number = at, size
    while number < full and counts[number][1] < _MOST_ENTRIES:
        before, number = number, min(2 * number, full)
        counts[number] = _sampled(context, number)
    rest = (counts[number] - counts[before]) * (full - number) / (number - before)
    # what a row and what an entry take depends on the model: as much each, all in all
    return float(((counts[number] + rest - counts[size]) / added).mean())


def _sampled(context: GnnContext, size: int) -> npt.NDArray[np.float64]:
    """Return the rows and the entries of all hops of a batch, float64 ``[2]``."""
    task = make_task(context.graph, replace(context.config, batch_size=size))
    seeds = task.seeds(0)
    sample = context.message_graph.sample(seeds[0], epoch=0, batch=0)
    rows = sum(sum(hops) for hops in sample.hop_nodes.values())
    counts = np.array([rows, sample.num_edges], dtype=np.float64)
    sample.release()
    return counts


def moments_share(config: GnnConfig, processes: int) -> float:
    """Return the share of the optimizer's moments that each of so many processes has."""
    return 1 / processes if config.sharding != "none" else 1.0


def weights_share(config: GnnConfig, processes: int) -> float:
    """Return the share of the weights, and of gradients, that each process keeps."""
    return 1 / processes if are_cut(config, processes) else 1.0


def _moments_share(context: GnnContext) -> float:
    return moments_share(context.config, context.task.process_group.world_size)


def _weights_share(context: GnnContext) -> float:
    return weights_share(context.config, context.task.process_group.world_size)


def _step_tables(context: GnnContext) -> float:
    """Return how many times the weights a step takes beside them.

    Those are gradients, two moments, and what a step makes of those: nothing with Adam.
    Where processes share weights out, a layer and its gradients are whole beside shares.
    """
    beside_moments = 0 if context.config.optimizer == "adam" else 2
    kept = (2 + beside_moments) * _moments_share(context)
    share = _weights_share(context)
    return 1 + kept + (2 * share if share < 1 else 0)


def _trained_bytes(context: GnnContext) -> int:
    return sum(p.nbytes for p in context.network.parameters() if p.requires_grad)


def learned_bytes(context: GnnContext) -> int:
    """Return the bytes of all learned rows that a training has in memory."""
    network, total = context.network, 0
    for name, shape in context.features.shapes.items():
        if key_of(name) in network.learned:
            table: Any = network.learned[key_of(name)]
            total += shape.num_learned * int(table.weight[:1].nbytes)
    return total


def _absent_bytes(context: GnnContext) -> int:
    tables: Any = context.network.learned.values()
    return learned_bytes(context) - sum(int(table.weight.nbytes) for table in tables)


def _without_tables(context: GnnContext) -> tuple[GnnContext, int]:
    """Return the training with one learned row per type, and the bytes of the others.

    A batch of it takes what one of all rows does, but for these, which are known.
    """
    network = context.network
    if not isinstance(network, Network):
        return context, 0
    memo: dict[int, Any] = {id(it): _OneRow(it) for it in network.learned.values()}
    slim = replace(context, network=copy.deepcopy(network, memo))
    return slim, _trained_bytes(context) - _trained_bytes(slim)


class _OneRow(nn.Module):
    """A table of learned rows that are all the same one."""

    def __init__(self, table: Any) -> None:
        super().__init__()
        self.weight = nn.Parameter(table.weight[:1].detach().clone())
        self._is_bag = isinstance(table, nn.EmbeddingBag)

    def forward(self, values: torch.Tensor, begins: torch.Tensor | None = None) -> Any:
        """Return as many rows ``[n, dim]`` as the whole table would."""
        zeros = torch.zeros_like(values)
        if self._is_bag:
            return functional.embedding_bag(zeros, self.weight, begins, mode="mean")
        return functional.embedding(zeros, self.weight)


def exceeds(planned: int, budget: int) -> bool:
    """Tell whether a plan is beyond a budget by more than plans vary."""
    return planned > budget + min(int(_VARIES * budget), _BESIDE_BYTES)


def enough_bytes(needed: int) -> int:
    """Return a budget that no plan exceeds, of a training that takes so many bytes."""
    return int((1 + 2 * _VARIES) * needed) - min(int(_VARIES * needed), _BESIDE_BYTES)


def checkpoint_bytes(context: GnnContext) -> int:
    """Return the bytes of the process while a checkpoint is written.

    Beside what is trained, its gradients and moments, there are a copy of the weights, of
    the best ones and of the moments. A file is written from memory: its tensors' bytes
    and the whole of them.
    """
    absent = _absent_bytes(context)
    trained = _trained_bytes(context) + absent
    is_best_kept = context.config.keep == "best" and bool(context.config.eval_every)
    taken = (1 + is_best_kept + 2 + 2 * 2) * trained
    held = int((_weights_share(context) + 2 * _moments_share(context)) * trained)
    taken += 0 if context.transfer else held
    return resident_bytes() + absent + taken + min(taken, _AROUND_BYTES)


def _try_batch(context: GnnContext, size: int) -> tuple[int, int]:
    """Train one batch on copies; return bytes of the process before it and at its peak."""
    config = replace(context.config, batch_size=size)
    with torch.random.fork_rng(devices=[]), MemoryMeter(_METER_S) as meter:
        task = make_task(context.graph, config)
        trainer = GnnTrainer(_untrained(replace(context, config=config, task=task)))
        base = resident_bytes()
        for batch in itertools.islice(trainer.batches(0, task.seeds(0)), 1):
            trainer.train_batch(0, batch, 1)
            trainer.loader.release(batch)
    return base, meter.peak_bytes


class _AskedError(Exception):
    """Ends an evaluation where it first asks for rows."""


def _evaluation_bytes(context: GnnContext) -> int:
    """Return the bytes of the process at most while it computes what is evaluated."""
    config = context.config
    if not config.eval_every or config.is_whole_graph:  # training takes all of that
        return 0

    def ask(node_type: str, nodes: Any) -> torch.Tensor:
        raise _AskedError(node_type)

    try:
        context.task.watch(ask)
        return 0
    except _AskedError as asked:
        node_type = str(asked)
    return inference_bytes(context, node_type)


def inference_bytes(context: GnnContext, node_type: str, nodes: Ints | None = None) -> int:
    """Return the bytes of the process at most while rows of nodes are computed.

    Args:
        context: The network, of which a copy computes a few batches of each layer.
        node_type: Of the nodes.
        nodes: Numbers of nodes ``[n]``; all of the type by default.
    """
    is_on_disk = are_rows_on_disk(context)
    release_free_memory()  # as the trainer does
    with MemoryMeter(_METER_S) as meter:
        base = resident_bytes()
        rows = probe(_untrained(context), node_type, nodes)
    return at_most(meter, base) + (0 if is_on_disk else rows)


def at_most(meter: MemoryMeter, base: int) -> int:
    """Return what many batches take at most, of which some were metered.

    The heap keeps up to 32 MiB of each array that is freed, and the next batch is of
    another size: by measurement a third more, of arrays that are not larger than that,
    and what a few batches do not show.
    """
    kept = (meter.peak_bytes - base) // 3
    return meter.peak_bytes + min(max(kept, _LEAST_KEPT_BYTES), _KEPT_BYTES)


def _untrained(context: GnnContext) -> GnnContext:
    """Return the same training on a copy of the network, which leaves nothing."""
    network = copy.deepcopy(context.network)
    return replace(context, network=network, path=None, state=GnnRunState(graph={}))


def disk_bytes(context: GnnContext) -> int:
    """Return what a run takes on disk at most: two checkpoints, and learned rows.

    A checkpoint has the weights, two moments of each that is trained, and the best
    weights so far where they are kept.
    """
    network, config = context.network, context.config
    weights: int = sum(t.nbytes for t in network.state_dict().values())
    moments: int = sum(2 * p.nbytes for p in network.parameters() if p.requires_grad)
    best = weights if config.keep == "best" and config.eval_every else 0
    rows: int = sum(each.most_bytes for each in network.stored)
    masks = sum(p.numel() for p in network.parameters()) if config.sparsity else 0
    return 2 * (weights + moments + best + masks) + rows
