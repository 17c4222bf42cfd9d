"""Python's parser, by one thread at a time.

In CPython 3.11 two threads that parse can end in a SystemError ("AST constructor recursion
depth mismatch", python/cpython#106905): the parser's depth is one number for all of them.
"""

import ast
import threading
from typing import Final

PARSER: Final = threading.Lock()
"""Held by whoever parses Python, or has NumPy do so."""


def parse(text: str) -> ast.Module:
    """Parse statements; see :func:`ast.parse`.

    Args:
        text: The source.

    Raises:
        SyntaxError: it is none.
    """
    with PARSER:
        return ast.parse(text)
