"""Sampling: neighbors, PinSage's neighborhoods and features, against DGL, PyG and NumPy.

DGL and NumPy in one process and interleaved; DGL 1.1.3 uses all cores within a batch, we
make one batch per core at a time, as training does. PyG's loaders and the store under a
limit run in processes of their own. LABOR's samples are of a real graph.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import numpy as np

from bench.cases.gnn_inputs import (
    NUM_FEATURES,
    about_equal,
    dgl_graph,
    make_graph,
    seeds_with_edges,
)
from bench.cases.sampling_labor import labor_work
from bench.child import in_child
from bench.environments import peer_python
from bench.harness import Contender, Outcome, Work, WrongResultError
from bench.limits import Limits
from graphsys.core.threads import ThreadTeam, map_in_order, num_cores
from graphsys.sampling import (
    CachedFeatures,
    FeatureTable,
    ImportanceSampler,
    NeighborSampler,
    degree_scores,
    importance_scores,
    rows_of,
)
from graphsys.sampling.row_cache import Policy

PEERS = {"DGL": "dgl", "PyG": "torch_sparse"}
LIMITED = "arrays in memory, no limit"
FANOUTS = (5, 10, 15)  # the hop next to the seeds first; DGL has it last
WALKS = {
    "T=3": {"count": 3, "walks": 10, "length": 4, "restart": 0.5},
    "T=50": {"count": 50, "walks": 200, "length": 6, "restart": 0.3},
}


def works(
    *, quick: bool, folder: Path, limits: Limits, missing: list[str]
) -> Iterator[Work]:
    """Yield the works."""
    graph, name = make_graph(folder, quick=quick)
    batches = seeds_with_edges(graph, 10 if quick else 40)
    peer = None if "DGL" in missing else dgl_graph(graph)
    yield neighbor_work(graph, name, batches, peer)
    for label, settings in WALKS.items():
        few = batches[: 4 if settings["count"] > 3 else None]
        yield walk_work(graph, f"{label}, {name}", few, peer, settings)
    yield gather_work(graph, name, batches)
    yield cache_work(graph, name, batches)
    # a batch's own memory does not shrink with the graph
    yield store_work(folder, name, [batch[: 128 if quick else None] for batch in batches])
    yield loader_work(graph, folder, name, batches[: 4 if quick else 10], missing)
    shared_rows = labor_work(folder)
    if shared_rows is not None:
        yield shared_rows


def neighbor_work(graph: Any, name: str, batches: list[Any], peer: Any) -> Work:
    """Three hops, every node known so far sampled anew each hop (DGL's rule)."""
    sampler = NeighborSampler(graph, FANOUTS)

    def sample(number: int) -> int:
        with sampler.sample(batches[number], batch=number) as found:
            return found.num_edges

    contenders = sampling_contenders(sample, len(batches))
    if peer is not None:
        contenders.append(Contender(system="DGL", run=dgl_neighbors(peer, batches)))
    amount = float(contenders[1].run().result["amount"])
    return Work(
        name=f"neighbors 15/10/5, {name}",
        amount=amount,
        unit="edges/s",
        contenders=contenders,
        verify=about_equal,
    )


def sampling_contenders(sample: Callable[[int], int], num_batches: int) -> list[Contender]:
    """Return ours on all cores and on one; ``sample`` makes a batch, by its number."""

    def ours(threads: int) -> Callable[[], Outcome]:
        return lambda: timed(
            lambda: sum(map_in_order(sample, range(num_batches), num_threads=threads))
        )

    return [
        Contender(system="graphsys", run=ours(num_cores())),
        Contender(system="graphsys, 1 thread", run=ours(1)),
    ]


def dgl_neighbors(peer: Any, batches: list[Any]) -> Callable[[], Outcome]:
    """Return DGL's sampler over the batches."""
    import dgl
    import torch

    sampler = dgl.dataloading.NeighborSampler(list(reversed(FANOUTS)))
    seeds = [torch.from_numpy(batch) for batch in batches]

    def run() -> Outcome:
        def sample() -> int:
            return sum(
                sum(block.num_edges() for block in sampler.sample(peer, batch)[2])
                for batch in seeds
            )

        return timed(sample)

    return run


def walk_work(
    graph: Any, name: str, batches: list[Any], peer: Any, settings: dict[str, Any]
) -> Work:
    """PinSage's neighborhoods along out-edges.

    Where DGL ends a walk we go back to the seed and walk on, so ours takes more steps.
    """
    rows = rows_of(graph, "edge", "out")
    sampler = ImportanceSampler(
        rows,
        num_neighbors=(settings["count"],),
        num_walks=settings["walks"],
        walk_length=settings["length"],
        restart=settings["restart"],
    )

    def sample(number: int) -> int:
        with sampler.sample(batches[number], batch=number) as found:
            return found.num_seeds["node"]

    contenders = sampling_contenders(sample, len(batches))
    if peer is not None:
        contenders.append(Contender(system="DGL", run=dgl_walks(peer, batches, settings)))
    return Work(
        name=f"PinSage neighborhoods {name}",
        amount=float(sum(map(len, batches))),
        unit="seeds/s",
        contenders=contenders,
        verify=about_equal,
    )


def dgl_walks(
    peer: Any, batches: list[Any], settings: dict[str, Any]
) -> Callable[[], Outcome]:
    """Return DGL's random-walk neighbor sampler over the batches."""
    import dgl
    import torch

    graph = peer.formats(["csr", "csc"])
    graph.create_formats_()
    sampler = dgl.sampling.RandomWalkNeighborSampler(
        graph,
        settings["length"],
        settings["restart"],
        settings["walks"],
        settings["count"],
        metapath=[("_N", "_E", "_N")],
    )
    seeds = [torch.from_numpy(batch) for batch in batches]

    def run() -> Outcome:
        def sample() -> int:
            for batch in seeds:
                sampler(batch)
            return sum(map(len, seeds))

        return timed(sample)

    return run


def gather_work(graph: Any, name: str, batches: list[Any]) -> Work:
    """The features of the nodes of a sample, from the mapped file into a used buffer."""
    features = FeatureTable(graph, "node")
    nodes = NeighborSampler(graph, FANOUTS).sample(batches[0]).input_nodes.copy()
    mapped = graph.features("node", 0, "x")
    out = np.empty((len(nodes), NUM_FEATURES), dtype=np.float32)
    team = ThreadTeam(num_cores())

    def repeated(gather: Callable[[], Any]) -> Callable[[], Outcome]:
        def run() -> Outcome:
            outcome = timed(lambda: [gather() for _ in range(10)] and len(nodes))
            return Outcome(
                seconds=outcome.seconds / 10,
                result={"amount": len(nodes), "rows": out[:: len(nodes) // 50].copy()},
            )

        return run

    def take() -> Any:
        return np.take(mapped, nodes, axis=0, out=out, mode="clip")

    def same_rows(results: Any) -> None:
        first, *rest = (result["rows"] for result in results.values())
        if any((first != other).any() for other in rest):
            raise WrongResultError("the systems gathered different rows")

    return Work(
        name=f"gather {len(nodes) / 1e3:.0f}k x {NUM_FEATURES} float32, {name}",
        amount=float(len(nodes)),
        unit="rows/s",
        contenders=[
            Contender(
                system="graphsys, 1 thread",
                run=repeated(lambda: features.gather(nodes, out)),
            ),
            Contender(
                system="graphsys", run=repeated(lambda: features.gather(nodes, out, team))
            ),
            Contender(system="numpy.take, clip", run=repeated(take)),
        ],
        verify=same_rows,
    )


def cache_work(graph: Any, name: str, batches: list[Any]) -> Work:
    """The features of samples by caches of a tenth of the rows, and their hit rates.

    Pages are warm, so the time is what a cache costs; hits are what it would save.
    """
    sampler, rows = NeighborSampler(graph, FANOUTS), FeatureTable(graph, "node")
    traces = []
    for number, batch in enumerate(batches):
        with sampler.sample(batch, batch=number) as found:
            traces.append(found.input_nodes.copy())
    out = np.empty((max(map(len, traces)), NUM_FEATURES), dtype=np.float32)
    memory = 4 * graph.num_nodes + graph.num_nodes // 10 * (4 * NUM_FEATURES + 17)
    relations = [rows_of(graph, "edge")]
    scores: dict[Any, Any] = {
        "degree": degree_scores(relations, "node"),
        "importance": importance_scores(relations, "node"),
    }

    def gathered(policy: Any) -> Callable[[], Outcome]:
        def run() -> Outcome:
            cached = CachedFeatures(rows, policy, memory, scores.get(policy))
            began = time.perf_counter()
            total = sum(float(cached.gather(nodes, out)[::97].sum()) for nodes in traces)
            result = {"total": total, "figures": {"hit_rate": cached.hit_rate}}
            return Outcome(seconds=time.perf_counter() - began, result=result)

        return run

    def same_rows(results: Mapping[str, Any]) -> None:
        if len({result["total"] for result in results.values()}) > 1:
            raise WrongResultError("the caches gave different rows")

    return Work(
        name=f"features by a cache of a tenth of the rows, {name}",
        amount=float(sum(map(len, traces))),
        unit="rows/s",
        contenders=[
            Contender(system=f"graphsys, {policy}", run=gathered(policy))
            for policy in get_args(Policy)
        ],
        verify=same_rows,
    )


def store_work(folder: Path, name: str, batches: list[Any]) -> Work:
    """Samples and features straight from the store, within a quarter of its size."""
    seeds = folder / "seeds.npy"
    np.save(seeds, np.stack(batches))
    arguments = {"store": folder / "graph", "seeds": seeds, "fanouts": FANOUTS}
    target = "bench.cases.sampling_store:sample"

    def same_samples(results: Mapping[str, Any]) -> None:
        if len({(result["amount"], result["sum"]) for result in results.values()}) > 1:
            raise WrongResultError("the store and the arrays gave different samples")

    return Work(
        name=f"store under a quarter of its size, 15/10/5 and features, {name}",
        amount=float(sum(map(len, batches))),
        unit="seeds/s",
        contenders=[
            Contender(
                system="graphsys", run=in_child(target, is_copied=False, **arguments)
            ),
            Contender(system=LIMITED, run=in_child(target, is_copied=True, **arguments)),
        ],
        verify=same_samples,
    )


def loader_work(
    graph: Any, folder: Path, name: str, batches: list[Any], missing: list[str]
) -> Work:
    """PyG's NodeLoader with x and y of every batch; PyG samples new nodes only."""
    arrays = folder / "arrays"
    arrays.mkdir()
    seeds = np.concatenate(batches)
    np.save(arrays / "seeds.npy", seeds)
    shared = {"arrays": arrays, "batch_size": len(batches[0])}
    contenders = [
        Contender(
            system="graphsys",
            run=in_child(
                "bench.cases.sampling_pyg:our_loader", store=folder / "graph", **shared
            ),
        )
    ]
    python = None if "PyG" in missing else peer_python("torch_sparse")
    if python is not None:
        save_arrays(graph, arrays)
        target = "bench.cases.sampling_pyg:own_loader"
        contenders.append(
            Contender(system="PyG", run=in_child(target, python=python, **shared))
        )
    return Work(
        name=f"PyG NodeLoader 15/10/5, {name}",
        amount=float(len(seeds)),
        unit="seeds/s",
        contenders=contenders,
        verify=about_equal,
    )


def save_arrays(graph: Any, folder: Path) -> None:
    """Write the graph as PyG's Data holds it."""
    index = graph.in_index("edge", 0)
    degrees = np.diff(index.indptr.astype(np.int64))
    np.save(folder / "src.npy", index.indices.astype(np.int64))
    np.save(folder / "dst.npy", np.repeat(np.arange(len(degrees)), degrees))
    np.save(folder / "x.npy", graph.features("node", 0, "x"))
    np.save(folder / "y.npy", graph.nodes("node", 0).column("label").to_numpy())


def timed(work: Callable[[], int]) -> Outcome:
    """Return the time of some work and how much it did."""
    began = time.perf_counter()
    amount = work()
    return Outcome(seconds=time.perf_counter() - began, result={"amount": amount})
