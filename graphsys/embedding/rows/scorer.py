"""How a run scores: the one place where rows become queries, candidates and scores.

A question gives a node and a relation and asks for the node at the other end. Ranking,
prediction and scoring all prepare the given node's row and the candidates' rows here, so
that afterwards a score is an inner product, or a distance.
"""

import numpy as np
import numpy.typing as npt

from graphsys.core.arrays import distinct
from graphsys.embedding.model import RelationSet
from graphsys.embedding.rows.trained_rows import TrainedEmbedding
from graphsys.embedding.spec.comparators import comparator_of
from graphsys.embedding.spec.operators import OperatorSpec
from graphsys.kernels.cpu.embedding.operators import (
    apply_operators,
    apply_operators_backward,
)
from graphsys.kernels.cpu.embedding.rank import (
    BIASED_DISTANCE,
    BIASED_SQUARES,
    DISTANCE,
    PAIRWISE,
    PRODUCT,
)
from graphsys.kernels.cpu.embedding.vector_math import normalize_rows

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Scorer:
    """Prepares the rows of one edge type, asked in one direction.

    Where it can, the operator moves to the query: queries of reciprocal relations and for
    sources have theirs there anyway; under the inner product the adjoint does it, under
    distances a translation is undone, and a rotation under these (but ``l1``) and the
    cosine. Only the rest transforms the candidates, relation by relation
    (``moves_candidates``), as all operators do under a comparator of another package.

    Where rows have a bias, that of the query is a constant; the first dimension of a
    prepared query is 1 under products, so that they add the candidate's, and else 0.

    Args:
        run: The run.
        relations: The relations of the edge type.
        asks_for_dst: Whether the source is given, or the destination.
    """

    def __init__(
        self, run: TrainedEmbedding, relations: RelationSet, asks_for_dst: bool
    ) -> None:
        self.run, self.relations, self.asks_for_dst = run, relations, asks_for_dst
        self.is_reciprocal = relations.num_sides == 2
        table = run.operators(relations)
        self.parameters = table[2 if self.is_reciprocal and not asks_for_dst else 0]
        self.comparator = comparator_of(run.config.comparator)
        self.is_distance = self.comparator.is_distance
        self.has_bias = run.config.bias
        self.form = PAIRWISE if self.comparator.is_pairwise else PRODUCT
        if self.is_distance:
            self.form = DISTANCE
            if self.has_bias:
                is_root = self.comparator.is_root
                self.form = BIASED_DISTANCE if is_root else BIASED_SQUARES
        self.acts_on_candidates = not self.is_reciprocal and asks_for_dst
        specs = {spec.name: spec for spec in relations.specs}.values()
        self.takes_adjoint = (
            self.acts_on_candidates
            and self.comparator.is_linear
            and all(spec.is_affine for spec in specs)
        )
        self.moves_candidates = (
            self.acts_on_candidates
            and not self.takes_adjoint
            and not all(map(self._is_undone, specs))
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
        elif self.takes_adjoint:
            return self._adjoint(self._with_first(rows), relation)
        elif not self.moves_candidates:
            rows = self._undo(rows, relation)
        return self._with_first(self._normalize(rows))

    def prepare_candidates(self, rows: Floats, relation: Ints) -> Floats:
        """Return rows of answers as they are compared, float32 ``[n, D]``.

        Args:
            rows: Their rows ``[n, D]``; may be overwritten.
            relation: The relation asked with for each ``[n]``, equal ones side by side;
                plays a part only if ``moves_candidates``.
        """
        if self.moves_candidates:
            rows = self._operate(rows, relation)
        return self._normalize(rows)

    def constants(self, nodes: Ints, relation: Ints) -> Doubles:
        """Return what every score of a query has besides, float64 ``[n]``.

        Its bias; and where an adjoint stands for the operator: q.(Lx + b) is
        (L'q).x + q.b, and the operator of a zero row is b. Of a translation that was
        undone the candidate's bias has the first dimension.
        """
        constants = np.zeros(len(nodes), dtype=np.float64)
        if not self.has_bias and not self.takes_adjoint:
            return constants
        rows = self.run.take(self.given_type, nodes)
        if not self.acts_on_candidates:
            rows = self._operate(rows, relation)
        if self.has_bias:
            constants += rows[:, 0]
        if self.acts_on_candidates and not self.moves_candidates:
            zero = self._operate(np.zeros_like(rows), relation).astype(np.float64)
            if self.takes_adjoint:
                rows = self._with_first(rows)
                constants += _row_products(rows.astype(np.float64), zero)
            else:
                constants += zero[:, 0]
        return constants

    def scores(self, queries: Floats, candidates: Floats, constants: Doubles) -> Doubles:
        """Score prepared queries against prepared candidates, row by row, float64 ``[n]``.

        The score is the run's comparator: inner product, cosine, or minus a distance, or
        another package's, and the biases.
        """
        if self.comparator.is_pairwise:
            own = self.comparator.score_pairs(queries, candidates, self.has_bias)
            return constants + own
        left, right = queries.astype(np.float64), candidates.astype(np.float64)
        if not self.is_distance:
            return _row_products(left, right) + constants
        if self.has_bias:
            constants = constants + right[:, 0]
            left, right = left[:, 1:], right[:, 1:]
        apart = left - right
        squares = _row_products(apart, apart)
        return constants - (np.sqrt(squares) if self.comparator.is_root else squares)

    def shifts(self, candidates: Floats) -> Floats:
        """Return what is subtracted from products with prepared candidates, ``[n]``.

        Then they are in the order of the scores, except in the form BIASED_DISTANCE,
        which takes the root of them.
        """
        if not self.is_distance:
            return np.zeros(len(candidates), dtype=np.float32)
        rest = candidates[:, int(self.has_bias) :]
        halves: Floats = 0.5 * np.einsum("ij,ij->i", rest, rest)
        return halves - 0.5 * candidates[:, 0] if self.form == BIASED_SQUARES else halves

    def score_all(self, queries: Floats, candidates: Floats) -> Floats:
        """Return what orders candidates as their scores do, float32 ``[B, K]``.

        Args:
            queries: Prepared, ``[B, D]``.
            candidates: Prepared, ``[K, D]``.
        """
        if self.comparator.is_pairwise:
            return self.comparator.score_all(queries, candidates, self.has_bias)
        products: Floats = queries @ candidates.T
        if self.form != BIASED_DISTANCE:
            products -= self.shifts(candidates)
            return products
        squares = np.einsum("ij,ij->i", queries, queries)[:, None]
        squares = squares + 2 * (self.shifts(candidates) - products)
        scores: Floats = candidates[:, 0] - np.sqrt(np.maximum(squares, 0))
        return scores

    def _is_undone(self, operator: OperatorSpec) -> bool:
        """Tell whether an operator on candidates can be undone on the query instead."""
        if operator.undone_by == "shift":
            return self.is_distance or self.comparator.metric == "sum"
        if operator.undone_by == "adjoint":  # turns all of a row, the bias among it
            is_kept = not self.comparator.is_pairwise or self.comparator.is_complex
            return is_kept and not self.has_bias
        return operator.undone_by == "identity"

    def _operate(self, rows: Floats, relation: Ints) -> Floats:
        result, model = np.empty_like(rows), self.relations
        apply_operators(
            model.kernel_codes, model.offsets, self.parameters, relation, rows, result
        )
        return result

    def _adjoint(self, rows: Floats, relation: Ints) -> Floats:
        result, model = np.empty_like(rows), self.relations
        apply_operators_backward(
            model.kernel_codes,
            model.offsets,
            self.parameters,
            relation,
            rows,
            rows,
            result,
            np.zeros_like(self.parameters),
        )
        return result

    def _undo(self, rows: Floats, relation: Ints) -> Floats:
        """Let queries meet candidates as if these had been translated or rotated."""
        result = self._adjoint(rows, relation)  # turns a rotation back
        for r in distinct(relation):
            low, high = self.relations.offsets[r : r + 2]
            if self.relations.specs[r].undone_by == "shift":
                result[relation == r] -= self.parameters[low:high]
        return result

    def _with_first(self, rows: Floats) -> Floats:
        if self.has_bias:
            rows[:, 0] = 1.0 if self.comparator.metric == "product" else 0.0
        return rows

    def _normalize(self, rows: Floats) -> Floats:
        if not self.comparator.is_unit:
            return rows
        first = int(self.has_bias)
        rest, unit = np.ascontiguousarray(rows[:, first:]), np.array(rows)
        normalize_rows(rest, rest, np.empty(len(rows), dtype=np.float32))
        unit[:, first:] = rest
        return unit


def _row_products(left: Doubles, right: Doubles) -> Doubles:
    return np.asarray(np.einsum("ij,ij->i", left, right))
