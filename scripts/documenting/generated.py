"""Pages made of the code: the API, the command line, the list of algorithms."""

import ast
import importlib
import importlib.util
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import typer

from graphsys.cli.help_pages.algorithms import sections_of
from graphsys.cli.main import app
from graphsys.core.errors import GraphsysError, MissingDependencyError
from graphsys.core.memory import format_bytes
from graphsys.engine.algorithms import ALGORITHMS, Algorithm
from graphsys.planning.sized_graph import SizedGraph, sized_topology

SMALL, LARGE = 20, 23
"""Powers of two: nodes of the graphs that memory is asked for; the process is in both."""
DEGREE = 16


@dataclass(frozen=True)
class Module:
    """A module whose public names get a page."""

    title: str
    path: str
    what: str

    @property
    def page(self) -> str:
        return f"reference/python/{self.title.replace('.', '_')}.md"


MODULES = (
    Module("graphsys", "graphsys", "Graphs, programs, runs and profiles."),
    Module("algorithms", "graphsys.engine.algorithms", "What `gs.algorithms` has."),
    Module("datasets", "graphsys.datasets", "Readers, recipes and generators."),
    Module("embedding", "graphsys.embedding", "Embeddings, trained and asked."),
    Module("gnn", "graphsys.gnn", "Graph neural networks, trained and asked."),
    Module("mining", "graphsys.mining", "Patterns, counted and listed."),
    Module("sampling", "graphsys.sampling", "Samplers that return blocks of numpy arrays."),
    Module("partitioners", "graphsys.partitioners", "Who lives where."),
    Module("interop.pyg", "graphsys.interop.pyg", "PyTorch Geometric over a store."),
    Module("interop.dgl", "graphsys.interop.dgl", "DGL over a store."),
    Module("planning", "graphsys.planning", "What a graph would take."),
    Module("tuning", "graphsys.tuning", "Settings that are searched."),
)


def pages() -> dict[str, str]:
    """Return the text of every generated page."""
    found = {module.page: module_page(module) for module in MODULES}
    found["reference/index.md"] = index()
    found["reference/algorithms.md"] = algorithms_page()
    found["reference/command_line.md"] = command_line()
    return found


def index() -> str:
    """Return the page that leads to the others."""
    rows = "".join(
        f"| [{it.title}]({it.page.removeprefix('reference/')}) | {it.what} |\n"
        for it in MODULES
    )
    return (
        "# Reference\n\nGenerated from the code at every build.\n\n"
        "- [Algorithms](algorithms.md): cost and memory of each\n"
        "- [The command line](command_line.md): every verb and option\n"
        "- Settings of [embeddings](settings_embedding.md) and of "
        f"[networks](settings_gnn.md)\n\n| Python | |\n| --- | --- |\n{rows}"
    )


def public_names(path: str) -> list[str]:
    """Return what a module exports of ours: classes, functions, and values like them.

    Of a module whose library is not installed, what its source lists: mkdocstrings reads
    sources, too.
    """
    try:
        module = importlib.import_module(path)
    except MissingDependencyError:
        return listed_names(path)
    names = getattr(module, "__all__", None) or sorted(vars(module))
    found = []
    for name in names:
        thing = getattr(module, name)
        if name.startswith("_") or isinstance(thing, ModuleType):
            continue
        is_code = inspect.isclass(thing) or inspect.isroutine(thing)
        made_by = thing if is_code else type(thing)
        known = getattr(thing, "__name__", name)
        is_twin = known != name and known in names  # a name of before
        if made_by.__module__.startswith("graphsys") and not is_twin:
            found.append(name)
    return found


