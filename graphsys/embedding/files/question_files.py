"""Questions for link prediction from files: tables of triples, or lists of nodes."""

from pathlib import Path

import pyarrow as pa

from graphsys.core.errors import ConfigError
from graphsys.embedding.embeddings import Embeddings
from graphsys.embedding.inference.triples import COLUMNS, as_table, relation_names
from graphsys.training.question_tables import read_question_table


def read_questions(file: str | Path, relation: str | None = None) -> pa.Table:
    """Read questions.

    A file has columns ``head``, ``relation``, ``tail``, of which some may be missing or
    empty, or a column ``id``, or one column of any name: nodes, whose tails are asked for.
    ``.csv`` and ``.tsv`` have a header; ``.txt`` is a node per line, without one.

    Args:
        file: The file.
        relation: Asked about in every row, if the file has no such column.

    Returns:
        A table for :func:`graphsys.embedding.predict`.

    Raises:
        ConfigError: The file is not there, is of another kind, cannot be read or asks
            nothing.
        UnknownNameError: It has other columns.
    """
    table = read_question_table(file, "head")
    is_list = not set(table.column_names) & set(COLUMNS)
    if is_list and table.num_columns == 1:
        table = table.rename_columns(["head"])
    elif is_list and "id" in table.column_names:  # a table of nodes, as networks take it
        table = table.select(["id"]).rename_columns(["head"])
    if relation is not None:
        if "relation" in table.column_names:
            raise ConfigError(
                f"{file} has a column relation, and the relation {relation!r} was given "
                "too; give one of them"
            )
        names = pa.repeat(pa.scalar(relation), table.num_rows)
        table = table.append_column("relation", names)
    return as_table(table)


def all_questions(run: Embeddings, relation: str | None = None) -> pa.Table:
    """Ask for the tails of every node that can be a head of a relation.

    Raises:
        ConfigError: The run has several relations and none was given.
        UnknownNameError: There is no such relation.
    """
    from graphsys.core.errors import unknown_name

    known = relation_names(run)
    if relation is None and len(known) > 1:
        raise ConfigError(
            f"the run has {len(known)} relations ({', '.join(list(known)[:5])}"
            f"{', ...' if len(known) > 5 else ''}); say which is asked about with "
            "--relation NAME"
        )
    name = next(iter(known)) if relation is None else relation
    if name not in known:
        raise unknown_name("relation", name, known)
    kind = run.model[known[name][0]].edge_type
    heads = run.graph.node_ids(kind.src_type)
    return pa.table({"head": heads, "relation": pa.repeat(pa.scalar(name), len(heads))})
