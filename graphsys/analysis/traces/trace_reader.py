"""Reading Kineto and Chrome traces of any size, one event at a time.

A trace is an object with a list ``traceEvents`` among other keys, or the bare list; plain
or gzipped, told by its first bytes. Only a window of the text is held: events are decoded
one by one as they come.

Source: Trace Event Format, Google; PyTorch's Kineto adds ``deviceProperties``.
"""

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from graphsys.core.errors import InputError

_WINDOW = 1 << 20
_GZIP = b"\x1f\x8b"
_SPACE = " \t\r\n"
_LONGEST_WORD = len("-Infinity")


class TraceReader:
    """Yields the events of a trace; other keys are kept as they are met.

    Attributes:
        properties: Top-level values beside the events, as far as read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.properties: dict[str, Any] = {}
        self._text = ""
        self._at = 0
        self._file: TextIO
        self._decoder = json.JSONDecoder()

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield all events.

        Raises:
            InputError: the file is empty, cut short, or no trace; the message says where.
        """
        with self.path.open("rb") as raw:
            is_zipped = raw.read(2) == _GZIP
        opened = gzip.open if is_zipped else open
        try:
            with opened(self.path, "rt", encoding="utf-8") as file:
                self._file = file
                yield from self._read()
        except (EOFError, zlib.error, gzip.BadGzipFile) as err:
            raise InputError(
                f"{self.path}: cut short: its gzip stream ends early ({err}); record it "
                "again"
            ) from err
        except UnicodeDecodeError as err:
            raise self._foreign("is not text") from err

    def _read(self) -> Iterator[dict[str, Any]]:
        first = self._peek()
        if first == "":
            raise InputError(f"{self.path}: empty; record the trace again")
        if first == "[":
            yield from self._list()
        elif first == "{":
            yield from self._object()
        else:
            raise self._foreign(f"begins with {first!r}")

    def _object(self) -> Iterator[dict[str, Any]]:
        self._take("{")
        found = False
        while self._peek() != "}":
            key = self._value()
            if not isinstance(key, str):
                raise self._foreign(f"has a key {key!r}")
            self._take(":")
            if key == "traceEvents":
                found = True
                yield from self._list()
            else:
                self.properties[key] = self._value()
            if self._peek() == ",":
                self._take(",")
        if not found:
            keys = ", ".join(sorted(self.properties)[:5]) or "none"
            raise self._foreign(f"has no traceEvents (its keys: {keys})")

    def _list(self) -> Iterator[dict[str, Any]]:
        self._take("[")
        while self._peek() != "]":
            event = self._value()
            if not isinstance(event, dict):
                raise self._foreign(f"has {event!r} among its events")
            yield event
            if self._peek() == ",":
                self._take(",")
        self._take("]")

    # ---- the window

    def _more(self) -> bool:
        """Read on; drop what has been decoded. Return False at the end of the file."""
        chunk = self._file.read(max(_WINDOW, len(self._text) - self._at))
        self._text = self._text[self._at :] + chunk
        self._at = 0
        return bool(chunk)

    def _peek(self) -> str:
        while True:
            while self._at < len(self._text) and self._text[self._at] in _SPACE:
                self._at += 1
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def _take(self, wanted: str) -> None:
        found = self._peek()
        if found == "":
            raise self._short()
        if found != wanted:
            raise self._foreign(f"has {found!r} where {wanted!r} belongs")
        self._at += 1

    def _value(self) -> Any:
        if self._peek() == "":
            raise self._short()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError as err:
                # what is unfinished fails at its end, or where an open string begins
                left = len(self._text) - err.pos
                if left > _LONGEST_WORD and "Unterminated" not in err.msg:
                    raise self._foreign(f"is not JSON: {err.msg}") from err
                if not self._more():
                    raise self._short() from err
                continue
            if end < len(self._text) or not self._more():  # "12" may go on as "123"
                self._at = end
                return value

    def _short(self) -> InputError:
        return InputError(
            f"{self.path}: cut short: it ends inside its events; record it again, and let "
            "the profiler stop before the program ends"
        )

    def _foreign(self, what: str) -> InputError:
        return InputError(
            f"{self.path}: no Kineto or Chrome trace: it {what}; give what "
            "torch.profiler's export_chrome_trace wrote"
        )