def listed_names(path: str) -> list[str]:
    """Return the ``__all__`` of a module without importing it."""
    spec = importlib.util.find_spec(path)
    assert spec is not None
    assert spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_text())
    values = (
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    return list(ast.literal_eval(next(values)))


def module_page(module: Module) -> str:
    """Return the page of a module: mkdocstrings writes what stands behind each name."""
    names = public_names(module.path)
    entries = "\n\n".join(f"::: {module.path}.{name}" for name in names)
    shown = module.path if module.path != "graphsys.engine.algorithms" else "gs.algorithms"
    return f"# `{shown}`\n\n{module.what}\n\n{entries}\n"


def algorithms_page() -> str:
    """Return the page of all listed algorithms."""
    rows = "".join(
        f"| [`{it.name}`](#{it.name}) | {_cell(it.summary)} | {_ways(it)} | "
        f"{_cell(_section(it, 'Complexity'))} | {memory_of(it)} |\n"
        for it in ALGORITHMS.values()
    )
    parts = "\n".join(_algorithm(it) for it in ALGORITHMS.values())
    return (
        "# Algorithms\n\n"
        "Every algorithm of `graphsys run` and `gs.algorithms`. N is the number of nodes, "
        "E of edges.\n\n"
        f"*Memory* is what the plan of a run counts for each node of a directed graph with "
        f"{DEGREE} edges a node. The rows lie in a store of one partition, the process "
        "itself and mapped pages are left out. `--explain` says it of your graph, and "
        "`--memory` keeps to less: see [how](../howto/keep_to_a_budget.md).\n\n"
        "| name | what | runs as | cost | memory |\n| --- | --- | --- | --- | --- |\n"
        f"{rows}\n{parts}"
    )


def _algorithm(algorithm: Algorithm) -> str:
    function = algorithm.function
    sections = sections_of(function)
    keywords = inspect.signature(function).parameters.values()
    given = [it for it in keywords if it.kind is inspect.Parameter.KEYWORD_ONLY]
    parameters = ", ".join(f"`{_shown(it)}`" for it in given) or "none"
    return (
        f"## {algorithm.name}\n\n{_marked(sections[''])}\n\n"
        f"Parameters: {parameters}. "
        f"[All of it](python/algorithms.md#graphsys.engine.algorithms.{algorithm.name}).\n"
        f"\n```python\n{_example(sections.get('Example', ''))}\n```\n"
    )


def _shown(parameter: inspect.Parameter) -> str:
    if parameter.default is inspect.Parameter.empty:
        return parameter.name
    return f"{parameter.name}={parameter.default!r}"


def _example(section: str) -> str:
    return "\n".join(line.removeprefix("    ") for line in section.splitlines())


def _ways(algorithm: Algorithm) -> str:
    ways = ["native"] * (algorithm.native is not None) + ["program"] * bool(
        algorithm.program
    )
    return ", ".join(ways)


def _section(algorithm: Algorithm, heading: str) -> str:
    return " ".join(sections_of(algorithm.function).get(heading, "").split())


def memory_of(algorithm: Algorithm) -> str:
    """Return the bytes a node that a plan counts, as the difference of two sizes."""
    try:
        small, large = (_planned(algorithm, 2**power) for power in (SMALL, LARGE))
    except GraphsysError:
        return "as its cost says"
    per_node = (large - small) / (2**LARGE - 2**SMALL)
    return f"{format_bytes(round(per_node))} a node"


def _planned(algorithm: Algorithm, num_nodes: int) -> int:
    topology = sized_topology(SizedGraph(num_nodes, num_nodes * DEGREE))
    return algorithm.prepare(topology, **algorithm.example.parameters).choice.needed


def command_line() -> str:
    """Return the page of all verbs and their options."""
    head = (
        "# The command line\n\nResults go to stdout (`--json`: one JSON object), progress "
        "and warnings to stderr. Exit codes: 0 done, 1 failed, 2 bad input, 130 Ctrl-C.\n"
    )
    return "\n".join([head, *(_verb(path, command) for path, command in verbs())])


def verbs() -> Iterator[tuple[str, Any]]:
    """Yield every verb with its words."""
    pending = [("graphsys", typer.main.get_command(app))]
    while pending:
        path, command = pending.pop(0)
        below = getattr(command, "commands", {})
        if not below:
            yield path, command
        shown = [(f"{path} {name}", it) for name, it in below.items() if not it.hidden]
        pending = shown + pending


def _verb(path: str, command: Any) -> str:
    context = command.context_class(command, info_name=path)
    panels: dict[str, list[tuple[str, str]]] = {}
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            panel = getattr(parameter, "rich_help_panel", None) or "Options"
            is_argument = parameter.param_type_name == "argument"
            panels.setdefault("Arguments" if is_argument else panel, []).append(record)
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [f"## {path}\n", f"{_marked(command.help or '')}\n"]
    lines += [f"```\n{path} {usage}\n```\n"]
    for panel, rows in panels.items():
        lines.append(f"| {panel} | |\n| --- | --- |")
        lines += [
            f"| `{name.partition(' <')[0].replace('|', ' or ')}` | {_cell(text)} |"
            for name, text in rows
        ]
        lines.append("")
    if command.epilog:
        lines.append(f"```text\n{inspect.cleandoc(command.epilog)}\n```\n")
    return "\n".join(lines)


def _marked(text: str) -> str:
    """Return a docstring's text as Markdown."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", inspect.cleandoc(text))
    return text.replace("``", "`").replace("\f", "").replace("\b", "")


def _cell(text: str) -> str:
    """Return text as a cell of a table."""
    flat = " ".join(_marked(text).split()).replace("|", "\\|")
    return flat.replace("<", "&lt;").replace("*", "\\*").replace("[", "\\[")
