"""What counting patterns would do, in words and in Python."""

from collections.abc import Sequence
from typing import Any

from graphsys.datasets.temporary import GraphLike
from graphsys.mining.compiler.choose import choose_schedule, choose_together, tasks_of
from graphsys.mining.compiler.emit import kernel_text
from graphsys.mining.count_plan import check_induced, plan_count
from graphsys.mining.counting import WORTH_COMPILING
from graphsys.mining.disconnected import is_in_parts, lines_of
from graphsys.mining.labeled_graph import LabeledGraph
from graphsys.mining.pattern import Pattern
from graphsys.mining.simple_graph import SimpleGraph


def explain_count(
    graph: SimpleGraph | GraphLike,
    pattern: Pattern | str | Any,
    *,
    induced: str = "edge",
    labels: str | None = None,
) -> tuple[list[str], str]:
    """Say how a pattern would be counted in a graph.

    Returns:
        Lines of words: the way; where matches are found the order, what each step must
        fulfil, and what it is expected to cost. And the Python that would be compiled,
        empty where none is.

    Raises:
        ConfigError: as :func:`count`.
        UnknownNameError: as :func:`count`.
    """
    lines, text = explain_all(graph, [pattern], induced=induced, labels=labels)
    return lines[0], text[0]


def explain_all(
    graph: SimpleGraph | GraphLike,
    patterns: Sequence[Pattern | str | Any],
    *,
    induced: str = "edge",
    labels: str | None = None,
    memory: int | str | None = None,
    disconnected: bool = False,
) -> tuple[list[list[str]], list[str]]:
    """Say how patterns would be counted together; see :func:`explain_count`.

    ``memory`` and ``disconnected`` are as for :func:`count`.

    Returns:
        Of each pattern its lines; and its Python, the same of those that share loops.
    """
    shapes = [Pattern.of(it, disconnected=disconnected) for it in patterns]
    is_induced = induced == "vertex"
    check_induced(induced)
    lines, texts, asked = [], ["" for _ in shapes], []
    for k, shape in enumerate(shapes):
        if is_in_parts(shape):
            lines.append(lines_of(shape, is_induced=is_induced))
            continue
        plan = plan_count(shape, induced=induced)
        lines.append(plan.lines())
        asked += [k] if plan.way == "matches" else []
    plain = [k for k in asked if shapes[k].is_plain]
    chosen = {}
    if plain:
        some = [shapes[k] for k in plain]
        rows = SimpleGraph.of(graph, memory)
        chosen = dict(
            zip(plain, choose_together(rows, some, is_induced=is_induced), strict=True)
        )
    for k in set(asked) - set(plain):
        one = LabeledGraph.of(graph, shapes[k], labels, memory)
        chosen[k] = choose_schedule(
            one.rows, shapes[k], is_induced=is_induced, labels=one.labels
        )
    large = [k for k in asked if chosen[k].stepwise_cost >= WORTH_COMPILING]
    together = [k for k in large if k in plain]
    for k in asked:
        if k not in large:
            lines[k].append(f"cost {chosen[k].cost:.2g}: nothing is compiled for it")
            continue
        some_of = together if k in together else [k]
        lines[k] = ["loops compiled for it, the last node counted:", *chosen[k].lines()]
        texts[k] = kernel_text(tasks_of([chosen[other] for other in some_of]))[0]
    return lines, texts
