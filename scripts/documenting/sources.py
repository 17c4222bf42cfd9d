"""Pages that are READMEs of the tree, and links that lead to where a page stands.

A link to a file that is a page of the site leads there; one to another file of the
repository is told by its path, since the site is read without the repository.
"""

import html
import os
import posixpath
import re
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = "scripts/documenting/pages"
SOURCES = {
    "first_hour.md": "datasets/FIRST_HOUR.md",
    "examples.md": "datasets/EXAMPLES.md",
    "guides/pbg.md": "graphsys/embedding/PBG.md",
    "guides/models.md": "graphsys/gnn/MODELS.md",
    "guides/gpu_measured.md": "scripts/bench/GPU.md",
    "reference/settings_embedding.md": "graphsys/embedding/SETTINGS.md",
    "reference/settings_gnn.md": "graphsys/gnn/SETTINGS.md",
    "glossary.md": "graphsys/GLOSSARY.md",
    "project/benchmarks.md": "scripts/bench/README.md",
    "project/billion.md": "scripts/bench/BILLION.md",
    "project/figures_engine.md": "scripts/bench/pages/engine.md",
    "project/figures_embedding.md": "scripts/bench/pages/embedding.md",
    "project/figures_gnn.md": "scripts/bench/pages/gnn.md",
    "project/figures_sampling.md": "scripts/bench/pages/sampling.md",
    "project/figures_mining.md": "scripts/bench/pages/mining.md",
    "project/figures_partitioners.md": "scripts/bench/pages/partitioners.md",
    "project/figures_analysis.md": "scripts/bench/pages/analysis.md",
    "project/figures_interop.md": "scripts/bench/pages/interop.md",
    "project/figures_datasets.md": "scripts/bench/pages/datasets.md",
    "project/figures_storage.md": "scripts/bench/pages/storage.md",
    "project/figures_distributed.md": "scripts/bench/pages/distributed.md",
    "project/bottlenecks.md": "scripts/bench/pages/bottlenecks.md",
    "project/contributing.md": "CONTRIBUTING.md",
    "project/developers.md": "DEVELOPERS.md",
    "project/changelog.md": "CHANGELOG.md",
}
"""Pages of the site, each with the file of the tree that it is."""
HOME = {"README.md": "index.md", "LICENSE": None}
"""Files whose page is another."""
PICTURES = (".png", ".svg")
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
REFERENCE = re.compile(r"^\[([^\]]+)\]: (\S+)$", re.MULTILINE)
FENCE = re.compile(r"^(```.*?^```)", re.DOTALL | re.MULTILINE)
LIST_ITEM = re.compile(r"^ *([-*]|\d+\.) ")


def pages() -> dict[str, str | bytes]:
    """Return the text of each page, and the pictures that pages show or link."""
    found: dict[str, str | bytes] = {}
    own = [path.relative_to(ROOT).as_posix() for path in (ROOT / PAGES).rglob("*.md")]
    for source in (*SOURCES.values(), *own):
        text = (ROOT / source).read_text(encoding="utf-8")
        for _, _, target in LINK.findall(text):
            if target.endswith(PICTURES) and "://" not in target:
                path = _within(source, target)
                found[_picture(path)] = (ROOT / path).read_bytes()
    for page, source in SOURCES.items():
        found[page] = (ROOT / source).read_text(encoding="utf-8")
    return found


def source_of(page: str) -> str:
    """Return the file of the tree that a page is."""
    return SOURCES.get(page, f"{PAGES}/{page}")


def _within(source: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), target))


def _picture(path: str) -> str:
    return f"pictures/{posixpath.basename(path)}"


def linked(text: str, source: str, page: str) -> str:
    """Return a text with links that lead on from its page.

    Args:
        text: What stands in the source.
        source: Its path in the tree.
        page: Its path in the site.
    """
    named = dict(REFERENCE.findall(text))
    text = REFERENCE.sub("", text) if named else text

    def led(match: re.Match[str]) -> str:
        return _led(match, source, page)

    def change(part: str) -> str:
        for name, target in named.items():
            part = re.sub(rf"\]\[{re.escape(name)}\]", f"]({target})", part)
        return LINK.sub(led, part)

    return outside_of_code(text, change)


def outside_of_code(text: str, change: Callable[[str], str]) -> str:
    """Return a text of which all but fenced blocks is changed."""
    parts = FENCE.split(text)
    return "".join(part if part.startswith("```") else change(part) for part in parts)


def _led(match: re.Match[str], source: str, page: str) -> str:
    shown, text, target = match.groups()
    path, _, anchor = target.partition("#")
    if "://" in target or not path:
        return match[0]
    found = _within(source, path)
    to = _page_of(found)
    if path.endswith(PICTURES):
        to = _picture(found)
    if to is None:
        place = html.escape(f"{found}, in the repository")
        return f'<span class="repository" title="{place}" markdown>{text}</span>'
    relative = os.path.relpath(to, posixpath.dirname(page) or ".")
    return f"{shown}[{text}]({relative}{'#' + anchor if anchor else ''})"


def _page_of(found: str) -> str | None:
    """Return the page that a file of the tree is, or None."""
    pages = {source: page for page, source in SOURCES.items()} | HOME
    if found.startswith(f"{PAGES}/"):
        return found.removeprefix(f"{PAGES}/")
    return pages.get(found)


def spaced(text: str) -> str:
    """Return a text whose lists begin a paragraph: Python-Markdown asks for that."""

    def change(part: str) -> str:
        lines: list[str] = []
        for line in part.split("\n"):
            before = lines[-1] if lines else ""
            begins = LIST_ITEM.match(line) and before.strip()
            if begins and not LIST_ITEM.match(before) and not before.startswith(" "):
                lines.append("")
            lines.append(line)
        return "\n".join(lines)

    return outside_of_code(text, change)
