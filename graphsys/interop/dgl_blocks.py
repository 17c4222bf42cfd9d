"""Blocks as DGL's message flow graphs and back; DGL's sampler over ours."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from graphsys.core.deps import require_dgl
from graphsys.core.errors import ConfigError
from graphsys.core.types import EdgeType
from graphsys.facade.columns import relations
from graphsys.sampling import Block, NeighborSampler, Sample
from graphsys.storage.reader import GraphReader

dgl = require_dgl()

INT32 = torch.int32


def block_to_dgl(blocks: Block | Mapping[EdgeType, Block]) -> Any:
    """Return a hop as DGL's message flow graph (MFG), with int32 ids.

    The entries are a view of the block, and live as long as its sample is not released; row
    offsets are copied (int64 to int32). ``srcdata[dgl.NID]``, ``dstdata[dgl.NID]`` and
    ``edata[dgl.EID]`` are int64 views of the numbers of nodes and entries;
    ``edata["weight"]`` the weights of those that have them.

    Args:
        blocks: A block, or one for each edge type.

    Raises:
        ConfigError: More than 2**31 - 1 entries.
    """
    if isinstance(blocks, Block):
        blocks = {EdgeType("_N", "_E", "_N"): blocks}
    src_nodes: dict[str, Any] = {}
    dst_nodes: dict[str, Any] = {}
    for kind, block in blocks.items():
        src_nodes[kind.src_type], dst_nodes[kind.dst_type] = (
            block.src_nodes,
            block.dst_nodes,
        )
    return _make(blocks, src_nodes, dst_nodes)


def _make(
    blocks: Mapping[EdgeType, Block],
    src_nodes: Mapping[str, npt.NDArray[np.int64]],
    dst_nodes: Mapping[str, npt.NDArray[np.int64]],
) -> Any:
    arrays = {}
    for kind, block in blocks.items():
        if block.num_edges >= 2**31:
            raise ConfigError(
                f"a block of {block.num_edges} entries does not fit DGL's int32 ids; take "
                "smaller batches"
            )
        indptr = torch.from_numpy(block.indptr.astype(np.int32))
        arrays[tuple(kind)] = (
            "csc",
            (indptr, torch.from_numpy(block.indices), torch.empty(0, dtype=INT32)),
        )
    mfg = dgl.create_block(
        arrays,
        num_src_nodes={name: len(nodes) for name, nodes in src_nodes.items()},
        num_dst_nodes={name: len(nodes) for name, nodes in dst_nodes.items()},
    )
    for name in mfg.srctypes:
        mfg.srcnodes[name].data[dgl.NID] = torch.from_numpy(src_nodes[name])
    for name in mfg.dsttypes:
        mfg.dstnodes[name].data[dgl.NID] = torch.from_numpy(dst_nodes[name])
    for kind, block in blocks.items():
        data = mfg.edges[tuple(kind)].data
        if block.edge is not None:
            data[dgl.EID] = torch.from_numpy(block.edge)
        if block.weight is not None:
            data["weight"] = torch.from_numpy(block.weight)
    return mfg


def block_from_dgl(mfg: Any, edge_type: Any = None) -> Block:
    """Return DGL's message flow graph as a block, for our layers.

    With int32 ids the entries are a view and the row offsets a copy, with int64 ids the
    other way round. Nodes are those of ``dgl.NID``, or their places where there is none,
    edges those of ``dgl.EID``; ``edata["weight"]`` becomes the weight.

    Args:
        mfg: A block of DGL's samplers, or any graph.
        edge_type: Which one, where there are several.
    """
    kind = mfg.to_canonical_etype(edge_type) if edge_type else mfg.canonical_etypes[0]
    if edge_type is None and len(mfg.canonical_etypes) > 1:
        raise ConfigError(
            f"the block has edge types {', '.join(map(str, mfg.canonical_etypes))}; choose "
            "one with edge_type"
        )
    indptr, indices, place = mfg.adj_tensors("csc", etype=kind)
    data = mfg.edges[kind].data
    given = {name: data[name] for name in (dgl.EID, "weight") if name in data}
    if len(place):  # DGL has none where edges are in the order of the rows
        given = {name: values[place.long()] for name, values in given.items()}
    columns = {name: values.numpy() for name, values in given.items()}
    weight = columns.get("weight")
    return Block(
        indptr=indptr.numpy().astype(np.int64, copy=False),
        indices=indices.numpy().astype(np.int32, copy=False),
        src_nodes=_nodes(mfg.srcnodes[kind[0]].data, mfg.num_src_nodes(kind[0])),
        dst_nodes=_nodes(mfg.dstnodes[kind[2]].data, mfg.num_dst_nodes(kind[2])),
        edge=columns[dgl.EID].astype(np.int64, copy=False) if dgl.EID in data else None,
        weight=None if weight is None else weight.astype(np.float32, copy=False),
    )


def _nodes(data: Any, count: int) -> npt.NDArray[np.int64]:
    if dgl.NID not in data:
        return np.arange(count)
    numbers: npt.NDArray[np.int64] = data[dgl.NID].numpy().astype(np.int64, copy=False)
    return numbers


class GraphsysBlockSampler(dgl.dataloading.BlockSampler):  # type: ignore[misc,name-defined]  # untyped
    """Our neighbor sampler for DGL's DataLoader; the graph it is given is not read.

    Blocks view the sample's buffers, which are new for each batch. They have int32 ids,
    their nodes int64 numbers; every node type and edge type is in every block.
    ``edata[dgl.EID]`` are rows of :func:`to_dgl`'s edges.

    Draws follow ``torch.manual_seed``, and in worker processes the seed of the loader.

    Args:
        graph: An open graph.
        fanouts: Neighbors per hop, **the hop farthest from the seeds first**: DGL's order.
            Or a mapping with a list for each edge type.
        is_replacing: Whether a neighbor may be drawn several times.
        is_weighted: Whether neighbors are drawn in proportion to the edges' weights.
        reverse: Whether directed edges are traveled both ways; edges against a type are
            of type ``(dst, rev_NAME, src)``.
        **prefetching: DGL's ``prefetch_node_feats``, ``prefetch_labels``,
            ``prefetch_edge_feats`` and ``output_device``.

    Raises:
        ConfigError: Fanouts that do not fit, or weights that are not there.
    """

    def __init__(
        self,
        graph: GraphReader,
        fanouts: Sequence[int] | Mapping[Any, Sequence[int]],
        *,
        is_replacing: bool = False,
        is_weighted: bool = False,
        reverse: bool = False,
        **prefetching: Any,
    ) -> None:
        super().__init__(**prefetching)
        self.kinds = relations(graph, reverse=reverse)
        self.node_types = graph.node_types
        ours: Any = (
            {self._name(kind): list(reversed(each)) for kind, each in fanouts.items()}
            if isinstance(fanouts, Mapping)
            else list(reversed(fanouts))
        )
        self._sampler = NeighborSampler(
            list(self.kinds.values()),
            ours,
            is_replacing=is_replacing,
            is_weighted=is_weighted,
        )

    def _name(self, kind: Any) -> str:
        rows = self.kinds.get(EdgeType(*kind)) if isinstance(kind, tuple) else None
        return str(kind) if rows is None else rows.name

    def sample_blocks(self, g: Any, seed_nodes: Any, exclude_eids: Any = None) -> Any:
        """Return input nodes, output nodes and blocks; called by DGL.

        Raises:
            ConfigError: Edges to exclude.
        """
        del g
        if exclude_eids is not None:
            raise ConfigError(
                "exclude: GraphsysBlockSampler cannot leave out edges; hold them out of "
                "the store as a split, or give exclude=None"
            )
        if not isinstance(seed_nodes, Mapping):
            seed_nodes = {self.node_types[0]: seed_nodes}
        seeds = {name: nodes.cpu().numpy() for name, nodes in seed_nodes.items()}
        sample = self._sampler.sample(seeds, batch=int(torch.randint(2**62, ())))
        blocks = [self._block(sample, hop) for hop in reversed(range(len(sample.layers)))]
        inputs, outputs = blocks[0].srcdata[dgl.NID], blocks[-1].dstdata[dgl.NID]
        if self.output_device is not None:
            blocks = [block.to(self.output_device) for block in blocks]
        return inputs, outputs, blocks

    def _block(self, sample: Sample, hop: int) -> Any:
        layer = sample.layers[len(sample.layers) - 1 - hop]
        none = np.empty(0, dtype=np.int64)
        src_nodes, dst_nodes = (
            {
                name: sample.nodes.get(name, none)[
                    : sample.hop_nodes.get(name, [0] * (hop + 2))[place]
                ]
                for name in self.node_types
            }
            for place in (hop + 1, hop)
        )
        blocks = {kind: layer[rows.name] for kind, rows in self.kinds.items()}
        return _make(blocks, src_nodes, dst_nodes)
