"""Descriptions of tables: their keys, and what of them goes together.

A description is TOML with ``[[nodes]]`` and ``[[edges]]``::

    directed = true

    [[nodes]]
    type = "paper"
    file = "paper.txt"              # or count = 4019 for ids 0 to 4018
    columns = ["id", "name"]        # by position; "_" leaves one out, "x[*]" takes the rest
    encoding = "latin-1"
    features = { x = "p_feat.npz" } # arrays whose rows go with the ids, in order
    arrays = { label = "labels.npy" }

    [nodes.splits.split]            # a node column made of lists of rows, or of masks
    train = "train_20.npy"

    [[edges]]
    type = ["paper", "writes", "author"]
    file = "pa.txt"
    columns = ["src", "dst"]

Paths are relative to the description. The classes list all keys.
"""

import codecs
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from graphsys.core.config import from_mapping
from graphsys.core.errors import ConfigError
from graphsys.core.types import DEFAULT_SPLIT, EdgeType
from graphsys.datasets.base import read_options

ColumnType = Literal["int", "float", "string"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCard:
    """How one table of text (or Parquet, or Arrow) is read.

    Attributes:
        file: Its name.
        columns: Names of its columns by position; "_" leaves one out, and "x[*]" at the
            end takes all that are left as the features x.
        names: The file's name of a column ("src", "dst", "id" ...), with a header.
        header: Its first line names the columns; so do Parquet and Arrow files.
        separator: What separates columns; None to look for tabs, then blanks.
        encoding: Encoding of the text.
        skip: Lines to leave out at the beginning.
        quotes: Fields may be quoted as in CSV.
        types: Types of columns, where not guessed from the first lines.
        where: Values of columns; other rows are left out, and so are these columns.
        ids: "auto", "int" or "string".
    """

    file: str = ""
    columns: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    header: bool = False
    separator: str | None = None
    encoding: str = "utf-8"
    skip: int = 0
    quotes: bool = False
    types: Mapping[str, ColumnType] = field(default_factory=dict)
    where: Mapping[str, str] = field(default_factory=dict)
    ids: Literal["auto", "int", "string"] = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCard(TableCard):
    """One table of nodes.

    Attributes:
        type: Node type.
        count: Number of nodes, instead of a file: ids from ``first`` on.
        first: First id, with ``count``.
        join: The table adds columns to nodes that another one lists.
        features: Arrays of features by name (.npy, .npz), their rows in the nodes' order.
        bags: Sparse matrices (.npz) that become bags of features, likewise.
        arrays: Arrays (.npy) that become columns, likewise.
        splits: Columns made of arrays of rows or of masks, by split.
    """

    type: str = "node"
    count: int = -1
    first: int = 0
    join: bool = False
    features: Mapping[str, str] = field(default_factory=dict)
    bags: Mapping[str, str] = field(default_factory=dict)
    arrays: Mapping[str, str] = field(default_factory=dict)
    splits: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeCard(TableCard):
    """One table of edges.

    Attributes:
        type: Source type, relation, destination type.
        split: Split of its edges.
        layout: "table"; "lists": lines of a source and its destinations; "matrix": a
            sparse matrix (.npz).
        rows: First and behind the last row of a matrix; ids count from the first.
        cols: The same for columns.
        weights: Keep a matrix's values.
    """

    type: tuple[str, ...] = ("node", "edge", "node")
    split: str = DEFAULT_SPLIT
    layout: Literal["table", "lists", "matrix"] = "table"
    rows: tuple[int, ...] = ()
    cols: tuple[int, ...] = ()
    weights: bool = True

    @property
    def edge_type(self) -> EdgeType:
        """The type, as the store wants it."""
        return EdgeType(*self.type)


@dataclass(frozen=True, slots=True, kw_only=True)
class TablesCard:
    """A whole description.

    Attributes:
        directed: False where every edge stands for both directions.
        nodes: Tables of nodes.
        edges: Tables of edges.
    """

    directed: bool = True
    nodes: tuple[NodeCard, ...] = ()
    edges: tuple[EdgeCard, ...] = ()

    @classmethod
    def parse(
        cls, mapping: Mapping[str, Any], where: str, *, needs_edges: bool = True
    ) -> "TablesCard":
        """Check a description; one that ``needs_edges`` has a table of them.

        Raises:
            ConfigError: a key or a value that does not exist, or keys that do not go
                together.
        """
        card = from_mapping(cls, mapping, where=where)
        for k, nodes in enumerate(card.nodes):
            _check_nodes(nodes, f"{where}: nodes.{k}")
        for k, edges in enumerate(card.edges):
            _check_edges(edges, f"{where}: edges.{k}")
        if needs_edges and not card.edges:
            raise ConfigError(f"{where}: no [[edges]], expected at least one table of them")
        listed = {nodes.type for nodes in card.nodes if not nodes.join}
        for k, nodes in enumerate(card.nodes):
            if nodes.join and nodes.type not in listed:
                raise ConfigError(
                    f"{where}: nodes.{k}: join adds columns to nodes of type "
                    f"{nodes.type!r}, but no other table lists them; leave join out"
                )
        return card


def _check_nodes(card: NodeCard, where: str) -> None:
    if (card.count >= 0) == bool(card.file):
        raise ConfigError(
            f"{where}: expected either file or count, for nodes of {card.type!r}"
        )
    if card.first < 0:
        raise ConfigError(f"{where}.first: got {card.first}, expected an id >= 0")
    if card.join and (card.count >= 0 or card.features or card.arrays or card.splits):
        raise ConfigError(f"{where}: join goes with columns of a file, not with arrays")
    _check_table(card, where)


def _check_edges(card: EdgeCard, where: str) -> None:
    if not card.file:
        raise ConfigError(f"{where}.file: expected the name of a file")
    if len(card.type) != 3:
        raise ConfigError(
            f"{where}.type: got {list(card.type)}, expected source type, relation, "
            "destination type"
        )
    for name, bounds in (("rows", card.rows), ("cols", card.cols)):
        if bounds and (len(bounds) != 2 or not 0 <= bounds[0] < bounds[1]):
            raise ConfigError(
                f"{where}.{name}: got {list(bounds)}, expected [FIRST, BEHIND THE LAST]"
            )
        if bounds and card.layout != "matrix":
            raise ConfigError(f"{where}.{name}: goes with layout = 'matrix' alone")
    _check_table(card, where)


def _check_table(card: TableCard, where: str) -> None:
    try:
        codecs.lookup(card.encoding)
    except LookupError:
        raise ConfigError(
            f"{where}.encoding: got {card.encoding!r}, expected one that Python knows, "
            "such as latin-1"
        ) from None
    if card.skip < 0:
        raise ConfigError(f"{where}.skip: got {card.skip}, expected a number >= 0")
    try:
        read_options(separator=card.separator)
    except ConfigError as err:
        raise ConfigError(f"{where}.{err}") from None
    if any(name.endswith("[*]") for name in card.columns[:-1]):
        raise ConfigError(f"{where}.columns: NAME[*] takes the rest, expected it last")
