"""PyG's NodeLoader over our sampler and over PyG's own; each in a process of its own.

PyG's own sampler needs torch-sparse (or pyg-lib), which has an environment of its own: its
side here imports no graphsys.
"""

import time
from pathlib import Path
from typing import Any

from bench.harness import Outcome

FANOUTS = (15, 10, 5)  # PyG's order: the hop next to the seeds first


def our_loader(store: str, arrays: str, batch_size: int) -> Outcome:
    """Load batches from the store by our sampler."""
    import numpy as np
    import torch
    from torch_geometric.loader import NodeLoader

    from graphsys.interop import pyg
    from graphsys.storage import Graph

    graph = Graph(Path(store))
    seeds = torch.from_numpy(np.load(Path(arrays) / "seeds.npy"))
    sampler = pyg.GraphsysSampler(graph, FANOUTS)
    return _timed(NodeLoader(pyg.stores(graph), sampler, seeds, batch_size=batch_size))


def own_loader(arrays: str, batch_size: int) -> Outcome:
    """Load batches of the same seeds from memory by PyG's own sampler."""
    import numpy as np
    import torch
    from torch_geometric.data import Data
    from torch_geometric.loader import NeighborLoader

    def read(name: str) -> Any:
        return torch.from_numpy(np.load(Path(arrays) / f"{name}.npy"))

    edge_index = torch.stack([read("src"), read("dst")])
    data = Data(x=read("x"), y=read("y"), edge_index=edge_index)
    began = time.perf_counter()
    loader = NeighborLoader(
        data, num_neighbors=list(FANOUTS), input_nodes=read("seeds"), batch_size=batch_size
    )
    found = _timed(loader)
    found.result["figures"] = {"compress_s": time.perf_counter() - began - found.seconds}
    return found


def _timed(loader: Any) -> Outcome:
    for _ in loader:  # kernels, pages
        break
    began = time.perf_counter()
    amount = sum(batch.num_edges for batch in loader)
    return Outcome(seconds=time.perf_counter() - began, result={"amount": amount})
