"""What the first layer reads: features side by side, bags of words, or learned rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from graphsys.core.errors import ConfigError, InvalidGraphError, cut_list, unknown_name
from graphsys.core.memory import parse_bytes
from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.owners import Owners, PartitionedFeatures
from graphsys.gnn.ops.cuda.feature_cache import DeviceCache, PartialFeatures
from graphsys.sampling import (
    BagTable,
    CachedFeatures,
    FeatureTable,
    degree_scores,
    importance_scores,
    message_rows,
)
from graphsys.sampling.blocks import Buffers
from graphsys.sampling.features import DenseFeatures
from graphsys.sampling.profile_events import tell_gathered
from graphsys.storage.reader import GraphReader

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
_MOST_DEGREE = 255
_LARGE = 100.0
_LOOKED_AT = 1000


@dataclass(frozen=True, kw_only=True)
class InputShape:
    """What a network has to know of the input of one node type.

    Attributes:
        dim: Dense features; 0: none, so rows are learned.
        num_learned: Rows to learn: one per node, or one per number of a bag feature.
        is_bag: Whether a node's row is the mean of those in its bag.
        dims: Names of dense features and how many numbers each has, in their order.
    """

    dim: int
    num_learned: int = 0
    is_bag: bool = False
    dims: tuple[tuple[str, int], ...] = ()

    def columns(self, feature: str) -> range | None:
        """Return which columns of the input a dense feature has; None for others."""
        first = 0
        for name, dim in self.dims:
            if name == feature:
                return range(first, first + dim)
            first += dim
        return None


@dataclass(frozen=True)
class FeatureBags:
    """Bags of nodes, one after the other.

    Attributes:
        values: Numbers, int64 ``[E]``.
        begins: Where each bag begins, int64 ``[n]``.
    """

    values: torch.Tensor
    begins: torch.Tensor

    def __len__(self) -> int:
        return len(self.begins)


@dataclass(frozen=True)
class WholeEmbedding:
    """All learned rows of a node type, in order."""

    num_rows: int

    def __len__(self) -> int:
        return self.num_rows


class DegreeBags(BagTable):
    """A bag of one number of each node, its degree, which so has a learned row.

    Args:
        node_type: The node type.
        degrees: Of all nodes, int64 ``[N]``; from 255 on they are one.
    """

    def __init__(self, node_type: str, degrees: Ints) -> None:
        self.node_type, self.name = node_type, "degree"
        self.num_nodes, self.size = len(degrees), _MOST_DEGREE + 1
        self._degrees = np.minimum(degrees, _MOST_DEGREE)

    def gather(self, nodes: Ints) -> tuple[Ints, Ints]:
        """Return the degrees of nodes, and where each one's bag begins."""
        return self._degrees[nodes], np.arange(len(nodes), dtype=np.int64)


