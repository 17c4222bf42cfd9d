"""How a run scores: the one place where rows become queries, candidates and scores.

A question gives a node and a relation and asks for the node at the other end. Ranking,
prediction and scoring all prepare the given node's row and the candidates' rows here, so
that afterwards a score is an inner product, or a distance.
"""

import numpy as np
import numpy.typing as npt

from graphsys.embedding.embeddings import Embeddings
from graphsys.embedding.model import RelationSet
from graphsys.kernels.cpu import embedding_operators as operators
from graphsys.kernels.cpu.embedding_math import normalise_rows
from graphsys.kernels.cpu.embedding_operators import (
    apply_operators,
    apply_operators_backward,
)

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Scorer:
    """Prepares the rows of one edge type, asked in one direction.

    Where it can, the operator moves to the query: queries of reciprocal relations and for
    sources have theirs there anyway; under the inner product the adjoint does it, and under
    distances a translation is undone. Only the rest transforms the candidates, relation
    by relation (``moves_candidates``).

    Args:
        run: The run.
        relations: The relations of the edge type.
        asks_for_dst: Whether the source is given, or the destination.
    """

    def __init__(self, run: Embeddings, relations: RelationSet, asks_for_dst: bool) -> None:
        self.run, self.relations, self.asks_for_dst = run, relations, asks_for_dst
        self.is_reciprocal = relations.num_sides == 2
        table = run.operators(relations)
        self.parameters = table[2 if self.is_reciprocal and not asks_for_dst else 0]
        self.comparator = run.config.comparator
        self.is_distance = self.comparator in ("l2", "squared_l2")
        codes = set(relations.codes.tolist())
        moves = {operators.IDENTITY} | (
            {operators.TRANSLATION} if self.is_distance else set()
        )
        self.acts_on_candidates = not self.is_reciprocal and asks_for_dst
        self.moves_candidates = (
            self.acts_on_candidates and self.comparator != "dot" and not codes <= moves
        )
        kind = relations.edge_type
        self.given_type = kind.src_type if asks_for_dst else kind.dst_type
        self.answer_type = kind.dst_type if asks_for_dst else kind.src_type

    def prepare_queries(self, nodes: Ints, relation: Ints) -> Floats:
        """Return what candidates are compared with, float32 ``[n, D]``.

        Args:
            nodes: Numbers of the nodes given ``[n]``.
            relation: Codes of the relations ``[n]``, equal ones side by side.
        """
        rows = self.run.take(self.given_type, nodes)
        if not self.acts_on_candidates:
            rows = self._operate(rows, relation)
        elif self.comparator == "dot":
            rows = self._adjoint(rows, relation)
        elif not self.moves_candidates:
            for r in np.unique(relation):  # identity or translation
                low, high = self.relations.offsets[r : r + 2]
                if high > low:
                    rows[relation == r] -= self.parameters[low:high]
        return self._normalise(rows)

    def prepare_candidates(self, rows: Floats, relation: Ints) -> Floats:
        """Return rows of answers as they are compared, float32 ``[n, D]``.

        Args:
            rows: Their rows ``[n, D]``; may be overwritten.
            relation: The relation asked with for each ``[n]``, equal ones side by side;
                plays a part only if ``moves_candidates``.
        """
        if self.moves_candidates:
            rows = self._operate(rows, relation)
        return self._normalise(rows)

    def constants(self, nodes: Ints, relation: Ints) -> Doubles:
        """Return what every score of a query has besides, float64 ``[n]``.

        Only where an adjoint stands for the operator: q.(Lx + b) is (L'q).x + q.b, and
        the operator of a zero row is b.
        """
        if not self.acts_on_candidates or self.comparator != "dot":
            return np.zeros(len(nodes), dtype=np.float64)
        rows = self.run.take(self.given_type, nodes)
        zero = self._operate(np.zeros_like(rows), relation)
        return _row_products(rows.astype(np.float64), zero.astype(np.float64))

    def scores(self, queries: Floats, candidates: Floats, constants: Doubles) -> Doubles:
        """Score prepared queries against prepared candidates, row by row, float64 ``[n]``.

        The score is the run's comparator: inner product, cosine, or minus the distance
        (squared or not).
        """
        left, right = queries.astype(np.float64), candidates.astype(np.float64)
        if not self.is_distance:
            return _row_products(left, right) + constants
        left -= right
        squares = _row_products(left, left)
        return np.asarray(-np.sqrt(squares) if self.comparator == "l2" else -squares)

    def _operate(self, rows: Floats, relation: Ints) -> Floats:
        result, model = np.empty_like(rows), self.relations
        apply_operators(model.codes, model.offsets, self.parameters, relation, rows, result)
        return result

    def _adjoint(self, rows: Floats, relation: Ints) -> Floats:
        result, model = np.empty_like(rows), self.relations
        apply_operators_backward(
            model.codes, model.offsets, self.parameters, relation, rows, rows, result,
            np.zeros_like(self.parameters),
        )  # fmt: skip
        return result

    def _normalise(self, rows: Floats) -> Floats:
        if self.comparator != "cos":
            return rows
        unit = np.empty_like(rows)
        normalise_rows(rows, unit, np.empty(len(rows), dtype=np.float32))
        return unit


def _row_products(left: Doubles, right: Doubles) -> Doubles:
    return np.asarray(np.einsum("ij,ij->i", left, right))
