"""Names that are likely none, or not the one they look like: watched over a whole file."""

import re
import unicodedata
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graphsys.core.caller_warnings import note
from graphsys.core.errors import InputError
from graphsys.datasets.roles import PAIRS
from graphsys.datasets.text.layout import TOTAL_WORD, is_number, is_total

_MISSING: Final = ["NA", "N/A", "#N/A", "nan", "NaN", "null", "NULL", "None"]
_HIDDEN: Final = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069"
    "\ufeff"
)
_BLANKS: Final = "\xa0\u1680\u2000-\u200a\u202f\u205f\u3000"
_JOINERS: Final = "\u200c\u200d"  # letters of Persian and of pictures, but not of Latin
_UNSEEN: Final = (
    f"[{_HIDDEN}\xa0]|[A-Za-z0-9][{_JOINERS}]|^[{_JOINERS}{_BLANKS}]|[{_JOINERS}{_BLANKS}]$"
)
_PARTS: Final = re.compile(f"[{_HIDDEN}{_JOINERS}{_BLANKS}]")
_MARKS: Final = r"[\p{M}\x{1100}-\x{11ff}]"
_HEADERS: Final = {
    (first, second) for first, second in PAIRS if len(first) > 1 and first != "start"
}
_FIRSTS: Final = sorted(
    {word for it, _ in _HEADERS for word in (it, it.upper(), it.capitalize())}
)
_COMMENT: Final = r"^(//|--|/\*|<!--|[;!*]$)"
_COMMENT_BYTES: Final = np.frombuffer(b"/-<;!*", dtype=np.uint8)
_INTEGER: Final = "^[0-9]{1,18}$"
_RESTS: Final = 1 << 20
_FEW: Final = 0.1
"""Share of rows up to which marks of comments are none of ids."""
_MOST_SHOWN: Final = 8
_MOST_LOOKED_AT: Final = 1000
_COMPOSE: Final = (
    "python3 -c \"import sys,unicodedata as u;[sys.stdout.write(u.normalize('NFC',s)) "
    'for s in sys.stdin]" < FILE > NEW'
)


