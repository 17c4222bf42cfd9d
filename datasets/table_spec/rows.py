"""Rows of a described table: text, Parquet or Arrow, by the names of its columns."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from graphsys.core.errors import InputError, unknown_name
from graphsys.datasets.base import base_name, read_options
from graphsys.datasets.columns import (
    check_weights,
    dense_features,
    graph_column,
    holds_features,
    id_column,
)
from graphsys.datasets.files import InputFile, file_in, text_file
from graphsys.datasets.readers.edgelist import guess_kind, has_values
from graphsys.datasets.readers.tables import CHUNK_ROWS, Batches, table_batches
from graphsys.datasets.roles import warn_of_left_out
from graphsys.datasets.table_spec.spec import TableCard
from graphsys.datasets.text.first_lines import (
    DataLine,
    first_lines,
    no_text,
)
from graphsys.datasets.text.id_guards import find_row, header_again, must_be_strings
from graphsys.datasets.text.layout import (
    BLANKS,
    ID,
    INTEGER,
    LABEL,
    MAYBE,
    NUMBER,
    SKIP,
    WORD,
    LineFormat,
    TextColumn,
    show,
)
from graphsys.datasets.text.odd_names import OddNames
from graphsys.datasets.text.source import (
    line_of_row,
    parse_file,
    warn_of_text_times,
)
from graphsys.datasets.times import times_of, warn_of_unit
from graphsys.storage.manifest import TIME_UNITS
from graphsys.storage.write.times import whole as whole_times

_KINDS: Final = {"int": INTEGER, "float": MAYBE, "string": LABEL}
_REST: Final = "[*]"


@dataclass(frozen=True, slots=True)
class TableRows:
    """Some rows of a table.

    Attributes:
        columns: Arrays by name; features are float32 ``[n, d]``.
        first: Number of the first row that was read, before any was left out.
        bytes_read: Bytes of the file that they took.
    """

    columns: dict[str, Any]
    first: int
    bytes_read: int


class Table:
    """A described table, its first lines looked at.

    Args:
        card: What is said about it.
        folder: Where its file lies.
        id_columns: The columns that hold ids ("id", or "src" and "dst").
        num_threads: Threads that parse.
        batches: The rows, where they are in memory and the file is but a name.

    Raises:
        InputError: the file is missing, or its first lines do not fit.
        UnknownNameError: a column does not exist.
    """

    def __init__(
        self,
        card: TableCard,
        folder: Path,
        id_columns: Sequence[str],
        num_threads: int | None = None,
        batches: Batches | None = None,
    ) -> None:
        self.card = card
        self.id_columns = tuple(id_columns)
        self._num_threads = num_threads
        self.has_millionths = False
        self._has_warned = False
        self._header: tuple[bytes, bytes] | None = None
        self._batches = batches
        if batches is not None:
            self.file = InputFile(Path(card.file))
            self.num_bytes = batches.num_bytes or 0
            return
        file = file_in(folder, card.file)
        if card.encoding.lower().replace("_", "-") not in ("utf-8", "utf8"):
            file = replace(file, encoding=card.encoding)
        self.file = file
        self.num_bytes = file.num_bytes
        self._batches = table_batches(file)
        if self._batches is None:
            if not file.encoding:
                self.file = text_file(file)
            self.layout, self.skip = self._look()
            self.has_millionths = warn_of_text_times(file.name, self.layout)

    def line(self, row: int) -> str:
        """Name a row in a message, by its line where it has one."""
        if self._batches is not None:
            return f"{self.file.name}, row {row}"
        number = line_of_row(self.file, self.layout, row, skip=self.skip)
        return f"{self.file.name}:{number}"

    def read(self) -> Iterator[TableRows]:
        """Yield the rows in order, without those that ``where`` leaves out.

        Raises:
            InputError: a line does not fit.
        """
        first = 0
        for columns, size, num_bytes in self._read():
            yield TableRows(self._kept(columns), first, num_bytes)
            first += size

    def _read(self) -> Iterator[tuple[dict[str, Any], int, int]]:
        if self._batches is not None:
            yield from self._read_batches(self._batches)
            return
        first = 0
        is_of_nodes = len(self.id_columns) == 1
        odd = OddNames(
            self.file.name,
            is_open=self.card.ids != "string",
            what="ids of nodes are" if is_of_nodes else "ends of edges are",
        )
        for parsed in parse_file(
            self.file, self.layout, skip=self.skip, num_threads=self._num_threads
        ):
            columns = _stacked(parsed.columns, self.file.name, first)
            if "time" in columns:
                where = f"{self.file.name}: column time"
                columns["time"] = self._times(times_of(columns["time"], where), where)
            self._refuse_header_again(columns, first)
            num_rows = len(columns[self.id_columns[0]])
            others = [it for name, it in columns.items() if name not in self.id_columns]
            odd.add(
                *(columns[name] for name in self.id_columns),
                has_numbers=bool(others) and all(map(_ends_in_a_number, others)),
            )
            yield columns, num_rows, parsed.bytes_read
            first += num_rows
        odd.check(lambda: line_of_row(self.file, self.layout, first - 1, skip=self.skip))

    def _refuse_header_again(self, columns: dict[str, Any], first: int) -> None:
        """Refuse the header as a row, where files were put together."""
        if self._header is None:
            return
        ends = columns[self.id_columns[0]], columns[self.id_columns[-1]]
        if (row := find_row(*ends, self._header)) >= 0:
            line = line_of_row(self.file, self.layout, first + row, skip=self.skip)
            raise header_again(self.file.name, line, self.skip)

    def _read_batches(self, table: Batches) -> Iterator[tuple[dict[str, Any], int, int]]:
        roles = _named(table.schema.names, self.card.names, self.file.name)
        self._require(list(roles.values()))
        first = 0
        for whole in table.read(list(roles)):
            for begin in range(0, whole.num_rows, CHUNK_ROWS):
                batch = whole.slice(begin, CHUNK_ROWS)
                columns: dict[str, Any] = {}
                is_of_nodes = self.id_columns == ("id",)
                for name, role in roles.items():
                    values = batch.column(batch.schema.names.index(name))
                    where = f"{self.file.name}: column {name}"
                    if role in self.id_columns:
                        kind = self.card.ids
                        values = id_column(values, kind=kind, where=where, first_row=first)
                    elif role.endswith("]"):
                        values = _feature_part(values, where, first)
                    elif is_of_nodes and holds_features(values.type):
                        values = dense_features(values, where, first)
                    else:
                        values = graph_column(role, values, where, first)
                    columns[role] = self._times(values, where) if role == "time" else values
                yield _stacked(columns, self.file.name, first), batch.num_rows, batch.nbytes
                first += batch.num_rows

    def _times(self, values: Any, where: str) -> Any:
        """Return times as they are, those of nodes as int64 without their unit."""
        if isinstance(values, np.ndarray) or self.id_columns != ("id",):
            return values
        times, unit = whole_times(values, where)
        if not self._has_warned:
            self._has_warned = True
            warn_of_unit(where, TIME_UNITS[unit])
        return times

    def _look(self) -> tuple[LineFormat, int]:
        """Find out what the lines of a text file look like, and how many to skip."""
        card = self.card
        separator = self._separator()
        is_plain = separator == BLANKS and not card.header
        has_quotes = card.quotes and separator != BLANKS
        lines = first_lines(
            self.file,
            skip=card.skip,
            separator=separator,
            has_comments=is_plain,
            has_quotes=has_quotes,
            has_texts=True,
        )
        if (err := no_text(self.file, lines[0])) is not None:
            raise err
        names, skip = list(card.columns), card.skip
        header: list[str] = []
        if card.header:
            header = [it.decode("utf-8", "replace") for it in lines[0].fields]
            roles = _named(header, card.names, f"{self.file.name}:{lines[0].number}")
            names = names or [roles.get(name, "_") for name in header]
            skip, lines = lines[0].number, lines[1:]
        self._require(names)
        if not lines:
            where = f"{self.file.name}:{skip}"
            raise InputError(f"{where}: no row behind the header, expected at least one")
        layout = LineFormat(
            columns=self._columns(names, lines, header),
            separator=separator,
            has_comments=is_plain,
            has_quotes=has_quotes,
            first_line=lines[0].number,
            keeps_zeros=card.ids == "auto",
        )
        if card.header and card.ids != "string":
            words = [header[names.index(name)].encode() for name in self.id_columns]
            self._header = words[0], words[-1]
        return layout, skip

    def _separator(self) -> int:
        chosen = read_options(separator=self.card.separator).separator
        if chosen is not None:
            return BLANKS if chosen == " " else ord(chosen)
        if base_name(self.file.path)[1] == ".csv":
            return ord(",")
        lines = first_lines(
            self.file,
            skip=self.card.skip,
            separator=BLANKS,
            has_comments=False,
            has_texts=True,
        )
        return ord("\t") if b"\t" in lines[0].text else BLANKS

    def _require(self, names: Sequence[str]) -> None:
        for wanted in (*self.id_columns, *self.card.where):
            if wanted not in names:
                err = unknown_name("column", wanted, names)
                raise type(err)(f"{self.file.name}: {err}; say which it is with columns")

    def _columns(
        self, names: list[str], lines: list[DataLine], titles: Sequence[str]
    ) -> tuple[TextColumn, ...]:
        """Find out what the columns hold; ``titles`` is what the file calls them."""
        first = lines[0]
        if names[-1].endswith(_REST):
            base, dim = names[-1][: -len(_REST)], len(first.fields) - len(names) + 1
            names = [*names[:-1], *(f"{base}[{k}]" for k in range(dim))]
        if len(first.fields) != len(names):
            raise InputError(
                f"{self.file.name}:{first.number}: found {len(first.fields)} columns, "
                f"expected {len(names)} ({' '.join(names[:8])}): {show(first.text)}"
            )
        ends = [first.fields[names.index(name)] for name in self.id_columns]
        is_integer = self.card.ids == "int" or (
            self.card.ids == "auto"
            and all(end.isdigit() for end in ends)
            and not must_be_strings(
                f"{self.file.name}:{first.number}",
                lines,
                [names.index(name) for name in self.id_columns],
            )
        )
        columns = []
        for place, name in enumerate(names):
            if name in self.id_columns:
                kind = ID if is_integer else WORD
            elif name in self.card.where:
                kind = LABEL
            elif name.endswith("]"):
                kind = NUMBER
            elif name in self.card.types:
                kind = _KINDS[self.card.types[name]]
            else:
                kind = guess_kind(name, place, lines)
            title = titles[place] if place < len(titles) else name
            is_told = name in self.card.types or has_values(place, lines)
            name = "_" if kind == SKIP else name
            columns.append(TextColumn(name, kind, title, is_told))
        return tuple(columns)

    def _kept(self, columns: dict[str, Any]) -> dict[str, Any]:
        """Leave out the rows that ``where`` does not want, and its columns."""
        if not self.card.where:
            return columns
        mask: Any = None
        for name, value in self.card.where.items():
            values = columns.pop(name)
            if not isinstance(values, pa.Array):
                values = pa.array(values)
            match = pc.equal(values.cast(pa.string()), value).fill_null(False)
            mask = match if mask is None else pc.and_(mask, match)
        is_kept = mask.to_numpy(zero_copy_only=False)
        return {
            name: it[is_kept] if isinstance(it, np.ndarray) else it.filter(mask)
            for name, it in columns.items()
        }


def _named(names: Sequence[str], roles: Mapping[str, str], where: str) -> dict[str, str]:
    """Return what each column taken of a file is called in the graph."""
    for asked in roles.values():
        if asked not in names:
            err = unknown_name("column", asked, names)
            raise type(err)(f"{where}: {err}")
    called = {name: role for role, name in roles.items()}
    warn_of_left_out(names, called, where)
    given = {role.partition("[")[0] for role in roles}
    return {
        name: called.get(name, name)
        for name in names
        if name in called or name not in given
    }


def _ends_in_a_number(column: Any) -> bool:
    """Tell whether the last value of a column is a number, or there is none."""
    last = column[-1:]
    return isinstance(last, np.ndarray) or last.null_count == len(last)


def _place(name: str) -> int:
    """Return the number in ``x[3]``."""
    return int(name.rpartition("[")[2].removesuffix("]"))


def _feature_part(values: Any, where: str, first_row: int) -> npt.NDArray[np.float64]:
    """Return numbers ``[n]``, or lists of them ``[n, d]``, as a part of features."""
    if pt.is_nested(values.type):
        return dense_features(values, where, first_row).astype(np.float64)
    return check_weights(values, where, first_row, what="features").astype(np.float64)


def _stacked(columns: dict[str, Any], where: str, first_row: int) -> dict[str, Any]:
    """Put the columns ``x[0]``, ``x[1]`` ... together in this order, float32 ``[n, d]``.

    Raises:
        InputError: a number is infinite, or beyond float32.
    """
    grouped: dict[str, list[npt.NDArray[np.float64]]] = {}
    for name in sorted(filter(lambda it: it.endswith("]"), columns), key=_place):
        grouped.setdefault(name.rpartition("[")[0], []).append(columns.pop(name))
    for name, parts in grouped.items():
        rows = np.column_stack(parts)
        with np.errstate(over="ignore"):
            narrow = rows.astype(np.float32)
        if not (is_finite := np.isfinite(narrow)).all():
            row, place = np.argwhere(~is_finite)[0]
            raise InputError(
                f"{where}: row {first_row + row} has {rows[row, place]} in features "
                f"{name}, expected a number within {np.finfo(np.float32).max:.2g}; correct "
                "it, or remove the row"
            )
        columns[name] = narrow
    return columns
