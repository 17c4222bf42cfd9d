"""Random formulas in conjunctive normal form, as graphs of clauses and variables.

References:
    Mitchell, Selman, Levesque, "Hard and easy distributions of SAT problems", AAAI 1992.
"""

import numpy as np

from graphsys.core.errors import ConfigError
from graphsys.datasets.generators.drawn import (
    CHUNK_ROWS,
    MAX_NODES,
    DrawnSource,
    Piece,
    check_integers,
    plain_nodes,
)
from graphsys.datasets.generators.draws import Draws
from graphsys.storage.source import EdgeChunk

_MAX_LENGTH = 16


def ksat(
    num_variables: int = 10000,
    ratio: float = 4.0,
    *,
    k: int = 3,
    seed: int = 0,
    chunk_rows: int = CHUNK_ROWS,
    num_threads: int | None = None,
) -> DrawnSource:
    """Make a random formula whose clauses have k different variables each.

    Variables are the first nodes, clauses the others; edges lead from clauses to variables
    with weight 1, or -1 where the variable is negated (as of a file read as ``cnf``, but
    numbered from 0). Of three variables a clause, almost all formulas have solutions below
    4.26 clauses a variable and almost none above.

    Args:
        num_variables: Variables.
        ratio: Clauses for each variable.
        k: Variables of a clause, at most 16.
        seed: Another seed, another formula.
        chunk_rows: Rows made at once; does not change them.
        num_threads: Threads; do not change the formula either.

    Raises:
        ConfigError: a value is out of range.
    """
    check_integers(
        "ksat",
        ("num_variables", num_variables, 1, MAX_NODES),
        ("k", k, 1, min(_MAX_LENGTH, num_variables)),
    )
    if not 0 < ratio < MAX_NODES / num_variables:
        raise ConfigError(f"ksat.ratio: got {ratio}, expected a number above 0")
    num_clauses = int(num_variables * ratio)
    picks = [Draws(f"ksat:{seed}:{place}") for place in range(k)]
    signs = Draws(f"ksat:{seed}:sign")

    def edges(first: int, last: int) -> list[EdgeChunk]:
        size = last - first
        chosen = np.empty((size, 0), dtype=np.int64)
        for place, draws in enumerate(picks):
            new = draws.integers(size, num_variables - place, first)
            for column in range(place):  # ascending: steps over those taken
                new += new >= chosen[:, column]
            chosen = np.sort(np.column_stack([chosen, new]), axis=1)
        clause = np.arange(first, last, dtype=np.int64) + num_variables
        weight = 2 * signs.integers(size * k, 2, first * k).astype(np.int8) - 1
        columns = {"weight": weight}
        return [EdgeChunk(src=np.repeat(clause, k), dst=chosen.ravel(), columns=columns)]

    return DrawnSource(
        f"ksat(num_variables={num_variables}, ratio={ratio}, k={k}, seed={seed})",
        [plain_nodes(num_variables + num_clauses), Piece(num_clauses, edges)],
        is_directed=True,
        chunk_rows=chunk_rows,
        num_threads=num_threads,
    )