class OddNames:
    """Watches the ends of edges, or the ids of nodes, where they are names.

    Counts words for a missing id, such as NA and null; names with letters that nobody
    sees, and names in decomposed letters (Unicode's form NFD), which are other nodes than
    what looks the same (Unicode Standard Annex 15); headers and comments behind the first
    lines, which are looked at before. Refuses totals below a table.

    Args:
        name: The file, for the message.
        is_open: Whether to look: not where the user says that ids are strings.
        what: What the names are, for the message.
    """

    def __init__(
        self, name: str, *, is_open: bool, what: str = "ends of edges are"
    ) -> None:
        self._name = name
        self._is_open = is_open
        self._what = what
        self._counts: dict[str, int] = {}
        self._headers: dict[tuple[str, str], int] = {}
        self._comments = _Count()
        self._num_rows = 0
        self._unseen = _Count()
        self._decomposed = _Count()
        self._letters: set[str] = set()
        self._last: tuple[str, ...] | None = None
        self._before = _Before()

    def add(self, *ends: Any, has_numbers: bool = False) -> None:
        """Take in names, Arrow dictionaries of strings ``[n]``; integers are passed by.

        Args:
            ends: Both ends of edges, or the ids of nodes.
            has_numbers: Nothing but numbers stands beside ids of nodes.
        """
        for ids in ends:
            if not self._is_open or not isinstance(ids, pa.DictionaryArray):
                return
            self._add_missing(ids)
            if not _is_plain(ids.dictionary):
                self._add_letters(ids)
        self._num_rows += len(ends[0])
        if len(ends) == 2:
            self._add_headers(*ends)
            if np.isin(_first_bytes(ends[0].dictionary), _COMMENT_BYTES).any():
                marked = pc.match_substring_regex(ends[0].dictionary, _COMMENT)
                self._comments.add(ends[0], marked)
        if len(ends[0]) and (len(ends) == 2 or has_numbers):
            self._last = _total(*ends)
            if self._last is not None and self._before.has_any(self._last):
                self._last = None
            self._before.add(*ends)

    def check(self, line_of: Callable[[], int]) -> None:
        """Refuse a last line of totals; say what else was found.

        Args:
            line_of: Returns the number of the last line with data.

        Raises:
            InputError: the last line begins with a word such as Total, that no other
                line has, and a number stands beside it.
        """
        if self._last is not None:
            line = line_of()
            raise InputError(
                f"{self._name}:{line}: the last line looks like totals or a count, "
                f"{' '.join(self._last)!r}; remove it, sed '{line}d' FILE > NEW, or pass "
                "--ids string if it is data"
            )
        for word, count in self._counts.items():
            self._warn(
                f"{count} {self._what} {word!r}, which is taken for a node; if it stands "
                f"for a missing id remove its lines, grep -vw '{word}' FILE > NEW, else "
                "pass --ids string"
            )
        for (first, second), count in self._headers.items():
            pattern = f"{re.escape(first)}[^[:alnum:]]+{re.escape(second)}"
            self._warn(
                f"{_rows(count)} {first!r}, {second!r}, as a header among the rows; if so "
                f"remove it, grep -vE '^\"?{pattern}' FILE > NEW, else pass "
                "--ids string"
            )
        if 0 < self._comments.count <= _FEW * self._num_rows:
            example = self._comments.example
            mark = re.match(_COMMENT, example)[0].replace("*", "[*]")  # type: ignore[index]
            self._warn(
                f"{self._comments.count} rows begin with a mark of comments, such as "
                f"{example!r}; if they are comments remove them, grep -v '^{mark}' FILE > "
                "NEW, else pass --ids string"
            )
        for found, what, remedy in (
            (self._unseen, "letters that are not seen", f"replace them, {self._sed()}"),
            (
                self._decomposed,
                "letters in parts (Unicode's NFD)",
                f"join them, {_COMPOSE}",
            ),
        ):
            if found.count:
                self._warn(
                    f"{found.count} {self._what} names with {what}, such as "
                    f"{visible(found.example)}: other nodes than the same names without; "
                    f"{remedy}, else pass --ids string"
                )

    def _warn(self, text: str) -> None:
        note(f"{self._name}: {text}")

    def _add_missing(self, ids: Any) -> None:
        missing = pa.array(_MISSING)  # made here: pyarrow's first array imports pandas
        found = pc.is_in(ids.dictionary, value_set=missing).to_numpy(zero_copy_only=False)
        codes = ids.indices.to_numpy(zero_copy_only=False)
        for code in np.flatnonzero(found).tolist():
            word = ids.dictionary[code].as_py()
            count = int((codes == code).sum())
            self._counts[word] = self._counts.get(word, 0) + count

    def _add_headers(self, src: Any, dst: Any) -> None:
        """Count rows whose ends are a known header, and stand nowhere else."""
        is_known = pc.is_in(src.dictionary, value_set=pa.array(_FIRSTS))
        for code in np.flatnonzero(is_known.to_numpy(zero_copy_only=False)).tolist():
            first = src.dictionary[code].as_py()
            rows = np.flatnonzero(src.indices.to_numpy(zero_copy_only=False) == code)
            seconds = {dst[int(row)].as_py() for row in rows[:_MOST_SHOWN]}
            if len(seconds) > 1 or _times(dst, first):
                continue
            second = seconds.pop()
            is_alone = _times(dst, second) == len(rows) and not _times(src, second)
            if (first.lower(), second.lower()) in _HEADERS and is_alone:
                key = first, second
                self._headers[key] = self._headers.get(key, 0) + len(rows)

    def _add_letters(self, ids: Any) -> None:
        names = ids.dictionary
        unseen = pc.match_substring_regex(names, _UNSEEN)
        if pc.any(unseen).as_py():
            self._unseen.add(ids, unseen)
            for name in names.filter(unseen).slice(0, _MOST_LOOKED_AT).to_pylist():
                self._letters |= set(_PARTS.findall(name))
        marked = pc.match_substring_regex(names, _MARKS)
        if pc.any(marked).as_py():  # only these may be decomposed: normalizing is slow
            composed = pc.utf8_normalize(names, "NFC")
            self._decomposed.add(ids, pc.and_(marked, pc.not_equal(composed, names)))

    def _sed(self) -> str:
        """Return the command that replaces the letters that were found."""
        blanks = re.compile(f"[{_BLANKS}]")
        parts = [
            f"s/{_escaped(it)}/{' ' if blanks.match(it) else ''}/g"
            for it in sorted(self._letters)[:_MOST_SHOWN]
        ]
        return f"LC_ALL=C sed '{'; '.join(parts)}' FILE > NEW"


