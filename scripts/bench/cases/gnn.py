"""Graph neural networks: sums over neighbors, and training end to end, against DGL.

All in one process and interleaved, on all cores.
"""

import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bench.cases.gnn_inputs import (
    BATCH_SIZE,
    NUM_CLASSES,
    NUM_FEATURES,
    dgl_graph,
    make_graph,
    seeds_with_edges,
)
from bench.harness import Contender, Outcome, Work, WrongResultError
from bench.limits import Limits
from graphsys.core.threads import num_cores

PEERS = {"DGL": "dgl"}
FANOUTS = (5, 10, 15)  # the hop next to the seeds first; DGL has it last
DIM = 256


def works(
    *, quick: bool, folder: Path, limits: Limits, missing: list[str]
) -> Iterator[Work]:
    """Yield the works."""
    graph, name = make_graph(folder, quick=quick)
    peer = None if "DGL" in missing else dgl_graph(graph)
    yield sum_work(graph, name, peer, limits)
    batches = seeds_with_edges(graph, 5 if quick else 20)
    yield training_work(graph, name, batches, peer)


def sum_work(graph: Any, name: str, peer: Any, limits: Limits) -> Work:
    """The sum of the features of all in-neighbors of all nodes; each system's second call.

    The result has 400 MB. Whoever comes first after a pause would pay for fresh pages, as
    much again as the sums, and leave warm ones to the next.
    """
    import torch

    from graphsys.gnn import SparseRows, spmm
    from graphsys.gnn.ops.adjacency import kernel_threads

    index = graph.in_index("edge", 0)
    rows = SparseRows(
        index.indptr.astype(np.int64), index.indices.astype(np.int32), graph.num_nodes
    )
    x = torch.from_numpy(np.array(graph.features("node", 0, "x")))

    def ours() -> Outcome:
        with kernel_threads(num_cores()):
            spmm(rows, x)  # threads, and memory that the host may have taken back
            return timed(lambda: spmm(rows, x))

    def dgl() -> Outcome:
        from dgl import ops

        ops.copy_u_sum(peer, x)
        return timed(lambda: ops.copy_u_sum(peer, x))

    contenders = [Contender(system="graphsys", run=ours)]
    if peer is not None:
        contenders.append(Contender(system="DGL", run=dgl))
    num_bytes = 4 * NUM_FEATURES * (graph.num_edges + graph.num_nodes)
    return Work(
        name=f"SpMM sum, {NUM_FEATURES} features, {name}",
        amount=float(graph.num_edges),
        unit="edges/s",
        contenders=contenders,
        verify=same_sums,
        limit_s=num_bytes / limits.copy_bandwidth,
    )


def training_work(graph: Any, name: str, batches: list[Any], peer: Any) -> Work:
    """GraphSAGE, mean, three layers of 256: sample, gather, forward, backward, Adam."""
    contenders = [
        Contender(system="graphsys", run=our_training(graph, batches, prefetch=-1)),
        Contender(
            system="graphsys, one batch ahead", run=our_training(graph, batches, prefetch=1)
        ),
        Contender(
            system="graphsys, no prefetching", run=our_training(graph, batches, prefetch=0)
        ),
    ]
    if peer is not None:
        contenders.append(Contender(system="DGL", run=dgl_training(graph, batches, peer)))
    return Work(
        name=f"GraphSAGE {len(batches)} batches of {BATCH_SIZE}, 15/10/5, h{DIM}, {name}",
        amount=float(len(batches)),
        unit="batches/s",
        contenders=contenders,
        verify=similar_losses,
    )


def our_training(graph: Any, batches: list[Any], prefetch: int) -> Callable[[], Outcome]:
    """Return our trainer over the batches."""
    from graphsys.gnn import GnnConfig
    from graphsys.gnn.ops.adjacency import kernel_threads
    from graphsys.gnn.training.api import build_context
    from graphsys.gnn.training.trainer import GnnTrainer

    config = GnnConfig(
        model="sage",
        dim=DIM,
        layers=3,
        fanouts=FANOUTS,
        batch_size=BATCH_SIZE,
        lr=0.003,
        prefetch=prefetch,
        reverse_edges=False,
    )

    def run() -> Outcome:
        with kernel_threads(num_cores()):
            context = build_context(graph, config, is_checking=False)
            trainer = GnnTrainer(context)
            seeds = [{"node": batch} for batch in batches]
            losses = []

            def train() -> None:
                for batch in trainer.batches(0, seeds):
                    losses.append(trainer.train_batch(0, batch, len(seeds)))
                    trainer.loader.release(batch)

            outcome = timed(train)
        metrics: dict[str, Any] = {}
        trainer.stats.update(metrics)
        figures = {
            f"{stage}_s": metrics[f"{stage}_seconds"]
            for stage in ("sample", "gather", "forward", "backward", "step")
        }
        result = {"loss": float(np.mean(losses)), "figures": figures}
        return Outcome(seconds=outcome.seconds, result=result)

    return run


def dgl_training(graph: Any, batches: list[Any], peer: Any) -> Callable[[], Outcome]:
    """Return DGL's loop over the batches, without workers (they hurt on two cores)."""
    import dgl
    import torch
    from torch.nn import functional

    features = torch.from_numpy(np.array(graph.features("node", 0, "x")))
    labels = torch.from_numpy(graph.nodes("node", 0).column("label").to_numpy().copy())
    sampler = dgl.dataloading.NeighborSampler(list(reversed(FANOUTS)))
    seeds = [torch.from_numpy(batch) for batch in batches]

    def run() -> Outcome:
        torch.set_num_threads(num_cores())
        torch.manual_seed(0)
        sizes = [NUM_FEATURES, DIM, DIM, NUM_CLASSES]
        layers = torch.nn.ModuleList(
            dgl.nn.SAGEConv(a, b, "mean") for a, b in itertools.pairwise(sizes)
        )
        optimizer = torch.optim.Adam(layers.parameters(), 0.003)
        losses = []

        def train() -> None:
            for batch in seeds:
                nodes, _, blocks = sampler.sample(peer, batch)
                h = features[nodes]
                for k, (layer, block) in enumerate(zip(layers, blocks, strict=True)):
                    h = layer(block, h)
                    h = torch.relu(h) if k + 1 < len(layers) else h
                loss = functional.cross_entropy(h, labels[batch])
                losses.append(loss.item())
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()

        outcome = timed(train)
        return Outcome(seconds=outcome.seconds, result={"loss": float(np.mean(losses))})

    return run


def same_sums(results: Mapping[str, Any]) -> None:
    """Verify that the sums are the same but for the order of their terms."""
    first, *rest = (result["found"] for result in results.values())
    for other in rest:
        if ((first - other).abs() > 1e-4 * (first.abs() + 1)).any():
            raise WrongResultError("the systems' sums differ by more than 1e-4")


def similar_losses(results: Mapping[str, Any]) -> None:
    """Verify that all systems learn alike: labels are random, so the loss is ln 47."""
    for system, result in results.items():
        if abs(result["loss"] - np.log(NUM_CLASSES)) > 1.5:
            raise WrongResultError(f"{system}: the mean loss is {result['loss']:.3f}")


def timed(work: Callable[[], Any]) -> Outcome:
    """Return the time of some work and its result."""
    began = time.perf_counter()
    found = work()
    return Outcome(seconds=time.perf_counter() - began, result={"found": found})
