"""Texts of our files that a user may read, and what is printed of each."""

import ast
import re
from collections.abc import Iterator

from graphsys.core.compiling import parse

DECLARES = ("examples", "option")
"""Functions of the command line whose texts are help."""
SHORTEST = 8
"""Letters of a text, without what is filled in, that tell it from others."""


def texts(tree: ast.Module) -> Iterator[tuple[str, re.Pattern[str]]]:
    """Yield texts of sentences, and patterns of what is printed of them.

    No docstrings, no declarations of options, no help or examples in it.
    """
    left_out = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in ("help", "metavar", "epilog"):
            left_out |= {id(it) for it in ast.walk(node.value)}
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            left_out.add(id(node.value))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in DECLARES:
            left_out |= {id(it) for it in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            left_out |= {id(it) for it in node.values}
    for node in ast.walk(tree):
        if id(node) in left_out:
            continue
        parts: list[ast.expr] = []
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            parts = [node]
        elif isinstance(node, ast.JoinedStr):
            parts = node.values
        words = [str(it.value) if isinstance(it, ast.Constant) else "\0" for it in parts]
        text = " ".join(it for it in words if it != "\0")
        if " " in text.strip():
            yield text, re.compile("".join(map(_filled, words)))


def _filled(word: str) -> str:
    """Return the pattern of a part of a text: for ``{names}`` stands anything."""
    parts = re.split(r"\0|\{\w+\}", re.sub(r" *\n\s*", " ", word))
    return ".*?".join(map(re.escape, parts))


def is_told(said: str, remedy: str, source: str) -> bool:
    """Whether a text of a file that names a remedy is in what was printed.

    Args:
        said: What was printed, on one line.
        remedy: What is looked for.
        source: The file's content.
    """
    line = f"{said} "  # a text may end in a line break
    return any(
        remedy in text and len(text) >= SHORTEST and pattern.search(line)
        for text, pattern in texts(parse(source))
    )
