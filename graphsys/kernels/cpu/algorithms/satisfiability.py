"""Steps on formulas in conjunctive normal form: unit propagation and local search.

Literal ``2 v`` is variable ``v`` and ``2 v + 1`` its negation. Clauses are rows of
literals, and each literal has a row of the clauses that it stands in.
"""

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.hashing import mix64
from graphsys.kernels.jit import inline_jit, jit

Ints = npt.NDArray[np.int64]


@jit
def propagate(
    clauses: Ints,
    literals: npt.NDArray[np.int32],
    places: Ints,
    clauses_of: npt.NDArray[np.int32],
    is_true: npt.NDArray[np.int8],
    is_satisfied: npt.NDArray[np.bool_],
    num_left: npt.NDArray[np.int32],
    queue: npt.NDArray[np.int32],
    num_queued: int,
) -> int:
    """Make literals true, and those that then stand alone in a clause.

    Args:
        clauses: Where each clause begins and the last ends, ``[C + 1]``.
        literals: Literals in order of clauses, ``[E]``.
        places: Where each literal's clauses begin and the last's end, ``[2 V + 1]``.
        clauses_of: Clauses in order of literals, ``[E]``.
        is_true: 1 true, 0 false, -1 open, of every variable ``[V]``; changed.
        is_satisfied: Whether a literal of the clause is true ``[C]``; changed.
        num_left: Open literals of each clause that is not ``[C]``; changed.
        queue: The literals, with room for as many more as there are clauses.
        num_queued: How many there are.

    Returns:
        A clause without a literal left, at which this ends, or -1.
    """
    done = 0
    while done < num_queued:
        literal = queue[done]
        done += 1
        variable, sign = literal >> 1, np.int8(1 - (literal & 1))
        if is_true[variable] >= 0:
            # Forced both ways; any of its clauses serves, as the caller asks for -1 or not.
            if is_true[variable] != sign:
                return int(clauses_of[places[literal]])
            continue
        is_true[variable] = sign
        # Its clauses need nothing more; of those with its negation each loses one open
        # literal.
        for k in range(places[literal], places[literal + 1]):
            is_satisfied[clauses_of[k]] = True
        other = literal ^ 1
        for k in range(places[other], places[other + 1]):
            clause = clauses_of[k]
            if is_satisfied[clause]:
                continue
            num_left[clause] -= 1
            if num_left[clause] == 0:
                return int(clause)
            # With one literal open the clause forces it: queued, not made true yet, as the
            # scan of this literal's clauses must end first.
            if num_left[clause] > 1:
                continue
            for j in range(clauses[clause], clauses[clause + 1]):
                if is_true[literals[j] >> 1] < 0:
                    queue[num_queued] = literals[j]
                    num_queued += 1
                    break
    return -1


@inline_jit
def _holds(literal: int, is_true: npt.NDArray[np.int8]) -> bool:
    return bool(is_true[literal >> 1] == 1 - (literal & 1))


@jit
def walk_sat(
    clauses: Ints,
    literals: npt.NDArray[np.int32],
    places: Ints,
    clauses_of: npt.NDArray[np.int32],
    is_true: npt.NDArray[np.int8],
    noise: float,
    most_flips: int,
    seed: np.uint64,
) -> int:
    """Flip variables of unsatisfied clauses until there are none.

    The variable that breaks the fewest clauses is flipped, but one at random with
    probability ``noise`` where each breaks some.

    Source: Selman, Kautz, Cohen, "Noise strategies for improving local search", AAAI 1994.

    Args:
        clauses: As of :func:`propagate`.
        literals: As of :func:`propagate`.
        places: As of :func:`propagate`.
        clauses_of: As of :func:`propagate`.
        is_true: 1 true, 0 false, of every variable ``[V]``; changed, to the last state.
        noise: In [0, 1].
        most_flips: When to give up.
        seed: Chooses clauses and variables.

    Returns:
        Clauses that are not satisfied.
    """
    num_clauses = len(clauses) - 1
    num_true = np.zeros(num_clauses, np.int32)
    broken = np.empty(num_clauses, np.int32)
    where = np.full(num_clauses, -1, np.int32)
    num_broken = 0
    for c in range(num_clauses):
        for j in range(clauses[c], clauses[c + 1]):
            num_true[c] += _holds(literals[j], is_true)
        if num_true[c] == 0:
            broken[num_broken], where[c] = c, num_broken
            num_broken += 1
    for flip in range(most_flips):
        if num_broken == 0:
            break
        word = mix64(seed ^ mix64(np.uint64(flip)))
        clause = broken[np.int64(word % np.uint64(num_broken))]
        begin, end = clauses[clause], clauses[clause + 1]
        # Breaks are clauses that the flip would leave without a true literal: those where
        # the literal that becomes false is the only true one.
        best, fewest = literals[begin], 1 << 60
        for j in range(begin, end):
            other = literals[j] ^ 1
            breaks = 0
            for k in range(places[other], places[other + 1]):
                breaks += num_true[clauses_of[k]] == 1
            if breaks < fewest:
                best, fewest = literals[j], breaks
        word = mix64(word)
        # A flip that breaks nothing is taken without noise, as the paper does.
        if fewest > 0 and np.float64(word >> np.uint64(11)) * 2.0**-53 < noise:
            best = literals[begin + np.int64(mix64(word) % np.uint64(end - begin))]
        is_true[best >> 1] ^= 1
        for k in range(places[best], places[best + 1]):
            c = clauses_of[k]
            num_true[c] += 1
            if num_true[c] == 1:
                num_broken -= 1
                # The last takes the gap, `where` is its place: removal costs O(1).
                last = broken[num_broken]
                broken[where[c]], where[last] = last, where[c]
                where[c] = -1
        for k in range(places[best ^ 1], places[(best ^ 1) + 1]):
            c = clauses_of[k]
            num_true[c] -= 1
            if num_true[c] == 0:
                broken[num_broken], where[c] = c, num_broken
                num_broken += 1
    return num_broken
