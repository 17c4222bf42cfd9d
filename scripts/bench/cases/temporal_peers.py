"""TGM's side of the case ``temporal_training``, which imports no graphsys.

TGN of TGM 0.1.0b1 (PyPI: tgm-lib) by the parts and in the order of its own example of link
prediction: memory, the latest neighbors by its hook, transformer attention, a predictor on
two rows, one random second node an event. Its loader cuts batches of a fixed size; here its
slices are cut where ours are, never within a time.
"""

import time
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from bench.harness import Outcome

THREADS = 1


def tgm(
    events: str, batch_size: int, epochs: int, dim: int, fanout: int, lr: float, split: str
) -> Outcome:
    """Train TGN and rank the second ends of a split's events among all nodes.

    Args:
        events: An .npz with ``src``, ``dst``, ``time`` in order of time, and ``bounds``:
            where valid and test begin.
        batch_size: Events of a batch at least.
        epochs: Passes over the events before valid.
        dim: Of memory, rows and times' features.
        fanout: Latest neighbors of a node.
        lr: Adam's.
        split: ``valid`` or ``test``.
    """
    import torch

    torch.set_num_threads(THREADS)
    torch.manual_seed(1)
    data = np.load(events)
    valid, test = (int(bound) for bound in data["bounds"])
    training = Training(data, batch_size, dim, fanout, lr)
    training.epoch(valid)  # the first one warms up
    training = Training(data, batch_size, dim, fanout, lr)
    began, began_cpu = time.perf_counter(), time.process_time()
    for _ in range(epochs):
        training.epoch(valid)
    seconds = time.perf_counter() - began
    cpu = time.process_time() - began_cpu
    first, last = (valid, test) if split == "valid" else (test, len(data["src"]))
    training.follow(valid, first)
    ranks = training.ranks(first, last)
    figures = {
        "mrr": round(float((1 / ranks).mean()), 4),
        "ranked": len(ranks),
        "cpu_seconds": round(cpu, 2),
    }
    return Outcome(seconds=seconds, result={"figures": figures})


