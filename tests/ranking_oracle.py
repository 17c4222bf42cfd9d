"""Ranks by plain Python over sets, in float64: what evaluation is compared with."""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from graphsys.core.types import EdgeType
from graphsys.embedding import Embeddings
from graphsys.storage import Graph
from tests.embedding_codes import OPERATOR_CODES


def triples(graph: Graph, kind: EdgeType, split: str) -> list[tuple[int, int, int]]:
    """Return a split's edges as (source, relation, destination) numbers."""
    found = []
    src_offsets, dst_offsets = graph.offsets(kind.src_type), graph.offsets(kind.dst_type)
    for i, j in np.argwhere(graph.bucket_counts(kind, split)):
        bucket = graph.bucket(kind, i, j, split)
        relation = bucket.relation if bucket.relation is not None else [0] * len(bucket.src)
        for s, r, d in zip(bucket.src, relation, bucket.dst, strict=True):
            found.append((int(s + src_offsets[i]), int(r), int(d + dst_offsets[j])))
    return found


def operate(code: int, p: np.ndarray[Any, Any], x: np.ndarray[Any, Any]) -> Any:
    half = x.shape[-1] // 2
    if code == OPERATOR_CODES["translation"]:
        return x + p
    if code == OPERATOR_CODES["diagonal"]:
        return x * p
    if code == OPERATOR_CODES["linear"]:
        return x @ p.reshape(x.shape[-1], -1).T
    if code == OPERATOR_CODES["affine"]:
        square = x.shape[-1] ** 2
        return x @ p[:square].reshape(x.shape[-1], -1).T + p[square:]
    if code == OPERATOR_CODES["rotation"]:
        z = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * p)
        return np.concatenate([z.real, z.imag], axis=-1)
    if code == OPERATOR_CODES["complex_diagonal"]:
        z = (x[..., :half] + 1j * x[..., half:]) * (p[:half] + 1j * p[half:])
        return np.concatenate([z.real, z.imag], axis=-1)
    return x


def compare(comparator: str, q: Any, c: Any, bias: bool = False) -> Any:
    if bias:
        # at 0, a bias is no part of a distance; halves of complex rows stay halves
        rest = compare(comparator, np.r_[0, q[1:]], np.c_[np.zeros(len(c)), c[:, 1:]])
        rest = -(rest**2) if comparator == "squared_l2" else rest
        return q[0] + c[:, 0] + rest
    if comparator == "dot":
        return c @ q
    if comparator == "cos":
        return c @ q / np.linalg.norm(c, axis=1) / np.linalg.norm(q)
    if comparator == "l1":
        return -np.abs(c - q).sum(axis=1)
    if comparator == "complex_l1":
        real, imaginary = np.split(c - q, 2, axis=1)
        return -np.hypot(real, imaginary).sum(axis=1)
    return -np.linalg.norm(c - q, axis=1)  # squares are in the same order


def answers(known: set[tuple[int, int, int]], given: int, r: int, at: int) -> set[int]:
    """Return the nodes that stand at one end of known edges with a node and relation."""
    return {edge[at] for edge in known if edge[2 - at] == given and edge[1] == r}


class Asked(NamedTuple):
    """One question about a held-out edge, and what is right about it."""

    edge_type: str
    relation: str
    side: str
    filtered: float
    raw: float
    degree: int
    positive: float
    wrong: list[float]


def ask_all(
    run: Embeddings, split: str, candidates: Mapping[str, Collection[int]] | None = None
) -> list[Asked]:
    """Ask for both ends of every edge, among all nodes or some of each type."""
    graph, comparator, found = run.graph, run.config.comparator, []
    bias = run.config.bias
    degrees: dict[str, Counter[int]] = {name: Counter() for name in graph.node_types}
    for model in run.model:
        kind = model.edge_type
        for s, _, d in triples(graph, kind, graph.default_split(kind)):
            degrees[kind.src_type][s] += 1
            degrees[kind.dst_type][d] += 1
    for model in run.model:
        kind = model.edge_type
        table = run.operators(model).astype(np.float64)
        src_x, dst_x = (
            run.take(t, np.arange(graph.num_nodes_of(t))).astype(np.float64)
            for t in (kind.src_type, kind.dst_type)
        )
        known = {e for name in graph.splits(kind) for e in triples(graph, kind, name)}
        if not graph.is_directed_type(kind):
            known |= {(d, r, s) for s, r, d in known}
        if split not in graph.splits(kind):
            continue
        for s, r, d in triples(graph, kind, split):
            span = slice(model.offsets[r], model.offsets[r + 1])
            code = int(model.codes[r])
            if model.num_sides == 2:
                tails = compare(
                    comparator, operate(code, table[0, span], src_x[s]), dst_x, bias
                )
                heads = compare(
                    comparator, operate(code, table[2, span], dst_x[d]), src_x, bias
                )
            else:
                moved = operate(code, table[0, span], dst_x)
                tails = compare(comparator, src_x[s], moved, bias)
                heads = compare(comparator, moved[d], src_x, bias)
            for side, scores, own, node_type, right in (
                ("tail", tails, d, kind.dst_type, answers(known, s, r, 2)),
                ("head", heads, s, kind.src_type, answers(known, d, r, 0)),
            ):
                pool = range(len(scores)) if candidates is None else candidates[node_type]
                others = [x for x in pool if x != own]
                wrong = [x for x in others if x not in right]
                ranks = []
                for kept in (scores[wrong], scores[others]):
                    equal = np.isclose(kept, scores[own], rtol=1e-9, atol=1e-9)
                    better = (kept > scores[own]) & ~equal
                    ranks.append(1 + better.sum() + equal.sum() / 2)
                found.append(
                    Asked(
                        model.name,
                        model.relations[r],
                        side,
                        ranks[0],
                        ranks[1],
                        degrees[node_type][own],
                        float(scores[own]),
                        scores[wrong].tolist(),
                    )
                )
    return found


def means(asked: Collection[Asked], field: str = "filtered") -> dict[str, float]:
    """Average ranks."""
    ranks = np.array([getattr(one, field) for one in asked], dtype=np.float64)
    hits = {f"hits@{k}": float(np.mean(ranks <= k)) for k in (1, 3, 10)}
    return {"mrr": float(np.mean(1 / ranks)), "mr": float(np.mean(ranks))} | hits
