"""Formulas in conjunctive normal form, as SAT solvers exchange them (DIMACS).

Lines ``c ...`` are comments, ``p cnf V C`` names how many variables and clauses there are,
then come clauses: numbers of variables, negative where negated, ended by 0, over as many
lines as they like; a line ``%`` ends the file, as in SATLIB's. The graph is the factor
graph: variables are nodes 1 to V, clauses V + 1 to V + C in their order, and an edge leads
from a clause to each of its variables with weight 1, or -1 where negated. A literal that a
clause repeats counts once; a clause with a variable and its negation always holds and has
no edges.

References:
    "Satisfiability: suggested format", DIMACS challenge, 1993, section 2.1.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError, InputError
from graphsys.core.types import EDGE, EdgeType
from graphsys.datasets.base import Format, ReadOptions, formats
from graphsys.datasets.files import InputFile, read_head
from graphsys.datasets.text.layout import as_count, is_integer, show
from graphsys.storage.source import EdgeChunk, NodeChunk, Source

Ints = npt.NDArray[np.int64]
_AT_A_TIME: Final = 1 << 20


class CnfSource(Source):
    """The factor graph of one formula."""

    is_directed = True

    def __init__(self, file: InputFile, edge_type: EdgeType) -> None:
        self.name, self.total_bytes = file.name, file.num_bytes
        self._file, self._edge_type = file, edge_type
        _sizes(file.name, *_problem_line(file.name, read_head(file)))

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield variables, clauses and then the edges.

        Raises:
            InputError: what the module's docstring does not allow, or counts that differ.
        """
        clause, literal, num_variables, num_clauses = self._read()
        ids = np.arange(1, num_variables + num_clauses + 1, dtype=np.int64)
        types = self._edge_type.src_type, self._edge_type.dst_type
        yield NodeChunk(ids=ids[num_variables:], node_type=types[0])
        yield NodeChunk(ids=ids[:num_variables], node_type=types[1])
        total = self.total_bytes or 0
        for begin in range(0, max(len(clause), 1), _AT_A_TIME):
            part = slice(begin, begin + _AT_A_TIME)
            yield EdgeChunk(
                src=num_variables + clause[part],
                dst=np.abs(literal[part]),
                edge_type=self._edge_type,
                columns={"weight": np.sign(literal[part]).astype(np.int8)},
                bytes_read=total if begin == 0 else 0,
            )

    def _read(self) -> tuple[Ints, Ints, int, int]:
        """Return the clause (from 1) and the literal of every edge, and both counts."""
        text = self._file.read_all()
        problem, line = _problem_line(self.name, text)
        num_variables, num_clauses = _sizes(self.name, problem, line)
        lines = text.split(b"\n")
        ends = (k for k in range(line, len(lines)) if lines[k].strip() == b"%")
        kept = [it for it in lines[line : next(ends, None)] if it[:1] != b"c"]
        words = b" ".join(kept).split()
        if any(not is_integer(word) for word in words):
            raise InputError(_wrong_word(self.name, lines, line))
        numbers = np.array(words, dtype=np.int64) if words else np.zeros(0, np.int64)
        if len(numbers) and numbers[-1] != 0:
            raise InputError(
                f"{self.name}: the last clause ends without 0; the file is cut short"
            )
        clause = np.cumsum(numbers == 0)
        if (len(clause) and clause[-1] != num_clauses) or (not len(clause) and num_clauses):
            found = int(clause[-1]) if len(clause) else 0
            raise InputError(
                f"{self.name}: found {found} clauses, expected {num_clauses} as line "
                f"{line} says; correct the line, or the file is cut short"
            )
        is_literal = numbers != 0
        clause, literal = clause[is_literal] + 1, numbers[is_literal]
        _check(self.name, clause, literal, num_variables, num_clauses)
        return *_distinct(clause, literal), num_variables, num_clauses


def _problem_line(name: str, text: bytes) -> tuple[bytes, int]:
    """Return the line ``p cnf V C`` and its number."""
    for number, line in enumerate(text.split(b"\n"), 1):
        if line[:1] == b"p":
            return line, number
        if line.strip() and line[:1] != b"c":
            break
    raise InputError(
        f"{name}: found no line 'p cnf VARIABLES CLAUSES' before the first clause; add it"
    )


def _sizes(name: str, line: bytes, number: int) -> tuple[int, int]:
    fields = line.split()
    sizes = [as_count(field) for field in fields[2:]]
    if fields[:2] != [b"p", b"cnf"] or len(sizes) != 2 or None in sizes:
        raise InputError(
            f"{name}:{number}: found {show(line)}, expected 'p cnf VARIABLES CLAUSES'"
        )
    return int(sizes[0] or 0), int(sizes[1] or 0)


def _wrong_word(name: str, lines: list[bytes], first: int) -> str:
    for number, line in enumerate(lines[first:], first + 1):
        if line[:1] == b"c":
            continue
        for word in line.split():
            if not is_integer(word):
                return f"{name}:{number}: found {show(word)}, expected numbers of variables"
    return f"{name}: expected numbers of variables"


def _check(name: str, clause: Ints, literal: Ints, variables: int, clauses: int) -> None:
    """Refuse variables that are not there, and empty clauses."""
    wrong = np.flatnonzero(np.abs(literal) > variables)
    if len(wrong):
        raise InputError(
            f"{name}: clause {clause[wrong[0]]} names variable {abs(literal[wrong[0]])}, "
            f"expected 1 to {variables}; correct the line 'p cnf'"
        )
    empty = np.flatnonzero(np.bincount(clause, minlength=clauses + 1)[1:] == 0)
    if len(empty):
        raise InputError(
            f"{name}: clause {empty[0] + 1} is empty, so that nothing satisfies the "
            "formula; take it out"
        )


def _distinct(clause: Ints, literal: Ints) -> tuple[Ints, Ints]:
    """Return each literal of a clause once, without clauses that always hold."""
    order = np.lexsort((literal, np.abs(literal), clause))
    clause, literal = clause[order], literal[order]
    is_same_clause = np.diff(clause, prepend=0) == 0
    is_new = ~is_same_clause | (np.diff(literal, prepend=0) != 0)
    clause, literal = clause[is_new], literal[is_new]
    is_same_clause = np.diff(clause, prepend=0) == 0
    is_both = is_same_clause & (np.diff(np.abs(literal), prepend=0) == 0)
    kept = ~np.isin(clause, clause[is_both])
    return clause[kept], literal[kept]


def open_cnf(files: list[InputFile], options: ReadOptions) -> Source:
    """Make a source of one formula.

    Raises:
        ConfigError: options that a formula has no use for.
        InputError: there are several files, or no line ``p cnf``.
    """
    if options.columns or options.roles or options.skip or options.ids == "string":
        raise ConfigError("a formula has no columns to name, lines to skip or names")
    if options.is_undirected:
        raise ConfigError("a formula's edges lead from clauses to variables; leave it so")
    if len(files) != 1:
        raise InputError(
            f"{files[1].name}: a second formula, expected one; ingest each by itself"
        )
    return CnfSource(files[0], options.edge_type or EDGE)


formats.register("cnf")(
    Format(
        open=open_cnf,
        suffixes=(".cnf", ".dimacs"),
        about="DIMACS CNF: a formula as the graph of its clauses and variables",
    )
)