class _Count:
    """How many names are odd, and the first of them."""

    def __init__(self) -> None:
        self.count = 0
        self.example = ""

    def add(self, ids: Any, is_odd: Any) -> None:
        odd = is_odd.to_numpy(zero_copy_only=False)
        if odd.any():
            codes = ids.indices.to_numpy(zero_copy_only=False)
            self.count += int(odd[codes].sum())
            self.example = self.example or ids.dictionary[int(odd.argmax())].as_py()


class _Before:
    """Which words of totals, and which integers, are names in the blocks so far.

    Integers are remembered by their rest modulo ``_RESTS``: one in a large file may be
    taken for another.
    """

    def __init__(self) -> None:
        self._words: set[str] = set()
        self._rests: npt.NDArray[np.bool_] = np.zeros(_RESTS, dtype=np.bool_)

    def add(self, *ends: Any) -> None:
        for ids in ends:
            names = ids.dictionary
            likely = names.filter(pc.match_substring_regex(names, TOTAL_WORD))
            self._words |= set(filter(is_total, likely.to_pylist()))
            integers = names.filter(pc.match_substring_regex(names, _INTEGER))
            values = pc.cast(integers, pa.int64()).to_numpy(zero_copy_only=False)
            self._rests[values % _RESTS] = True

    def has_any(self, found: tuple[str, ...]) -> bool:
        """Tell whether a word, or the number beside it, stood in a block before."""
        first, *others = found
        numbers = [int(it) for it in others if re.fullmatch(_INTEGER, it)]
        return first in self._words or any(self._rests[it % _RESTS] for it in numbers)


def _rows(count: int) -> str:
    return "1 row is" if count == 1 else f"{count} rows are"


def visible(text: str) -> str:
    r"""Quote a name with all letters that are not seen, or are parts, by their numbers.

    Examples:
        >>> visible("a\u200bu\u0308")
        "'a\\u200bu\\u0308'"
    """
    return "".join(
        f"\\u{ord(it):04x}" if unicodedata.combining(it) else it for it in repr(text)
    )


def _first_bytes(names: Any) -> npt.NDArray[np.uint8]:
    """Return the first byte of each name, of which none is empty."""
    _, offsets, data = names.buffers()
    size = np.int64 if pa.types.is_large_string(names.type) else np.int32
    if data is None or not data.size:
        return np.zeros(0, dtype=np.uint8)
    starts = np.frombuffer(offsets, dtype=size)[names.offset : names.offset + len(names)]
    letters: npt.NDArray[np.uint8] = np.frombuffer(data, dtype=np.uint8)
    firsts: npt.NDArray[np.uint8] = letters[np.minimum(starts, len(letters) - 1)]
    return firsts


def _is_plain(names: Any) -> bool:
    """Tell whether names are of ASCII without control characters."""
    data = names.buffers()[2]
    if data is None or not data.size:
        return True
    letters = np.frombuffer(data, dtype=np.int8)
    return bool(letters.min() >= 32 and letters.max() < 127)


def _escaped(letter: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in letter.encode())


def _total(*ends: Any) -> tuple[str, ...] | None:
    """Return the names of the last row where they are a word of totals and a number."""
    first, *others = found = tuple(ids[-1].as_py() for ids in ends)
    second = others[0] if others else ""
    if re.fullmatch(r"\([0-9]+", first) and re.fullmatch(r"rows?\)", second):
        return found
    is_count = is_number(second.replace(",", "").strip("%() ").encode())
    is_mark = not any(map(str.isalnum, second))
    if not is_total(first) or not (is_count or is_mark):
        return None
    once = found if is_count else found[:1]  # 7 is a node where it stands elsewhere, too
    is_once = all(sum(_times(ids, it) for ids in ends) == 1 for it in once)
    return found if is_once else None


def _times(ids: Any, name: str) -> int:
    """Return how often a name stands among names."""
    code = pc.index(ids.dictionary, pa.scalar(name, ids.dictionary.type)).as_py()
    return (
        0 if code < 0 else int((ids.indices.to_numpy(zero_copy_only=False) == code).sum())
    )
