"""Streams of decompressed bytes, and of text brought to UTF-8 and to line feeds."""

import codecs
from collections.abc import Callable
from typing import Any


class ByteStream:
    """Decompressed bytes, the place in the compressed ones, and what to close."""

    def __init__(self, file: Any, tell: Callable[[], int], closing: list[Any]) -> None:
        self.file = file
        self.tell = tell
        self._closing = closing

    def close(self) -> None:
        """Close what is open."""
        for item in self._closing:
            item.close()


class Recoded:
    """Text of some encoding, read as UTF-8."""

    def __init__(self, file: Any, encoding: str) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder(encoding)()

    def read(self, size: int) -> bytes:
        """Return about ``size`` bytes, none only at the end."""
        while True:
            piece = bytes(self._file.read(size))
            text = self._decoder.decode(piece, final=not piece)
            if text or not piece:
                return text.encode()


class LineFeeds:
    """Text whose lines end with a carriage return, read with line feeds."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes, none only at the end."""
        return bytes(self._file.read(size)).replace(b"\r", b"\n")