class Training:
    """The example's parts, and its steps."""

    def __init__(
        self, data: Any, batch_size: int, dim: int, fanout: int, lr: float
    ) -> None:
        import torch
        from tgm import DGraph
        from tgm.data import DGData
        from tgm.hooks import DeduplicationHook, HookManager, RecencyNeighborHook
        from tgm.hooks.negatives import NegativeEdgeSamplerHook
        from tgm.nn import LinkPredictor, TGNMemory
        from tgm.nn.encoder.tgn import (
            GraphAttentionEmbedding,
            IdentityMessage,
            LastAggregator,
        )

        self.src, self.dst, self.time = data["src"], data["dst"], data["time"]
        self.batch_size = batch_size
        self.num_nodes = int(max(self.src.max(), self.dst.max())) + 1
        pairs = torch.from_numpy(np.stack([self.src, self.dst], axis=1).astype(np.int32))
        raw = DGData.from_raw(
            edge_time=torch.from_numpy(self.time),
            edge_index=pairs,
            edge_x=torch.zeros(len(pairs), 1),  # the example's parts ask for a feature
        )
        self.graph = DGraph(raw)
        self.hooks = HookManager(keys=["train", "all"])
        self.hooks.register("train", NegativeEdgeSamplerHook(0, self.num_nodes))
        self.hooks.register("all", _all_nodes(self.num_nodes))
        self.hooks.register_shared(
            RecencyNeighborHook(
                num_nodes=self.num_nodes,
                num_nbrs=[fanout],
                seed_nodes_keys=["edge_src", "edge_dst", "neg"],
                seed_times_keys=["edge_time", "edge_time", "neg_time"],
            )
        )
        self.hooks.register_shared(DeduplicationHook())
        self.memory = TGNMemory(
            self.num_nodes, 1, dim, dim, IdentityMessage(1, dim, dim), LastAggregator()
        )
        self.encoder = GraphAttentionEmbedding(dim, dim, 1, self.memory.time_enc)
        self.decoder = LinkPredictor(node_dim=dim, hidden_dim=dim)
        parts = (self.memory, self.encoder, self.decoder)
        self.optimizer = torch.optim.Adam(
            {weight for part in parts for weight in part.parameters()}, lr=lr
        )
        self.parts = parts

    def batches(self, first: int, last: int, key: str) -> Iterator[Any]:
        """Yield batches with what the hooks add, which follow the events."""
        with self.hooks.activate(key):
            while first < last:
                end = min(first + self.batch_size, last)
                while end < last and self.time[end] == self.time[end - 1]:
                    end += 1
                view = self.graph.slice_events(first, end)
                yield self.hooks.execute_active_hooks(view, view.materialize())
                first = end

    def rows(self, batch: Any) -> Any:
        """Return the rows of a batch's nodes, in the order of its ``unique_nids``."""
        import torch
        from tgm.constants import PADDED_NODE_ID

        neighbors = batch.nbr_nids[0]
        seeds = torch.cat([batch.edge_src, batch.edge_dst, batch.neg])
        seeds = seeds.repeat_interleave(neighbors.shape[-1])
        neighbors = neighbors.flatten()
        is_there = neighbors != PADDED_NODE_ID
        edges = torch.stack(
            [
                batch.global_to_local(seeds[is_there]),
                batch.global_to_local(neighbors[is_there]),
            ]
        ).long()
        memory, last_update = self.memory(batch.unique_nids)
        return self.encoder(
            memory,
            last_update,
            edges,
            batch.nbr_edge_time[0].flatten()[is_there],
            batch.nbr_edge_x[0].flatten(0, -2).float()[is_there],
        )

    def epoch(self, last: int) -> None:
        """Train on the events before ``last``, from an empty memory."""
        import torch
        from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy

        for part in self.parts:
            part.train()
        self.hooks.reset_state()
        self.memory.reset_state()
        for batch in self.batches(0, last, "train"):
            self.optimizer.zero_grad()
            rows = self.rows(batch)
            src = rows[batch.global_to_local(batch.edge_src)]
            found = self.decoder(src, rows[batch.global_to_local(batch.edge_dst)])
            other = self.decoder(src, rows[batch.global_to_local(batch.neg)])
            loss = cross_entropy(found, torch.ones_like(found))
            loss = loss + cross_entropy(other, torch.zeros_like(other))
            self.see(batch)
            loss.backward()
            self.optimizer.step()
            self.memory.detach()

    def see(self, batch: Any) -> None:
        """Let the memory take a batch's events in."""
        self.memory.update_state(
            batch.edge_src, batch.edge_dst, batch.edge_time, batch.edge_x.float()
        )

    def follow(self, first: int, last: int) -> None:
        """Take events in that are neither learned nor ranked."""
        import torch

        for part in self.parts:
            part.eval()
        with torch.no_grad():
            for batch in self.batches(first, last, "all"):
                self.see(batch)

    def ranks(self, first: int, last: int) -> Any:
        """Return the ranks of the second ends, ties in their middle.

        Other answers of a source at the same time are left out.
        """
        import torch

        for part in self.parts:
            part.eval()
        found, at = [], first
        with torch.no_grad():
            for batch in self.batches(first, last, "all"):
                rows = self.rows(batch)
                everyone = rows[batch.global_to_local(batch.neg)]
                sources = rows[batch.global_to_local(batch.edge_src)]
                scores = self._scores(sources, everyone).numpy()
                end = at + len(sources)
                found.append(self._ranks_of(scores, at, end))
                self.see(batch)
                at = end
        return np.concatenate(found)

    def _scores(self, sources: Any, everyone: Any) -> Any:
        """Return the predictor's scores of all pairs; its first layer is taken apart."""
        import torch

        first, _, last = self.decoder.model
        left, right = first.weight.split(sources.shape[1], dim=1)
        asked = sources @ left.T + first.bias
        offered = everyone @ right.T
        lines = [last(torch.relu(offered + row))[:, 0] for row in asked]
        return torch.stack(lines)

    def _ranks_of(self, scores: Any, first: int, last: int) -> Any:
        src, dst, when = self.src[first:last], self.dst[first:last], self.time[first:last]
        own = scores[np.arange(len(src)), dst][:, None]
        better = (scores > own).astype(np.float64) + 0.5 * (scores == own)
        for row in range(len(src)):
            others = dst[(src == src[row]) & (when == when[row])]
            better[row, others] = 0.0
        return better.sum(axis=1) + 1


def _all_nodes(num_nodes: int) -> Any:
    """Return a hook that asks for the rows of all nodes when a batch begins."""
    import torch
    from tgm.hooks import StatelessHook

    class AllNodes(StatelessHook):  # type: ignore[misc]
        requires: ClassVar = {"edge_src", "edge_dst", "edge_time"}
        produces: ClassVar = {"neg", "neg_time"}

        def __call__(self, dg: Any, batch: Any) -> Any:
            batch.neg = torch.arange(num_nodes, dtype=torch.int32)
            batch.neg_time = batch.edge_time[:1].repeat(num_nodes)
            return batch

    return AllNodes()
