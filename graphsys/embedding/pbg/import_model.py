"""A checkpoint of PyTorch-BigGraph as a run: rows, operators and Adagrad's sums.

Rows go to the nodes of the graph by name, whatever its partitions. PBG's global embedding
is added to the rows, as PBG does before it scores and when it exports, so scores are
equal and the run has none.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.arrays import distinct
from graphsys.core.deps import require
from graphsys.core.errors import ConfigError, InputError, UnknownNameError, cut_list
from graphsys.core.types import EdgeType
from graphsys.embedding import run as runs
from graphsys.embedding.embeddings import Embeddings
from graphsys.embedding.model import RelationSet, relation_sets
from graphsys.embedding.pbg.checkpoint import (
    PbgCheckpoint,
    global_embedding,
    open_checkpoint,
    opened,
    operator_sums,
    parameters_of,
    row_sums,
    rows_of,
)
from graphsys.embedding.pbg.settings import Tell, from_pbg_config, ignore
from graphsys.storage.reader import GraphReader
from graphsys.storage.runs.run_folder import writing

Floats = npt.NDArray[np.float32]


def import_pbg(
    checkpoint: str | Path,
    graph: GraphReader,
    out: str | Path,
    *,
    entity_path: str | Path | None = None,
    overwrite: bool = False,
    tell: Tell = ignore,
) -> Embeddings:
    """Turn a checkpoint of PyTorch-BigGraph into a run.

    Args:
        checkpoint: PBG's ``checkpoint_path``.
        graph: A graph with the same nodes: ingested from PBG's prepared data, or from
            the files that PBG's data was prepared from.
        out: Folder of the run.
        entity_path: PBG's ``entity_path``, where it is not what the config says.
        overwrite: Replace a run in ``out``.
        tell: Receives a line for what is left out.

    Returns:
        The run, opened; it is complete: ``evaluate``, ``nearest`` and ``export`` take it,
        and another training can start from it.

    Raises:
        InputError: A file of the checkpoint is missing or damaged.
        ConfigError: The graph has other nodes or relations than the checkpoint.
        OutputExistsError: ``out`` exists.
        MissingDependencyError: h5py is not installed.
    """
    require("h5py", extra="all")
    out = Path(out)
    found = open_checkpoint(Path(checkpoint), entity_path)
    # a damaged one ends here
    from_pbg_config(dict(found.config, global_emb=False, init_path=None))
    config = from_pbg_config(_settings(found, graph, tell), tell=tell)
    model = relation_sets(graph, config)
    runs.require_free(out, resume=False, overwrite=overwrite)
    state = runs.EmbeddingRunState(
        graph=runs.describe_graph(graph), epoch=config.epochs, is_complete=True
    )
    state.metrics["imported_from"] = str(Path(checkpoint).resolve())
    with writing(out, resume=False, overwrite=overwrite) as path:
        try:
            state.checksums[runs.CONFIG_NAME] = runs.write_config(path, config)
            for entity, node_type in _node_types(found, graph, model).items():
                _import_rows(found, entity, graph, node_type, path, state)
            _import_operators(found, model, path, state)
            runs.commit(path, state)
        except BaseException:
            runs.discard(path)
            raise
    return Embeddings(out, graph=graph)


def _settings(found: PbgCheckpoint, graph: GraphReader, tell: Tell) -> dict[str, Any]:
    """Return PBG's settings with the graph's names of relations, those it has."""
    settings = dict(found.config, global_emb=False, init_path=None)
    if found.is_dynamic or len(settings["relations"]) == 1:
        return settings
    known = {name for kind in graph.edge_types for name in _names(graph, kind)}
    kept, names = [], found.relations
    is_numbered = not known & set(names)
    for number, relation in enumerate(settings["relations"]):
        name = str(number) if is_numbered else names[number]
        if name in known:
            kept.append(dict(relation, name=name))
        else:
            tell(f"relation {names[number]!r} has no edges in the graph and is left out")
    settings["relations"] = kept
    return settings


def _names(graph: GraphReader, kind: EdgeType) -> list[str]:
    return graph.relations(kind) or [graph.edge_type_name(kind)]


def _node_types(
    found: PbgCheckpoint, graph: GraphReader, model: list[RelationSet]
) -> dict[str, str]:
    """Say which node type of the graph each entity type is: by name, or the only one."""
    used = {t for m in model for t in (m.edge_type.src_type, m.edge_type.dst_type)}
    types = [name for name in graph.node_types if name in used]
    entities = list(found.config["entities"])
    if set(entities) == set(types):
        return {name: name for name in entities}
    if len(entities) == len(types) == 1:
        return {entities[0]: types[0]}
    raise ConfigError(
        f"the checkpoint has the entities {cut_list(entities)}, the graph trains nodes of "
        f"the types {cut_list(types)}; expected the same names"
    )


def _import_rows(
    found: PbgCheckpoint,
    entity: str,
    graph: GraphReader,
    node_type: str,
    out: Path,
    state: runs.EmbeddingRunState,
) -> None:
    """Write the rows and sums of one type, a partition of the graph at a time."""
    sizes = found.names.sizes.get(entity)
    if sizes is None:
        raise InputError(f"{found.names.folder}: there are no counts of {entity!r}")
    numbers = [
        _numbers(found, entity, part, graph, node_type) for part in range(len(sizes))
    ]
    total, expected = sum(map(len, numbers)), graph.num_nodes_of(node_type)
    num_distinct = len(distinct(np.concatenate(numbers)))
    if not total == num_distinct == expected:
        raise ConfigError(
            f"the checkpoint has {total} entities of {entity!r}, {num_distinct} of them "
            f"distinct; the graph {graph.path} has {expected} nodes of {node_type!r}; "
            "expected the same: ingest PBG's prepared data, or the files it was made from"
        )
    shift = global_embedding(found, entity)
    offsets = graph.offsets(node_type)
    sums = [row_sums(found.file(f"embeddings_{entity}_{k}")) for k in range(len(sizes))]
    for part in range(len(offsets) - 1):
        low, high = int(offsets[part]), int(offsets[part + 1])
        rows = np.zeros((high - low, found.dim(entity)), dtype=np.float32)
        row_state = np.zeros(high - low, dtype=np.float32)
        for k, places in enumerate(numbers):
            chosen = np.flatnonzero((places >= low) & (places < high))
            for block, taken in rows_of(found, entity, k, len(places), chosen):
                rows[places[taken] - low] = block if shift is None else block + shift
            kept = sums[k]
            if kept is not None and len(kept) == len(places):
                row_state[places[chosen] - low] = kept[chosen]
        for name, array in (
            (runs.rows_file(node_type, part, 1), rows),
            (runs.state_file(node_type, part, 1), row_state),
        ):
            _add(out, state, name, array)
    state.serial = 1


def _numbers(
    found: PbgCheckpoint, entity: str, part: int, graph: GraphReader, node_type: str
) -> npt.NDArray[np.int64]:
    """Return the number in the graph of every entity of a partition."""
    ids = found.names.ids(entity, part)
    listed = ids if isinstance(ids, np.ndarray) else ids.to_pylist()
    try:
        return graph.lookup(node_type, listed).astype(np.int64, copy=False)
    except UnknownNameError as err:
        raise ConfigError(
            f"{err}; the graph must have all entities of the checkpoint: ingest PBG's "
            "prepared data, or the files it was made from"
        ) from err


def _import_operators(
    found: PbgCheckpoint,
    model: list[RelationSet],
    out: Path,
    state: runs.EmbeddingRunState,
) -> None:
    places = _match_relations(found.relations, model)
    sides = ("lhs", "rhs") if found.is_dynamic else ("rhs",)
    path = found.file("model")
    sums = operator_sums(path, found.config["relations"], found.is_dynamic)
    with opened(path) as file:
        for relations in model:
            table = relations.initial()
            for r, name in enumerate(relations.relations):
                number = places[relations.name, name]
                low, high = int(relations.offsets[r]), int(relations.offsets[r + 1])
                for side, pbg_side in enumerate(sides):
                    values = parameters_of(found, file, number, pbg_side, None)
                    kept = parameters_of(found, file, number, pbg_side, sums)
                    if len(values) != high - low:
                        raise InputError(
                            f"{path}: relation {name!r} has {len(values)} operator "
                            f"parameters, expected {high - low}"
                        )
                    table[2 * side, low:high] = values
                    table[2 * side + 1, low:high] = kept
            name = runs.relations_file(relations.name, 1)
            _add(out, state, name, table)
    state.serial = 1


def _match_relations(
    known: list[str], model: list[RelationSet]
) -> dict[tuple[str, str], int]:
    """Say which relation of PBG each of ours is: the only one, by name, or by number."""
    ours = [(m.name, name) for m in model for name in m.relations]
    if len(ours) == len(known) == 1:
        return {ours[0]: 0}
    numbers = {name: number for number, name in enumerate(known)}
    if not any(name in numbers for _, name in ours):
        numbers = {str(number): number for number in range(len(known))}
    missing = [name for _, name in ours if name not in numbers]
    if missing:
        raise ConfigError(
            f"the graph has the relations {cut_list(missing)}, which the checkpoint lacks; "
            f"it has {cut_list(known)}"
        )
    return {key: numbers[key[1]] for key in ours}


def _add(out: Path, state: runs.EmbeddingRunState, name: str, array: Any) -> None:
    state.files[name] = runs.write_array(out / name, array)
    state.checksums[name] = runs.array_checksum(array)
    runs.sync_file(out / name)
