"""First values from another run: rows by the user's ids, operators by relation name.

The other run may be over another graph, with other partitions and another order. Its graph
is needed for the ids. Every partition of the new run notes in ``origin/<type>/part-<p>``
which number each node has in the other graph, -1 for a new node; ``incremental.py`` and a
resume go by that.
"""

import functools
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError
from graphsys.core.progress import Progress
from graphsys.embedding import run as runs
from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.context import EmbeddingContext
from graphsys.embedding.data.id_join import match_ids
from graphsys.embedding.data.schedule import Part
from graphsys.embedding.embeddings import Embeddings
from graphsys.embedding.model import RelationSet
from graphsys.embedding.rows.row_precision import to_stored
from graphsys.embedding.rows.table_files import TableFiles, read_global
from graphsys.storage.manifest import file_name
from graphsys.storage.reader import GraphReader

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


def origin_file(node_type: str, part: int, serial: int) -> str:
    """Return the path of a partition's numbers in the other graph."""
    return f"origin/{file_name(node_type)}/part-{part}.{serial}.npy"


def open_source(
    config: EmbeddingConfig, graph: GraphReader, model: list[RelationSet]
) -> Embeddings:
    """Open the run that ``init_from`` names, and check that its parameters fit.

    Raises:
        ConfigError: There is no run, its graph is gone, or dimension, sides or operators
            differ.
        CorruptStoreError: A file of it is missing or damaged.
    """
    assert config.init_from is not None
    try:
        old = Embeddings(config.init_from)
    except ConfigError as err:
        raise ConfigError(f"init_from: {err}") from err
    for name in _trained_types(graph, model):
        if name in old.node_types and old.dim_of(name) != config.dim_of(name):
            raise ConfigError(
                f"init_from: the rows of node type {name!r} have dim {old.dim_of(name)} in "
                f"the run {old.path}, here dim {config.dim_of(name)}; train with "
                f"dim={old.dim_of(name)}"
            )
        if any(c.of_type(name).features is not None for c in (old.config, config)):
            raise ConfigError(
                f"init_from: node type {name!r} has its rows from features, which are not "
                "matched between runs yet; leave it out with edge_types"
            )
        if name in old.node_types and old.config.has_global(name) != config.has_global(
            name
        ):
            raise ConfigError(
                f"init_from: node type {name!r} has a global embedding in only one of the "
                f"run {old.path} and this one; train with the same"
            )
        if config.init_factor != 1.0 and config.has_global(name):
            raise ConfigError(
                f"init_lr: got {config.init_factor} with a global embedding of node type "
                f"{name!r}, which would move all of its rows; expected 1, or none"
            )
    optimizers = {old.config.optimizer, config.optimizer}
    if config.init_state and "adam" in optimizers and len(optimizers) > 1:
        raise ConfigError(
            f"init_from: the run {old.path} has optimizer={old.config.optimizer}, this one "
            f"{config.optimizer}, whose states are of another kind; train with the same, "
            "or leave them there with --set init_state=false"
        )
    if old.config.reciprocal != config.reciprocal:
        raise ConfigError(
            f"init_from: the run {old.path} has reciprocal={old.config.reciprocal}, this "
            f"one {config.reciprocal}; train with the same"
        )
    for relations, r, source, at in _common_relations(model, old.model):
        sizes = [
            (int(m.codes[k]), int(m.offsets[k + 1] - m.offsets[k]))
            for m, k in ((relations, r), (source, at))
        ]
        if sizes[0] != sizes[1]:
            raise ConfigError(
                f"init_from: relation {relations.relations[r]!r} has another operator in "
                f"the run {old.path}; give it that operator"
            )
    return old


def warm_start(
    context: EmbeddingContext, files: TableFiles, old: Embeddings, progress: Progress
) -> dict[str, Any]:
    """Fill the tables of a new run from another; the caller makes a checkpoint of it.

    Args:
        context: The training; its ``init_state`` says whether the optimizer's states come
            along.
        files: The tables, with first values.
        old: The other run.
        progress: Receives one stage.

    Returns:
        ``run``, its ``epoch``, for every node type the nodes found there (``matched``) and
        the others (``new``), and the ``relations`` taken over by edge type.

    Raises:
        ConfigError: No node of any type is in the other run.
    """
    graph, config = context.graph, context.config
    node_types = _trained_types(graph, context.model)
    total = sum(graph.num_nodes_of(name) for name in node_types)
    progress.stage("warm start", total, "nodes")
    found: dict[str, dict[str, int]] = {}
    for node_type in node_types:
        matched = 0
        for part in range(graph.num_partitions(node_type)):
            origin = _copy_rows(files, graph, (node_type, part), old, config)
            matched += int(np.count_nonzero(origin >= 0))
            progress.advance(len(origin))
        if node_type in old.node_types and config.has_global(node_type):
            vector = read_global(old.path, old.state, old.config, node_type)
            files.globals[node_type][: 1 + config.init_state] = vector[
                : 1 + config.init_state
            ]
        new = graph.num_nodes_of(node_type) - matched
        found[node_type] = {"matched": matched, "new": new}
    if not any(facts["matched"] for facts in found.values()):
        raise ConfigError(
            f"init_from: no node of {graph.path} has an id that the run {old.path} knows; "
            "give a run over the same ids"
        )
    relations = _copy_operators(files, context.model, old, with_state=config.init_state)
    return {
        "run": str(old.path.resolve()),
        "epoch": old.state.epoch,
        "nodes": found,
        "relations": relations,
    }


