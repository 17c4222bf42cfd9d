"""Patterns as text: ``"a-b b>c"``, ``"a:user-[likes]-b:item"``, ``"a!c"``."""

import re
from dataclasses import dataclass
from typing import Any, Final

_NODE: Final = r'(\w+)(?::("[^"]+"|[^\s"<>!\[\]-]+))?'
_LABEL: Final = r"\[([^\[\]]+)\]"
_WORD: Final = re.compile(
    rf"{_NODE}(?:(<)?-{_LABEL}-(>)?|(<->|->|<-|-|<|>|!)){_NODE}", re.ASCII
)
_ARROWS: Final = {"-": 0, "->": 1, ">": 1, "<-": -1, "<": -1, "<->": 2, "!": None}


@dataclass(frozen=True, slots=True)
class Word:
    """One edge of a pattern as it was written.

    Attributes:
        src: Name of the first node.
        dst: Name of the second.
        way: 1 from the first to the second, -1 back, 2 both, 0 either; None: no edge.
        label: What the edge must be called, or None.
        labels: What the two nodes must be called, or None each.
    """

    src: Any
    dst: Any
    way: int | None = 0
    label: str | None = None
    labels: tuple[str | None, str | None] = (None, None)


def words_of(text: str) -> list[Word] | None:
    """Read a pattern's text; None where a word is no edge.

    A word is two nodes and what is between them: ``-`` an edge, ``>`` or ``->`` one from
    the first to the second, ``<`` or ``<-`` one back, ``<->`` one each way, ``!`` none;
    ``-[label]-``, ``-[label]->`` and ``<-[label]-`` one of a label. A node is a name,
    ``a``, or a name and a label, ``a:user`` or ``a:"two words"``. Words end at blanks and
    commas.
    """
    words, place = [], 0
    text = text.strip(" \t\n,")
    while place < len(text):
        found = _WORD.match(text, place)
        if found is None or not _ends_word(text, found.end()):
            return None
        words.append(_word(found))
        place = found.end()
        while place < len(text) and text[place] in " \t\n,":
            place += 1
    return words


def _ends_word(text: str, place: int) -> bool:
    return place == len(text) or text[place] in " \t\n,"


def _word(found: "re.Match[str]") -> Word:
    src, src_label, back, label, forth, plain, dst, dst_label = found.groups()
    way = _ARROWS[plain] if plain else bool(forth) - bool(back)
    if back and forth:
        way = 2
    labels = tuple(it and it.strip('"') for it in (src_label, dst_label))
    return Word(src, dst, way, label, (labels[0], labels[1]))
