"""Questions and triples as users write them: names checked and turned into numbers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import ConfigError, unknown_name
from graphsys.embedding.model import RelationSet
from graphsys.embedding.rows.trained_rows import TrainedEmbedding

Ints = npt.NDArray[np.int64]
COLUMNS: Final = ("head", "relation", "tail")


@dataclass(frozen=True, kw_only=True)
class QueryGroup:
    """Rows of a table about one edge type, with the same ends given.

    Attributes:
        relations: The relations of the edge type.
        rows: Their places in the table, relation by relation ``[n]``.
        relation: Codes of the relations ``[n]``.
        head: Numbers of the heads ``[n]``, or None where they are asked for.
        tail: Numbers of the tails ``[n]``, or None where they are asked for.
    """

    relations: RelationSet
    rows: Ints
    relation: Ints
    head: Ints | None
    tail: Ints | None

    def first(self, num: int) -> "QueryGroup":
        """Return the first rows of them."""
        return replace(
            self,
            rows=self.rows[:num],
            relation=self.relation[:num],
            head=None if self.head is None else self.head[:num],
            tail=None if self.tail is None else self.tail[:num],
        )


def as_table(questions: pa.Table | Mapping[str, Sequence[Any]]) -> pa.Table:
    """Return questions as a table with text or integers in ``head`` and ``tail``.

    Raises:
        ConfigError: A column is not known, or has a type that names nothing.
    """
    table: pa.Table = questions
    if isinstance(questions, Mapping):
        table = pa.table({name: _column(name, c) for name, c in questions.items()})
    for name in table.column_names:
        if name not in COLUMNS:
            raise unknown_name("column", name, COLUMNS)
    for name in table.column_names:
        kind = table.schema.field(name).type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
            place = table.column_names.index(name)
            table = table.set_column(place, name, table.column(name).cast(kind))
        is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        is_number = pa.types.is_integer(kind) and name != "relation"
        if not (is_text or is_number or pa.types.is_null(kind)):
            raise ConfigError(
                f"column {name!r} of the questions is of type {kind}, expected "
                f"{'text' if name == 'relation' else 'text or integers'}"
            )
    return table


def _column(name: str, values: Sequence[Any]) -> pa.Array:
    try:
        return pa.array(list(values))
    except pa.ArrowException as err:
        raise ConfigError(
            f"column {name!r} of the questions mixes types ({err}); give text or integers"
        ) from err


def groups(
    run: TrainedEmbedding, table: pa.Table, *, is_complete: bool = False
) -> Iterator[QueryGroup]:
    """Look up the names in a table of questions, edge type by edge type.

    Args:
        run: The run.
        table: Columns ``head``, ``relation``, ``tail``; a missing column is all null.
            ``relation`` may be missing where the run has one.
        is_complete: Whether both ends are to be given in every row, instead of one.

    Raises:
        ConfigError: A row gives too many ends or too few, or no relation.
        UnknownNameError: A node or a relation is not in the graph.
    """
    owner, codes = _relations(run, table)
    given = {name: _is_given(table, name) for name in ("head", "tail")}
    ends = given["head"].astype(int) + given["tail"]
    wanted = 2 if is_complete else 1
    wrong = np.flatnonzero(ends != wanted)
    if len(wrong):
        expected = "a head and a tail" if is_complete else "a head or a tail, and not both"
        raise ConfigError(
            f"row {int(wrong[0])} of the questions gives {_what(int(ends[wrong[0]]))}, "
            f"expected {expected}"
        )
    for number, relations in enumerate(run.model):
        for gives_head in (True, False) if not is_complete else (True,):
            rows = np.flatnonzero((owner == number) & (given["head"] == gives_head))
            if not len(rows):
                continue
            rows = rows[np.argsort(codes[rows], kind="stable")]
            kind = relations.edge_type
            head, tail = (
                _numbers(run, table, name, node_type, rows)
                if given[name][rows[0]]
                else None
                for name, node_type in (("head", kind.src_type), ("tail", kind.dst_type))
            )
            yield QueryGroup(
                relations=relations, rows=rows, relation=codes[rows], head=head, tail=tail
            )


def relation_names(run: TrainedEmbedding) -> dict[str, tuple[int, int]]:
    """Return the relations a run can be asked about: their edge type and code.

    A name that several edge types have is written ``edge type/relation``.
    """
    found: dict[str, tuple[int, int]] = {}
    plain = [name for relations in run.model for name in relations.relations]
    for number, relations in enumerate(run.model):
        for code, name in enumerate(relations.relations):
            clear = name if plain.count(name) == 1 else f"{relations.name}/{name}"
            found[clear] = number, code
    return found


def _relations(run: TrainedEmbedding, table: pa.Table) -> tuple[Ints, Ints]:
    """Return the edge type and the relation of every row."""
    known = relation_names(run)
    if not _is_given(table, "relation").any():
        if len(known) > 1 and table.num_rows:
            raise ConfigError(
                f"the run has {len(known)} relations ({', '.join(list(known)[:5])}"
                f"{', ...' if len(known) > 5 else ''}); say which is asked about in a "
                "column relation, or with --relation NAME"
            )
        return np.zeros((2, table.num_rows), dtype=np.int64)  # type: ignore[return-value]
    encoded = table.column("relation").combine_chunks().dictionary_encode()
    if encoded.null_count:
        row = int(np.flatnonzero(~_is_given(table, "relation"))[0])
        raise ConfigError(f"row {row} of the questions gives no relation, expected one")
    pairs = []
    for name in encoded.dictionary.to_pylist():
        if name not in known:
            raise unknown_name("relation", name, known)
        pairs.append(known[name])
    both = np.array(pairs, dtype=np.int64).reshape(-1, 2)[encoded.indices.to_numpy()]
    return both[:, 0], both[:, 1]


def _is_given(table: pa.Table, name: str) -> npt.NDArray[np.bool_]:
    if name not in table.column_names:
        return np.zeros(table.num_rows, dtype=bool)
    valid = table.column(name).combine_chunks().is_valid()
    return np.asarray(valid.to_numpy(zero_copy_only=False), dtype=bool)


def _numbers(
    run: TrainedEmbedding, table: pa.Table, name: str, node_type: str, rows: Ints
) -> Ints:
    ids = table.column(name).take(pa.array(rows)).to_pylist()
    return run.graph.lookup(node_type, ids).astype(np.int64)


def _what(num_ends: int) -> str:
    return ("neither head nor tail", "one end", "both head and tail")[num_ends]