def _trained_types(graph: GraphReader, model: list[RelationSet]) -> list[str]:
    used = {t for m in model for t in (m.edge_type.src_type, m.edge_type.dst_type)}
    return [name for name in graph.node_types if name in used]


def _copy_rows(
    files: TableFiles,
    graph: GraphReader,
    part: Part,
    old: Embeddings,
    config: EmbeddingConfig,
) -> Ints:
    """Fill one partition; return and keep the numbers of its nodes in the other graph."""
    node_type, number = part
    rows, state = files.load(part)
    origin = np.full(len(rows), -1, dtype=np.int64)
    if node_type in old.node_types:
        offsets = old.graph.offsets(node_type)
        for match in match_ids(graph, old.graph, node_type, number):
            found = old.table(node_type, match.part)[match.there]
            rows[match.here] = to_stored(found, config.row_dtype)
            if config.init_state:
                states = old.states(node_type, match.part)[match.there]
                state[match.here] = _states_like(states, state.ndim)
            origin[match.here] = match.there + offsets[match.part]
    files.store(part, (rows, state))
    files.keep(functools.partial(origin_file, node_type, number), origin)
    return origin


def _states_like(states: Floats, ndim: int) -> Floats:
    """Return states as a run keeps them: the mean of a row, or a row's for each number."""
    if states.ndim == ndim:
        return states
    return states.mean(axis=1) if ndim == 1 else states[:, None]


def _copy_operators(
    files: TableFiles, model: list[RelationSet], old: Embeddings, *, with_state: bool
) -> dict[str, list[str]]:
    """Take over the operators of relations that both runs name; return which."""
    copied: dict[str, list[str]] = {}
    for relations, r, source, at in _common_relations(model, old.model):
        before, table = old.operators(source), files.operators[relations.name]
        into = slice(int(relations.offsets[r]), int(relations.offsets[r + 1]))
        out_of = slice(int(source.offsets[at]), int(source.offsets[at + 1]))
        for row in range(0, len(table), 1 if with_state else 2):
            table[row, into] = before[row, out_of]
        copied.setdefault(relations.name, []).append(relations.relations[r])
    return copied


def with_inherited_rates(
    model: list[RelationSet], inherited: Mapping[str, list[str]], factor: float
) -> list[RelationSet]:
    """Scale the learning rates of operators that came from another run.

    Args:
        model: The relations.
        inherited: Those that came from there, by edge type.
        factor: What their learning rates are multiplied with.
    """
    result = []
    for relations in model:
        known = set(inherited.get(relations.name, []))
        factors = [factor if name in known else 1.0 for name in relations.relations]
        rates = relations.lr_factors * np.array(factors, dtype=np.float32)
        result.append(replace(relations, lr_factors=rates))
    return result


def read_origin(
    path: Path, state: runs.EmbeddingRunState, node_type: str, part: int
) -> Ints:
    """Return a partition's numbers in the other graph, int64 ``[N]``.

    Raises:
        CorruptStoreError: The file is missing or damaged.
    """
    name = origin_file(node_type, part, 0)
    origin: Any = runs.read_array(path, runs.find_file(state, name) or name)
    return np.asarray(origin, dtype=np.int64)


def _common_relations(
    model: list[RelationSet], old: list[RelationSet]
) -> list[tuple[RelationSet, int, RelationSet, int]]:
    """Pair relations of one name: of the edge type of one name, or of the only one."""
    places: dict[str, list[tuple[RelationSet, int]]] = {}
    for source in old:
        for at, name in enumerate(source.relations):
            places.setdefault(name, []).append((source, at))
    result = []
    for relations in model:
        for r, name in enumerate(relations.relations):
            found = places.get(name, [])
            same = [place for place in found if place[0].name == relations.name]
            chosen = same or (found if len(found) == 1 else [])
            if chosen:
                result.append((relations, r, *chosen[0]))
    return result
