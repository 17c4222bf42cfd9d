"""What lines of a text file look like, and what is wrong with one that does not."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from graphsys.core.types import MAX_USER_ID
from graphsys.datasets.times import is_date
from graphsys.kernels.cpu.text import parsing as kernels

SKIP: Final = kernels.SKIP
ID: Final = kernels.ID
NUMBER: Final = kernels.NUMBER
WORD: Final = kernels.WORD
INTEGER: Final = kernels.INTEGER
MAYBE: Final = kernels.MAYBE
LABEL: Final = kernels.LABEL
MARK: Final = kernels.MARK
BLANKS: Final = kernels.BLANKS

MISSING: Final = ("", "nan", "na", "null", "none")
_NUMBER_PATTERN: Final = (
    r"^[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf|infinity)$"
)
_TOTALS: Final = {
    *("total", "totals", "grand total", "subtotal", "sub total", "sum", "sums", "average"),
    *("avg", "mean", "count", "totale", "somme", "suma", "summe", "gesamt", "insgesamt"),
    *("\u0438\u0442\u043e\u0433\u043e", "\u5408\u8a08", "\u5408\u8ba1", "\u603b\u8ba1"),
}
TOTAL_WORD: Final = rf"(?i)^[ :=*]*(grand|sub|{'|'.join(_TOTALS)})"
"""How a word of totals begins, in the regular expressions of Arrow."""
_EXPECTED: Final = {
    ID: "an integer id from 0 to 2**63 - 1",
    NUMBER: "a number",
    INTEGER: "an integer of 64 bits",
}


@dataclass(frozen=True, slots=True)
class TextColumn:
    """One column of a text file.

    Attributes:
        name: "src", "dst", "weight", "time", "relation" or any other; "_" is skipped.
        kind: ID, INTEGER, NUMBER, WORD, SKIP; MAYBE and LABEL are a NUMBER and a WORD that
            may be missing; MARK is the letter a, and not stored.
        title: What the file calls it, for messages; empty where it is the name.
        is_told: Whether the first lines have a value of it.
    """

    name: str
    kind: int
    title: str = ""
    is_told: bool = True

    @property
    def is_further(self) -> bool:
        """Whether its type is guessed from the first lines, and it could be any."""
        return self.name not in ("src", "dst", "id", "weight", "time", "relation")


THROUGHOUT: Final = " throughout"
FILL_IN: Final = "fill it in, or leave the column out of the features, which lack no number"


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFormat:
    """How every line of a file is read.

    Attributes:
        columns: The columns, from the left.
        separator: The separating byte, or BLANKS for any run of blanks and tabs.
        has_comments: ``#`` and ``%`` begin comments.
        has_quotes: Fields may be quoted as in CSV.
        first_line: Number of the line that fixed the format, for messages.
        is_first_odd: Whether that line looks like none of the next ones: it may be a
            header or a count.
        is_even_below: Whether all next lines have as many fields as each other: then it
            is likely one.
        is_ragged: Whether lines differ so much in their number of fields that they may be
            lists of neighbors.
        keeps_zeros: Refuse ids of digits with zeros in front, which would go: nobody said
            that they are integers.
    """

    columns: tuple[TextColumn, ...]
    separator: int = BLANKS
    has_comments: bool = True
    has_quotes: bool = False
    first_line: int = 1
    is_first_odd: bool = False
    is_even_below: bool = True
    is_ragged: bool = False
    keeps_zeros: bool = False

    @property
    def has_integer_ids(self) -> bool:
        """Whether ids are integers, which no mark begins."""
        return any(column.kind == ID for column in self.columns)

    def split(self, line: bytes) -> list[bytes]:
        """Cut one line into fields as the kernels do; none for blank lines and comments."""
        return split_line(
            line,
            self.separator,
            has_comments=self.has_comments,
            has_quotes=self.has_quotes,
            num_columns=len(self.columns),
        )


def split_line(
    line: bytes,
    separator: int,
    *,
    has_comments: bool = True,
    has_quotes: bool = False,
    num_columns: int = 2,
) -> list[bytes]:
    """Cut one line into fields; an empty list for a blank line or a comment.

    A comment may follow behind ``num_columns`` fields.
    """
    line = line.rstrip(b"\r\n").strip(b" \t" if separator != 9 else b" ")
    if not line or (has_comments and line[:1] in (b"#", b"%")):
        return []
    if separator == BLANKS:
        fields = line.split()
        for k in range(num_columns, len(fields) if has_comments else 0):
            if fields[k][:1] in (b"#", b"%"):
                return fields[:k]
        return fields
    if has_quotes and b'"' in line:
        return _split_quoted(line, separator)
    return [field.strip(b" \t") for field in line.split(bytes([separator]))]


def _split_quoted(line: bytes, separator: int) -> list[bytes]:
    """Cut a CSV line in which some fields are quoted."""
    fields: list[bytes] = []
    field, is_quoted, k = b"", False, 0
    while k < len(line):
        byte = line[k : k + 1]
        if byte == b'"' and (is_quoted or not field.strip(b" \t")):  # else it is plain
            if is_quoted and line[k + 1 : k + 2] == b'"':
                field += byte
                k += 1
            else:
                is_quoted = not is_quoted
        elif byte == bytes([separator]) and not is_quoted:
            fields.append(field)
            field = b""
        else:
            field += byte
        k += 1
    return [item.strip(b" \t") for item in [*fields, field]]


def explain(line: bytes, layout: LineFormat) -> str:
    """Say what is wrong with a line: what was found, what was expected."""
    what = _explain(line, layout)
    fields = layout.split(line)
    if fields and is_total(fields[0].decode("utf-8", "replace")):
        blank = layout.separator == BLANKS
        end = line.strip().split(None if blank else bytes([layout.separator]), 1)[0]
        start = end.decode("utf-8", "replace") + (" " if blank else chr(layout.separator))
        if "'" not in start and len(fields) > 1:
            return (
                f"{what}; if it is a line of totals remove it, grep -v '^{start}' FILE > "
                "NEW, else correct the line, or pass --ids string if ids are names"
            )
    return what


def is_total(word: str) -> bool:
    """Tell whether a word says that its line sums up those above."""
    return re.sub(r"[-_ ]+", " ", word.strip(" :=*").lower()) in _TOTALS


def _explain(line: bytes, layout: LineFormat) -> str:
    fields = layout.split(line)
    expected = len(layout.columns)
    if layout.has_quotes and line.count(b'"') % 2:
        return explain_open_quote(line, layout.separator)
    if len(fields) != expected:
        return (
            f"found {len(fields)} column{'s' * (len(fields) != 1)}, expected {expected} "
            "as on "
            f"line {layout.first_line}: {show(line)}"
        )
    for field, column in zip(fields, layout.columns, strict=True):
        if (what := _explain_field(field, column, layout.separator)) is not None:
            return what
        if layout.keeps_zeros and column.kind == ID and has_lost_zeros(field):
            return (
                f"found {show(field)} as {column.title or column.name}, whose zeros in "
                "front an integer loses; pass --ids string to keep ids as written, or "
                "--ids int to read them as numbers"
            )
    return f"cannot be read: {show(line)}"


def explain_open_quote(line: bytes, separator: int) -> str:
    """Say of a line that a quoted field does not end on it, and what joins its lines."""
    mark = "" if separator == ord(",") else f", delimiter={chr(separator)!r}"
    read = f"csv.reader(sys.stdin,strict=True{mark})"
    join = "[[c.replace('\\n',' ') for c in r]for r in "
    return (
        f"a quoted field does not end on its line: {show(line)}; line feeds inside quotes "
        'are not read; put blanks in their place, python3 -c "import csv,sys;csv.writer('
        f'sys.stdout{mark}).writerows({join}{read}])" < FILE > NEW'
    )


def _explain_field(field: bytes, column: TextColumn, separator: int) -> str | None:
    """Say what is wrong with one field, or None."""
    if column.kind == SKIP:
        return None
    called = column.title or column.name
    if not field:
        if column.kind in (MAYBE, LABEL):
            return None
        expected = _EXPECTED.get(column.kind, "a name")
        if column.name.endswith("]"):
            expected += f"; {FILL_IN}"
        elif column.is_further:
            expected += THROUGHOUT
        return f"column {called} is empty, expected {expected}"
    if column.kind in (WORD, LABEL):
        return None
    if column.kind == MARK:
        return None if field == b"a" else f"found {show(field)}, expected the letter a"
    text = show(field)
    if column.kind in (NUMBER, MAYBE):
        if is_number(field) or (column.kind == MAYBE and is_missing(field)):
            return None
        remedy = decimal_remedy(field, separator)
        remedy = remedy or (THROUGHOUT if column.is_further else "")
        return f"found {text} as {called}, expected a number{remedy}"
    if is_integer(field) and (column.kind == INTEGER or field.isdigit()):
        return None
    expected = _EXPECTED[column.kind]
    if column.kind == INTEGER and column.is_further:
        expected += THROUGHOUT
    if column.kind == INTEGER and column.name == "time":
        expected += ", or dates throughout (ISO, such as 2024-05-01)"
        if is_date(field):
            expected += " (one of the first lines has a time that is missing or no date)"
    return f"found {text} as {called}, expected {expected}"


_MISSING: Final = -1


def read_alike(layouts: Sequence[LineFormat]) -> list[LineFormat]:
    """Give further columns of files one kind, which holds what each file has.

    Each file is guessed by its own first lines: of texts in one file, another may have
    some that look like numbers.

    Args:
        layouts: Of the files of one type, in order.
    """
    found: dict[str, set[int]] = {}
    for column in (it for layout in layouts for it in layout.columns):
        if column.kind in (INTEGER, MAYBE, LABEL) and column.name not in ("weight", "time"):
            kind = column.kind if column.is_told else _MISSING
            found.setdefault(column.name, set()).add(kind)
    chosen = {}
    for name, kinds in found.items():
        if LABEL in kinds or kinds == {_MISSING}:
            chosen[name] = LABEL
        else:  # numbers of which some are missing are no integers
            chosen[name] = INTEGER if kinds == {INTEGER} else MAYBE
    return [
        replace(
            layout,
            columns=tuple(
                replace(it, kind=chosen.get(it.name, it.kind))
                if it.kind in (INTEGER, MAYBE, LABEL)
                else it
                for it in layout.columns
            ),
        )
        for layout in layouts
    ]


def decimal_remedy(field: bytes, separator: int) -> str:
    """Return the command that writes a number with commas as a number, or nothing."""
    to_points, before, quoted = "s/,/./g", "([0-9])", ""
    if separator == ord(","):  # other commas separate fields: within quotes only
        before, quoted = '("[+-]?[0-9]+)', " and the field is in quotes"
        to_points = f's/{before},([0-9]+")/\\1.\\2/g'
    thousands = re.fullmatch(
        rb"[+-]?[1-9][0-9]{0,2}((,[0-9]{3})+)((\.[0-9]*)?)", field
    )  # which 0,125 has not
    if thousands:
        whole = (
            f"if commas separate thousands{quoted}, sed -E "
            f"':a;s/{before},([0-9]{{3}})/\\1\\2/;ta' FILE > NEW"
        )
        may_be_point = not quoted and len(thousands[1]) == 4 and not thousands[3]
        points = f"if commas are decimal points, sed -E '{to_points}' FILE > NEW; "
        return f"; {points if may_be_point else ''}{whole}"
    if re.fullmatch(rb"[+-]?[0-9]{1,3}(\.[0-9]{3})+,[0-9]+", field):
        return (
            "; if points separate thousands and commas are decimal points, sed -E "
            f"':a;s/{before}\\.([0-9]{{3}}[.,])/\\1\\2/;ta;{to_points}' FILE > NEW"
        )
    if re.fullmatch(rb"[+-]?[0-9]+,[0-9]+", field):
        return f"; if commas are decimal points, sed -E '{to_points}' FILE > NEW"
    return ""


def is_number(field: bytes) -> bool:
    """Tell whether a field is a finite or infinite number; NaN is not."""
    try:
        value = float(field)
    except ValueError:
        return False
    return value == value and b"_" not in field


def is_rounded(field: bytes) -> bool:
    """Tell whether a field is an integer that no float64 equals."""
    digits = field.removeprefix(b"-").removeprefix(b"+")
    return digits.isdigit() and 15 < len(digits) < 310 and int(field) != float(field)


def explain_rounded(field: bytes) -> str:
    """Say what to do with an integer that no float64 equals."""
    return (
        f"found the weight {show(field)}, an integer that float64 does not hold exactly; "
        "write it with .0 to have it rounded, or give int64 or uint64 in a Parquet file"
    )


def is_missing(field: bytes) -> bool:
    """Tell whether a field stands for a missing number."""
    return field.lower().decode("latin-1") in MISSING


def is_integer(field: bytes) -> bool:
    """Tell whether a field is an integer of 64 bits."""
    digits = field[1:] if field[:1] in (b"-", b"+") else field
    if not digits.isdigit() or len(digits.lstrip(b"0")) > 19:
        return False
    return int(digits.lstrip(b"0") or b"0") <= MAX_USER_ID


def has_lost_zeros(field: bytes) -> bool:
    """Tell whether an id of digits has zeros in front, which an integer loses."""
    return len(field) > 1 and field.startswith(b"0") and field.isdigit()


def as_count(field: bytes) -> int | None:
    """Return the number from 0 to 2**63 - 1 that digits stand for; None for others."""
    if not field.isdigit() or not is_integer(field):
        return None
    return int(field.lstrip(b"0") or b"0")  # Python limits the zeros in front, too


def show(text: bytes, limit: int = 60) -> str:
    """Quote bytes for a message, cut and on one line."""
    shown = text.rstrip(b"\r\n").decode("utf-8", "backslashreplace")
    return repr(shown if len(shown) <= limit else shown[:limit] + "...")
