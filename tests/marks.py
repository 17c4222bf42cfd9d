"""Parameters of a test of which some only run with ``scripts/check --all``."""

from collections.abc import Iterable
from typing import Any

import pytest


def slow_but(kept: Iterable[Any], values: Iterable[Any]) -> list[Any]:
    """Return values as parameters, marked slow but for those that CI runs too."""
    chosen = list(kept)
    return [
        it if it in chosen else pytest.param(it, marks=pytest.mark.slow) for it in values
    ]