class InputFeatures:
    """The input of every node type: dense features, a bag feature, or numbers of nodes.

    Without names a type has all its dense features, else its only bag.

    Args:
        graph: An open graph.
        node_types: Those that take part.
        config: Names features, and whether to scale them.
        owners: Who reads those of batches; by default who gathers.

    Raises:
        UnknownNameError: No type has a feature that the config names.
        ConfigError: Several bags of a type, or a bag beside dense features; with owners,
            any bag.
    """

    def __init__(
        self,
        graph: GraphReader,
        node_types: Sequence[str],
        config: GnnConfig,
        owners: Owners | None = None,
    ) -> None:
        self._owners = owners
        self._graph, self._is_scaling = graph, config.normalize_features
        self._rows: dict[str, FeatureTable | BagTable | None] = {}
        self._sizes = {name: graph.num_nodes_of(name) for name in node_types}
        everything = sorted({f for name in node_types for f in graph.feature_names(name)})
        for name in config.features:
            if name not in everything:
                raise unknown_name("feature", name, everything)
        for name in node_types:
            self._rows[name] = _rows_of(graph, name, config)
        far = {} if owners is None else self._far_rows(owners)
        self._cached = {} if config.cache == "none" else self._make_caches(config, far)
        self._owned = (
            {}
            if owners is None
            else {
                name: PartitionedFeatures(rows, self._cached.get(name, far[name]), owners)
                for name, rows in self._dense.items()
            }
        )
        self._on_device: dict[str, DeviceCache] = {}

    def learn_by_degree(self, degrees: Mapping[str, Ints]) -> None:
        """Have a learned row per degree, not per node, where nodes have no features.

        Args:
            degrees: Of all nodes, by type.
        """
        for name, own in degrees.items():
            if self._rows[name] is None:
                self._rows[name] = DegreeBags(name, own)

    @property
    def shapes(self) -> Mapping[str, InputShape]:
        """What the network has to know, by type."""
        return {name: self._shape(name) for name in self._rows}

    def gather(self, nodes: Mapping[str, Ints], buffers: Buffers | None = None) -> Any:
        """Return input of all types: float32 ``[n, F]``, bags, or numbers ``[n]``.

        Args:
            nodes: Numbers of nodes by type; of types without, layers read no rows.
            buffers: Where the rows of a batch are written; then the cache is asked, if
                there is one. Fresh arrays by default.
        """
        none = np.empty(0, dtype=np.int64)
        return {
            name: self._gather(name, nodes.get(name, none), buffers) for name in self._rows
        }

    def figures(self) -> Mapping[str, float]:
        """Return how many rows batches found in a cache, and the share that is.

        With owners the cache is of rows of others, ``far_inputs`` of all ``inputs``.
        """
        result: dict[str, float] = {}
        if self._owners is not None:
            result["inputs"] = sum(rows.num_asked for rows in self._owned.values())
            result["far_inputs"] = sum(rows.num_far for rows in self._owned.values())
        places: tuple[tuple[str, Mapping[str, CachedFeatures | DeviceCache]], ...]
        places = ("cache", self._cached), ("device_cache", self._on_device)
        for name, caches in places:
            if asked := sum(cache.num_asked for cache in caches.values()):
                found = sum(cache.num_found for cache in caches.values())
                result |= {f"{name}_hits": found, f"{name}_hit_rate": found / asked}
        return result

    @property
    def cache_bytes(self) -> int:
        """Bytes of the caches in the memory of the process."""
        return sum(cache.nbytes for cache in self._cached.values())

    def cache_on(self, device: torch.device, config: GnnConfig) -> None:
        """Keep the hottest rows on a device, as ``cache_device_memory`` says.

        Raises:
            ConfigError: Too little memory for a row.
            BudgetError: The device has less memory than that.
        """
        policy = "importance" if config.cache == "importance" else "degree"
        shares = self._shares(self._graph, config, config.cache_device_memory, policy)
        for name, (rows, share, scores) in shares.items():
            assert scores is not None  # such policies have some

            def gather(nodes: Ints, rows: FeatureTable = rows) -> Floats:
                return self._scaled(rows.gather(nodes))

            cache = DeviceCache(name, scores, rows.dim, share, gather, device)
            self._on_device[name] = cache

    @property
    def _dense(self) -> dict[str, FeatureTable]:
        return {n: r for n, r in self._rows.items() if isinstance(r, FeatureTable)}

    def _far_rows(self, owners: Owners) -> dict[str, DenseFeatures]:
        """Return the rows as their owners give them, by type."""
        for name, rows in self._rows.items():
            if isinstance(rows, BagTable):
                raise ConfigError(
                    f"sample_at: got owners, who send arrays of numbers; feature "
                    f"{rows.name!r} of node type {name!r} is a bag, choose other features "
                    "or sample_at store"
                )
        return {name: owners.features(rows) for name, rows in self._dense.items()}

    def _make_caches(
        self, config: GnnConfig, far: Mapping[str, DenseFeatures]
    ) -> dict[str, CachedFeatures]:
        policy: Any = config.cache
        shares = self._shares(self._graph, config, config.cache_memory, policy)
        found = {}
        for name, (rows, share, scores) in shares.items():
            if self._owners is not None and scores is not None:
                nodes = np.arange(rows.num_nodes)
                is_own = self._owners.owner_of(name, nodes) == self._owners.rank
                scores[is_own] = -1  # they are here
            found[name] = CachedFeatures(far.get(name, rows), policy, share, scores)
        return found

    def _shares(
        self, graph: GraphReader, config: GnnConfig, memory: str, policy: str
    ) -> dict[str, tuple[FeatureTable, int, Any]]:
        """Return the dense features by type, their shares of a memory, and scores."""
        dense = self._dense
        total = sum(rows.num_nodes * rows.dim for rows in dense.values())
        relations = message_rows(graph, config.edge_types, reverse=config.reverse_edges)
        score = {"degree": degree_scores, "importance": importance_scores}.get(policy)
        return {
            name: (
                rows,
                parse_bytes(memory) * rows.num_nodes * rows.dim // total,
                None if score is None else score(relations, name),
            )
            for name, rows in dense.items()
        }

    def check(self) -> None:
        """Look at every feature once; with owners, at every own one.

        Raises:
            InvalidGraphError: Some are no finite numbers; says how many and where.
        """
        for name, rows in self._rows.items():
            if not isinstance(rows, FeatureTable):
                continue
            parts = None if self._owners is None else self._owners.parts(name)
            count, first = rows.find_odd(parts)
            if count:
                ids = self._graph.ids_of(name, first).to_pylist()
                raise InvalidGraphError(
                    f"features {', '.join(rows.names)} of {count} of {rows.num_nodes} "
                    f"nodes of type {name!r} are not finite, first of nodes "
                    f"{cut_list(ids)}; mend them and ingest again"
                )

    def large(self) -> Iterator[tuple[str, str, float]]:
        """Yield a node type, a feature and its largest number, where that is large.

        Weights are drawn for numbers of about 1 (Glorot and Bengio, AISTATS 2010); beside
        numbers of thousands a first layer sees no others. Of a sample of the nodes.
        """
        for name, rows in self._dense.items():
            step = max(1, rows.num_nodes // _LOOKED_AT)
            found = np.abs(rows.gather(np.arange(0, rows.num_nodes, step)))
            first = 0
            for feature, dim in rows.dims.items():
                most = float(found[:, first : first + dim].max(initial=0.0))
                first += dim
                if most > _LARGE:
                    yield name, feature, most

    def _shape(self, name: str) -> InputShape:
        rows = self._rows[name]
        if isinstance(rows, FeatureTable):
            return InputShape(dim=rows.dim, dims=tuple(rows.dims.items()))
        if isinstance(rows, BagTable):
            return InputShape(dim=0, num_learned=max(rows.size, 1), is_bag=True)
        return InputShape(dim=0, num_learned=self._sizes[name])

    def _gather(
        self, name: str, nodes: Ints, buffers: Buffers | None
    ) -> torch.Tensor | FeatureBags | PartialFeatures:
        rows = self._rows[name]
        if isinstance(rows, BagTable):
            values, begins = rows.gather(nodes)
            return FeatureBags(torch.from_numpy(values), torch.from_numpy(begins))
        if rows is None:
            return torch.from_numpy(np.array(nodes, dtype=np.int64))
        out, cache, where = None, None, np.empty(0, np.int32)
        if buffers is not None:
            cache = self._on_device.get(name)
            if cache is not None:
                where, nodes = cache.split(nodes)
            room = buffers.room(("features", name), len(nodes) * rows.dim, np.float32)
            out = room[: len(nodes) * rows.dim].reshape(len(nodes), rows.dim)
        tell_gathered(nodes, rows.dim, np.dtype(np.float32).itemsize)
        kept: Mapping[str, PartitionedFeatures | CachedFeatures] = (
            self._owned or self._cached
        )
        source = rows if out is None else kept.get(name, rows)
        found = torch.from_numpy(self._scaled(source.gather(nodes, out)))
        if cache is None:
            return found
        return PartialFeatures(torch.from_numpy(where), found, cache)

    def _scaled(self, rows: Floats) -> Floats:
        """Return rows divided by their sums, in place, where the config says so."""
        if self._is_scaling:
            total = rows.sum(axis=1, keepdims=True)
            np.divide(rows, total, out=rows, where=total != 0)
        return rows


def _rows_of(
    graph: GraphReader, name: str, config: GnnConfig
) -> FeatureTable | BagTable | None:
    """Return the features of a type that a config names, or those it has."""
    dims = {f: e["dim"] for f, e in graph.manifest.node_types[name].features.items()}
    if config.features:
        dims = {f: dim for f, dim in dims.items() if f in config.features}
    dense, bags = [f for f, d in dims.items() if d], [f for f, d in dims.items() if not d]
    if dense and not (bags and config.features):
        return FeatureTable(graph, name, dense)
    if len(bags) > 1 or dense:
        raise ConfigError(
            f"features: node type {name!r} has {', '.join([*dense, *bags])}; choose one "
            "bag, or arrays of numbers"
        )
    return BagTable(graph, name, bags[0]) if bags else None


def require_types(graph: GraphReader, node_types: Sequence[str], wanted: str) -> None:
    """Check that messages reach a node type.

    Raises:
        ConfigError: They do not.
    """
    if wanted not in node_types:
        raise ConfigError(
            f"no edges of those chosen have ends of node type {wanted!r}; they have "
            f"{', '.join(node_types)}"
        )
