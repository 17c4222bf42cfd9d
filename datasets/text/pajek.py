"""Networks of Pajek: its sections as a NetworkX graph.

NetworkX's own reader takes ``*Arcslist``, ``*Edgeslist`` and named relations for plain
arcs, makes arcs undirected where edges follow, and one node of vertices of equal labels
(3.5; sections as in the manual of Pajek, "Network file format").
"""

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

_DEFAULT_WEIGHT = 1.0
"""Of a line without a value, as Pajek has it."""
_MOST_VERTICES = 20_000_000
"""Every vertex is made, named in a line or not: some gigabytes of NetworkX's."""


@dataclass(slots=True)
class _Network:
    """What the lines of a network say.

    Attributes:
        vertices: Attributes of each vertex by its number, ``label`` among them.
        arcs: Numbers of both ends and attributes, directed.
        edges: Likewise, undirected.
    """

    vertices: dict[int, dict[str, Any]] = field(default_factory=dict)
    arcs: list[tuple[int, int, dict[str, Any]]] = field(default_factory=list)
    edges: list[tuple[int, int, dict[str, Any]]] = field(default_factory=list)


def pajek_graph(nx: Any, content: bytes) -> Any:
    """Make a multigraph of a network: directed if it has arcs, with edges both ways.

    Args:
        nx: NetworkX.
        content: The file, UTF-8.

    Raises:
        ValueError: a line is none of a network, or names a vertex that does not exist.
    """
    network = _parse(content.decode("utf-8-sig"))
    labels = [vertex["label"] for vertex in network.vertices.values()]
    is_unique = max(Counter(labels).values(), default=1) == 1
    names = {
        number: vertex["label"] if is_unique else str(number)
        for number, vertex in network.vertices.items()
    }
    graph = nx.MultiDiGraph() if network.arcs else nx.MultiGraph()
    for number, vertex in network.vertices.items():
        kept = {key: it for key, it in vertex.items() if key != "label" or not is_unique}
        graph.add_node(names[number], **kept)
    ends = [*network.arcs, *network.edges]
    if network.arcs:
        ends += [(v, u, data) for u, v, data in network.edges if u != v]
    if any("weight" in data for *_, data in ends):
        ends = [(u, v, {"weight": _DEFAULT_WEIGHT} | data) for u, v, data in ends]
    for u, v, data in ends:
        if missing := [it for it in (u, v) if it not in names]:
            raise ValueError(f"vertex {missing[0]} of {len(names)} does not exist")
        graph.add_edge(names[u], names[v], **data)
    return graph


def _parse(text: str) -> _Network:
    network, section, relation, row = _Network(), "", "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("%"):
            continue
        try:
            if line.lstrip().startswith("*"):
                section, relation = _section(network, line)
                row = 0
                continue
            row += 1
            _add(network, section, relation, row, _words(line))
        except (ValueError, IndexError) as err:
            raise ValueError(f"line {number}, {line.strip()[:60]!r}: {err}") from err
    return network


def _words(line: str) -> list[str]:
    """Split a line at blanks outside quotes; an apostrophe within a word stays."""
    lexer = shlex.shlex(line, posix=True)
    lexer.whitespace_split, lexer.quotes = True, '"'
    lexer.commenters = lexer.escape = ""
    return list(lexer)


def _section(network: _Network, line: str) -> tuple[str, str]:
    """Return the section that a line begins, and the relation of its lines or nothing."""
    name, *rest = _words(line)
    section, colon, _ = name.lower().partition(":")
    if section == "*vertices":
        if network.vertices:
            raise ValueError("a second network, expected one in a file")
        count = int(rest[0])
        if not 0 <= count <= _MOST_VERTICES:
            raise ValueError(
                f"{count:,} vertices, expected {_MOST_VERTICES:,} at most, which NetworkX "
                "holds; write the arcs alone as an edge list"
            )
        network.vertices = {k: {"id": str(k), "label": str(k)} for k in range(1, count + 1)}
    known = ("*vertices", "*arcs", "*edges", "*arcslist", "*edgeslist", "*matrix")
    if section not in (*known, "*network"):
        raise ValueError(f"expected {', '.join(known)}")
    is_named = section not in ("*vertices", "*network") and (colon or rest)
    return section, (rest[-1] if rest else name) if is_named else ""


def _add(
    network: _Network, section: str, relation: str, row: int, words: Sequence[str]
) -> None:
    """Add what one line of a section says."""
    named: dict[str, Any] = {"relation": relation} if relation else {}
    into = network.edges if section.startswith("*edge") else network.arcs
    if section == "*vertices":
        if int(words[0]) not in network.vertices:
            raise ValueError(f"expected a number from 1 to {len(network.vertices)}")
        network.vertices[int(words[0])].update(_vertex(words))
    elif section in ("*arcslist", "*edgeslist"):
        into += [(int(words[0]), int(end), dict(named)) for end in words[1:]]
    elif section in ("*arcs", "*edges"):
        data = dict(zip(words[3::2], words[4::2], strict=False)) | named
        if len(words) > 2:
            data["weight"] = float(words[2])
        into.append((int(words[0]), int(words[1]), data))
    elif section == "*matrix":
        into += [
            (row, column, {"weight": weight} | named)
            for column, weight in enumerate(map(float, words), start=1)
            if weight
        ]
    else:
        raise ValueError("expected *Vertices first")


def _vertex(words: Sequence[str]) -> dict[str, Any]:
    """Return the attributes of a vertex: label, place and shape, and what follows."""
    found: dict[str, Any] = {"label": words[1]} if len(words) > 1 else {}
    try:
        x, y, shape = words[2:5]
        found |= {"x": float(x), "y": float(y), "shape": shape}
    except ValueError:
        pass  # not all of them stand there
    return found | dict(zip(words[5::2], words[6::2], strict=False))
