"""The tree: what the top level holds, how large a folder and a file may be, the map."""

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.conftest import ROOT

TOP = {
    "pyproject.toml",
    "constraints.txt",
    "README.md",
    "LICENSE",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "DEVELOPERS.md",
    "graphsys",
    "datasets",
    "partitioners",
    "tests",
    "scripts",
    ".ci",
    ".github",
    ".gitignore",
    ".pre-commit-config.yaml",
}


def test_the_top_level_is_the_agreed_one() -> None:
    if not (ROOT / ".git").exists():
        found = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")}
        found -= {"graphsys.egg-info", "build", "dist"}
        assert found <= TOP
        return
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert {name.split("/")[0] for name in listed.stdout.splitlines()} == TOP


MOST_FILES = 25
MOST_LINES = 600


def sources() -> list[Path]:
    """Return the Python files of the package and of the rooms mounted in it."""
    rooms = [ROOT / room for room in ("graphsys", "datasets", "partitioners")]
    found = [path for room in rooms for path in sorted(room.rglob("*.py"))]
    mounted = [ROOT / "graphsys" / room for room in ("datasets", "partitioners")]
    return [path for path in found if not any(path.is_relative_to(m) for m in mounted)]


def test_a_folder_can_be_seen_at_a_glance() -> None:
    counts = Counter(str(path.parent.relative_to(ROOT)) for path in sources())
    assert {folder: n for folder, n in counts.items() if n > MOST_FILES} == {}


def test_a_file_can_be_read_in_one_sitting() -> None:
    lines = {str(p.relative_to(ROOT)): len(p.read_text().splitlines()) for p in sources()}
    assert {name: n for name, n in lines.items() if n > MOST_LINES} == {}


MOST_BODY_LINES = 60
LONG = "# long: "
"""Begins the comment above a longer function that says why it is."""


def test_a_function_is_short_or_says_why_not() -> None:
    for path in sources():
        lines = path.read_text().splitlines()
        for node in ast.walk(ast.parse("\n".join(lines))):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            first = node.body[1:] if ast.get_docstring(node) else node.body
            size = (node.end_lineno or 0) - first[0].lineno + 1 if first else 0
            head = min([node.lineno, *(it.lineno for it in node.decorator_list)])
            says_why = lines[head - 2].lstrip().startswith(LONG)
            assert says_why == (size > MOST_BODY_LINES), f"{path}:{node.name}, {size} lines"


def test_every_package_says_what_it_holds() -> None:
    for path in sources():
        if path.name == "__init__.py":
            said = ast.get_docstring(ast.parse(path.read_text())) or ""
            assert len(said.split()) >= 3, path


def test_what_the_map_names_exists() -> None:
    text = (ROOT / "DEVELOPERS.md").read_text()
    named = re.findall(r"`((?:graphsys|datasets|tests|scripts)/[\w/.]*)(?::(\w+))?`", text)
    assert len([place for place in named if place[1]]) > 40
    for path, name in named:
        assert (ROOT / path).exists(), path
        if name:
            found = re.search(rf"^ *(def|class) {name}\b", (ROOT / path).read_text(), re.M)
            assert found, f"{path} has no {name}"


def test_what_is_mutated_and_its_tests_exist() -> None:
    text = (ROOT / "scripts" / "mutating" / "targets.py").read_text()
    named = re.findall(r'"(graphsys/[\w/]+\.py)"', text)
    named += [f"tests/unit/{name}" for name in re.findall(r"\{_UNIT\}/([\w/]+\.py)", text)]
    assert len(named) > 20
    assert {name for name in named if not (ROOT / name).exists()} == set()


SMALL = 60
ALONE = {
    "a verb, loaded when it is called": {
        "graphsys.cli.deltas.compact",
        "graphsys.cli.plot",
        "graphsys.cli.verify",
    },
    "one of a registry's entries, each in a file": {
        "graphsys.gnn.models.layers.gin",
        "graphsys.gnn.models.layers.pinsage",
        "graphsys.partitioners.hash",
        "graphsys.partitioners.metis",
        "graphsys.partitioners.random",
        "graphsys.partitioners.range",
    },
    "Triton, loaded where there is a device": {"graphsys.kernels.cuda.gnn.features"},
    "the page's pictures are kept by its files": {"graphsys.analysis.page.copies"},
}
"""Modules of :data:`SMALL` lines at most that only one other imports, by the reason."""


def module_of(path: Path) -> str:
    """Return the name by which a source is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts if parts[0] == "graphsys" else ("graphsys", *parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_a_small_module_is_imported_by_several_or_says_why() -> None:
    paths = {module_of(path): path for path in sources()}
    importers: dict[str, set[str]] = {name: set() for name in paths}
    for name, path in paths.items():
        for node in ast.walk(ast.parse(path.read_text())):
            named: list[str] = []
            if isinstance(node, ast.Import):
                named = [it.name for it in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                named = [node.module, *(f"{node.module}.{it.name}" for it in node.names)]
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                named = [node.value.partition(":")[0]]  # of a registry
            for other in named:
                importers.get(other, set()).add(name)
    alone = {
        name
        for name, path in paths.items()
        if path.name != "__init__.py"
        and len(path.read_text().splitlines()) <= SMALL
        and len(importers[name] - {name}) == 1
    }
    assert alone == set().union(*ALONE.values())


MOST_ENTERED = {"a second pagerank": 25, "gnn.train": 92, "embedding.train": 80}
"""With two to spare of the first ones' 23 and 90, for what depends on the machine."""


def test_a_warm_call_enters_few_files() -> None:
    """A reader of one call reads these; ``scripts/tree_figures --files`` lists them.

    In a process of its own: what other tests called would be entered less, or again.
    """
    command = [sys.executable, "-P", str(ROOT / "scripts" / "tree_figures"), "--calls"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = re.findall(r"^\| files entered by (.*?) \| (\d+) \|", done.stdout, re.M)
    entered = {call: int(number) for call, number in found}
    assert entered.keys() == MOST_ENTERED.keys()
    assert {it: n for it, n in entered.items() if n > MOST_ENTERED[it]} == {}
