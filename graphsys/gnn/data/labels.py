"""Labels and splits of nodes: read from the store once, checked, as class numbers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graphsys.core.caller_warnings import note
from graphsys.core.errors import ConfigError, InvalidGraphError, cut_list, unknown_name
from graphsys.core.rng import generator
from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.split_names import unknown_split
from graphsys.storage.reader import GraphReader

Ints = npt.NDArray[np.int64]
TRAIN, VALID, TEST = "train", "valid", "test"
NO_TIME = np.iinfo(np.int64).min

_DRAW = (
    "name it with --set split=NAME, or draw one and ingest the table again, as CSV: awk "
    '\'NR==1{print $0",split";next}{r=rand();print $0","'
    '(r<.8?"train":r<.9?"valid":"test")}\' FILE > NEW'
)
"""How a table of nodes in CSV gets a split."""


@dataclass(frozen=True, kw_only=True)
class NodeLabels:
    """The classes of the nodes of one type.

    Attributes:
        node_type: The type.
        classes: Names of the classes, sorted.
        begins: Where the classes of each node begin in ``codes``, and of all ``[N + 1]``.
        codes: Class numbers, node after node.
        splits: Numbers of the nodes of each split, rising.
        is_multi: Whether a node may have several classes.
    """

    node_type: str
    classes: list[Any]
    begins: Ints
    codes: Ints
    splits: Mapping[str, Ints]
    is_multi: bool

    def of(self, nodes: Ints) -> npt.NDArray[Any]:
        """Return the class of each node, int64 ``[n]``; of several, float32 ``[n, C]``."""
        if not self.is_multi:
            found: Ints = self.codes[self.begins[nodes]]
            return found
        result = np.zeros((len(nodes), len(self.classes)), dtype=np.float32)
        lengths = self.begins[nodes + 1] - self.begins[nodes]
        row = np.repeat(np.arange(len(nodes)), lengths)
        within = np.arange(len(row)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        result[row, self.codes[np.repeat(self.begins[nodes], lengths) + within]] = 1
        return result

    def counts(self, split: str) -> Ints:
        """Return how many nodes of a split are of each class, int64 ``[C]``."""
        nodes = self.require(split)
        begins, ends = self.begins[nodes], self.begins[nodes + 1]
        steps = np.zeros(len(self.codes) + 1, dtype=np.int64)
        np.add.at(steps, begins, 1)
        np.add.at(steps, ends, -1)
        inside = np.cumsum(steps[:-1]) > 0
        return np.bincount(self.codes[inside], minlength=len(self.classes))

    def require(self, split: str) -> Ints:
        """Return the nodes of a split.

        Raises:
            UnknownNameError: There is none.
        """
        if split not in self.splits:
            raise unknown_split(split, self.splits, of_edges=False)
        return self.splits[split]


def read_labels(graph: GraphReader, config: GnnConfig) -> NodeLabels:
    """Read the labels and splits that a config names.

    Raises:
        ConfigError: No such column, labels that are no classes, no training nodes.
        InvalidGraphError: Nodes of a split have no label.
    """
    node_type = labeled_type(graph, config)
    labels = _as_classes(graph.node_column(node_type, config.label), config.label)
    if config.folds:
        splits = fold_splits(labels, graph.node_ids(node_type), config)
    else:
        splits = read_splits(graph, node_type, config)
    kind, is_multi = labels.type, False
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind, is_multi = kind.value_type, True
    if not (
        pa.types.is_integer(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_boolean(kind)
    ):
        raise ConfigError(
            f"task {config.task}: column {config.label!r} of node type {node_type!r} "
            f"is {labels.type}, expected integers, text or lists of them; write "
            "classes without a fraction, or train task=regression"
        )
    known = pc.is_valid(labels).to_numpy()
    for split, nodes in splits.items():
        if len(missing := nodes[~known[nodes]]):
            ids = graph.ids_of(node_type, missing[:6]).to_pylist()
            raise InvalidGraphError(
                f"{len(missing)} of {len(nodes)} nodes of split {split!r} have no "
                f"{config.label!r}: {cut_list(ids)}{' ...' if len(missing) > 6 else ''}; "
                "label them or take them out of the split"
            )
    begins, values = _flatten(labels, known, is_multi)
    classes, codes = np.unique(values, return_inverse=True)
    if len(classes) < 2:
        raise ConfigError(
            f"task {config.task}: column {config.label!r} of node type "
            f"{node_type!r} has {'1 class' if len(classes) else 'no class'}, expected at "
            "least 2; name another column with --set label=NAME"
        )
    return NodeLabels(
        node_type=node_type,
        classes=classes.tolist(),
        begins=begins,
        codes=codes.astype(np.int64),
        splits=splits,
        is_multi=is_multi,
    )


def _as_classes(labels: Any, name: str) -> Any:
    """Return labels with nulls for those that say that there is none: -1, NaN, no text.

    Of -1 and 1 alone, as some tell two classes, both are classes; a note says so. Floats
    that are whole numbers become those, and a note says so where none is missing; others
    stay as they are, to be refused.

    Raises:
        ConfigError: a list of classes has one that says that there is none.
    """
    kind = labels.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        odd = pc.sum(_says_none(pc.list_flatten(labels))).as_py()
        if odd:
            raise ConfigError(
                f"{odd} classes in the lists of column {name!r} are -1 or empty; an empty "
                "list is a node without classes"
            )
        return labels
    if pa.types.is_floating(kind):
        given, labels = labels, pc.cast(labels, pa.float64())  # holds 2^53, too
        labels = pc.if_else(pc.is_nan(labels), pa.scalar(None, pa.float64()), labels)
        is_whole = pc.and_(
            pc.equal(pc.floor(labels), labels), pc.less(pc.abs(labels), 2**53)
        )
        if pc.all(is_whole).as_py() is False:
            return given
        if not labels.null_count:  # beside NaN integers become that, in pandas
            note(
                f"labels of column {name!r} are whole numbers kept as {kind}: each is "
                "taken for a class; to learn them as numbers, train task=regression"
            )
        labels = pc.cast(labels, pa.int64())
    says_none = _says_none(labels)
    count = pc.sum(says_none).as_py() or 0
    if count and pa.types.is_integer(labels.type):
        if set(pc.unique(labels.drop_null()).to_pylist()) == {-1, 1}:
            note(f"labels -1 and 1 of column {name!r} are taken for two classes")
            return labels
        note(f"{count} labels of column {name!r} are -1: those nodes have none")
    return pc.if_else(pc.fill_null(says_none, False), pa.scalar(None, labels.type), labels)


def _says_none(values: Any) -> Any:
    """Return which values say that there is no class."""
    if pa.types.is_integer(values.type) and not pa.types.is_unsigned_integer(values.type):
        return pc.equal(values, -1)
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        text = pc.utf8_lower(pc.utf8_trim_whitespace(values))
        return pc.is_in(text, pa.array(["", "nan"], text.type))
    return pc.is_null(values)


def labeled_type(graph: GraphReader, config: GnnConfig) -> str:
    """Return the node type that a config names, or the only one that has its label.

    Raises:
        UnknownNameError: There is no such type.
        ConfigError: No type has such a column, or several.
    """
    if config.node_type:
        if config.node_type not in graph.node_types:
            raise unknown_name("node type", config.node_type, graph.node_types)
        return config.node_type
    entries = graph.manifest.node_types
    found = [name for name in graph.node_types if config.label in entries[name].columns]
    if len(found) == 1:
        return found[0]
    if not found:
        columns = sorted({c for entry in entries.values() for c in entry.columns})
        raise ConfigError(
            f"task {config.task}: no node type of {graph.path} has a column "
            f"{config.label!r}; known columns: {', '.join(columns) or 'none'}; name one "
            "with --set label=NAME, or learn to predict edges with --set "
            "task=link_prediction"
        )
    raise ConfigError(
        f"node types {', '.join(found)} have a column {config.label!r}; choose one with "
        "node_type"
    )


def read_times(graph: GraphReader, node_type: str) -> Ints:
    """Return the column ``time`` of a type's nodes, ``NO_TIME`` where there is none.

    Raises:
        ConfigError: There is no such column, or it is neither integers nor timestamps
            (which are seconds since 1970, as those of edges).
    """
    column = graph.node_column(node_type, "time")
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        column = pc.cast(column, pa.timestamp("s"), safe=False)
    elif not pa.types.is_integer(column.type):
        raise ConfigError(
            f"column 'time' of node type {node_type!r} is {column.type}, expected integers "
            "or timestamps"
        )
    column = pc.fill_null(pc.cast(column, pa.int64()), int(NO_TIME))
    times: Ints = column.to_numpy()
    return times


def read_splits(graph: GraphReader, node_type: str, config: GnnConfig) -> dict[str, Ints]:
    """Return the numbers of the nodes of each split, rising.

    Raises:
        ConfigError: There is no such column, or it puts no node into train.
    """
    name = config.split
    if name not in (known := graph.manifest.node_types[node_type].columns):
        raise ConfigError(
            f"node type {node_type!r} has no column {name!r}, which says train, valid or "
            f"test of its nodes (known: {cut_list(known) or 'none'}); {_DRAW}"
        )
    column = graph.node_column(node_type, name)
    found: dict[str, Ints] = {}
    for value in pc.unique(column).to_pylist():
        if value is not None and value != "":
            mask = pc.equal(column, value).to_numpy()
            found[str(value)] = np.flatnonzero(np.asarray(mask, dtype=bool))
    if not len(found.get(TRAIN, ())):
        raise ConfigError(
            f"column {name!r} of node type {node_type!r} puts no node into split 'train'; "
            f"it has {cut_list(map(repr, found)) or 'no values'}; expected train, valid "
            "and test, or name another column with --set split=NAME"
        )
    return found


def fold_splits(labels: Any, ids: Any, config: GnnConfig) -> dict[str, Ints]:
    """Return what fold ``fold`` holds out as test, and all others as train.

    Nodes of each class are dealt out to the folds in a random order, which depends on their
    ids and ``seed`` alone, the next class from where the last one ended: sizes of folds
    differ by one at most, and so do those of a class in them.

    Args:
        labels: Classes ``[N]``; nodes without are in no split.
        ids: Of the nodes ``[N]``.
        config: ``folds``, ``fold`` and ``seed``.

    Raises:
        ConfigError: Several classes a node, or fewer labels than folds.
    """
    if pa.types.is_list(labels.type) or pa.types.is_large_list(labels.type):
        raise ConfigError(
            f"folds: got {config.folds}, but {config.label!r} has lists of classes, "
            "expected one class each to deal out; name splits in a column"
        )
    codes = pc.fill_null(pc.rank(labels, tiebreaker="dense"), 0).to_numpy()
    codes = np.where(pc.is_valid(labels).to_numpy(), codes, 0)
    order = pc.sort_indices(ids).to_numpy()
    dealt, place = np.full(len(codes), -1), 0
    for code in np.unique(codes[codes > 0]).tolist():
        members = order[codes[order] == code]
        members = generator(config.seed, "folds", code).permutation(members)
        dealt[members] = (place + np.arange(len(members))) % config.folds
        place += len(members)
    if place < config.folds:
        raise ConfigError(
            f"folds: got {config.folds}, but {place} have a {config.label!r}; expected "
            "fewer"
        )
    is_test = dealt == config.fold
    return {TRAIN: np.flatnonzero((dealt >= 0) & ~is_test), TEST: np.flatnonzero(is_test)}


def _flatten(labels: Any, known: npt.NDArray[np.bool_], is_multi: bool) -> tuple[Ints, Any]:
    if not is_multi:
        begins = np.concatenate([[0], np.cumsum(known)]).astype(np.int64)
        return begins, _values(pc.drop_null(labels))
    lengths = pc.fill_null(pc.list_value_length(labels), 0).to_numpy()
    begins = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return begins, _values(pc.list_flatten(labels))


def _values(column: Any) -> npt.NDArray[Any]:
    values: npt.NDArray[Any] = column.to_numpy()
    return values.astype(str) if values.dtype == object else values
