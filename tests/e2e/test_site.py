"""The site builds strictly and offline, is complete, and can be read and searched."""

import html
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import graphsys
from tests.conftest import ROOT

pytest.importorskip("material", reason="the extra docs is not installed")
pytest.importorskip("mkdocstrings", reason="the extra docs is not installed")
pytest.importorskip("nbconvert", reason="the extra docs is not installed")

pytestmark = pytest.mark.e2e
PAGES = ROOT / "scripts" / "documenting" / "pages"
LOOKED_AT = (
    "index",
    "how_it_works",
    "from/pyg",
    "guides/engine",
    "reference/algorithms",
    "reference/python/graphsys",
    "reference/settings_embedding",
)
PROBE = """
<script>
addEventListener("load", () => setTimeout(() => {
  const told = {
    wide: document.documentElement.scrollWidth - innerWidth,
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
    scheme: document.body.getAttribute("data-md-color-scheme"),
    found: document.querySelectorAll(".md-search-result__item").length,
    pictures: [...document.querySelectorAll(".picture svg")].map(
      (it) => it.getBoundingClientRect().width),
  };
  document.title = "told" + JSON.stringify(told) + "end";
}, 2500));
</script></body>"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site") / "site"
    done = subprocess.run(
        [ROOT / "scripts" / "docs", "--out", out],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip().endswith("index.html")
    return out


def test_no_page_asks_another_host_for_anything(site: Path) -> None:
    loads = re.compile(
        r"<(?:script|img|iframe|link)\b[^>]*?(?:src|href)=\"?(https?://[^\" >]+)"
    )
    for page in site.rglob("*.html"):
        found = [it for it in loads.findall(page.read_text()) if "canonical" not in it]
        assert found == [], page


def test_links_lead_to_pages_and_anchors(site: Path) -> None:
    anchors = {
        page: {*re.findall(r'\bid="([^"]+)"', page.read_text())}
        for page in site.rglob("*.html")
    }
    for page in anchors:
        for link in re.findall(r'<a\b[^>]*?href="([^"]+)"', page.read_text()):
            path, _, anchor = html.unescape(link).partition("#")
            if "://" in path or page.name == "404.html" or link in (".", ""):
                continue
            target = (page.parent / path).resolve() if path else page
            assert target.exists(), (page.name, link)
            if anchor and target in anchors and not anchor.startswith("__"):
                assert anchor in anchors[target], (page.name, link)


def test_every_public_name_and_verb_has_an_entry(site: Path) -> None:
    page = (site / "reference/python/graphsys.html").read_text()
    for name in graphsys.__all__:
        thing = getattr(graphsys, name)
        if callable(thing) and name != "NodeId":
            assert f'id="graphsys.{name}"' in page, name
    assert not re.search(r":(meth|class|func|data|attr|mod):", page)
    verbs = (site / "reference/command_line.html").read_text()
    assert "&amp;lt;" not in verbs
    for verb in ("ingest", "train-embedding", "mine-count", "dataset-build", "doctor"):
        assert f'id="graphsys-{verb}"' in verbs


def test_every_algorithm_says_its_cost_and_memory(site: Path) -> None:
    page = (site / "reference/algorithms.html").read_text()
    rows = re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)
    told = {}
    for row in rows[1:]:
        name, _, _, cost, memory = re.findall(r"<td>(.*?)</td>", row, re.DOTALL)
        told[re.sub("<[^>]+>", "", name)] = (cost, memory)
    assert {*told} == {*graphsys.algorithms.ALGORITHMS}
    assert all(len(cost.split()) >= 3 for cost, _ in told.values())
    assert told["leiden"][1].endswith("a node")


@pytest.mark.parametrize("name", ["pyg", "dgl"])
def test_a_module_whose_library_is_missing_is_listed_from_its_source(name: str) -> None:
    pytest.importorskip({"pyg": "torch_geometric"}.get(name, name))
    code = (
        "from documenting.generated import listed_names, public_names as every\n"
        f"path = 'graphsys.interop.{name}'\n"
        "assert listed_names(path) == every(path), (listed_names(path), every(path))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT / "scripts",
        env={**os.environ, "DGLBACKEND": "pytorch"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_folder_of_somebody_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    theirs = tmp_path / "search" / "search_index.json"  # of another site
    theirs.parent.mkdir()
    theirs.write_text("{}")
    done = subprocess.run(
        [ROOT / "scripts" / "docs", "--out", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "holds no site of this script's" in done.stderr
    assert [*tmp_path.rglob("*.*")] == [theirs]


def test_extras_are_listed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    rows = re.findall(r"^\| (`[^|]+) \|", (PAGES / "install.md").read_text(), re.M)
    listed = {name for row in rows for name in re.findall(r"`([a-z0-9]+)`", row)}
    assert listed == {*project["optional-dependencies"]}


def test_sixty_things_have_an_example_or_a_reason() -> None:
    rows = re.findall(
        r"^\| (\d+) \|(.+)\|(.+)\|(.+)\|$", (PAGES / "daily.md").read_text(), re.M
    )
    assert [int(row[0]) for row in rows] == [*range(1, 61)]
    for number, *_, here in rows:
        assert re.search(r"\]\([^)]+\)", here) or here.strip().startswith("not here: "), (
            number
        )
    assert sum(row[3].strip().startswith("not here") for row in rows) <= 2


def test_the_folder_of_another_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    done = subprocess.run(
        [ROOT / "scripts" / "docs", "--out", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "holds no site" in done.stderr
    assert (tmp_path / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize("page", LOOKED_AT)
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (400, True)])
def test_pages_keep_to_the_window(
    site: Path, browser: str, page: str, width: int, dark: bool
) -> None:
    told = look(site / f"{page}.html", browser, width, dark=dark)
    assert told["wide"] <= 0
    assert told["scheme"] == ("slate" if dark else "default")
    assert all(it > 500 for it in told["pictures"])


def test_search_works_without_a_server(site: Path, browser: str) -> None:
    told = look(site / "index.html", browser, 1280, dark=False, query="?q=superstep")
    assert told["found"] >= 3


def look(
    page: Path, browser: str, width: int, *, dark: bool, query: str = ""
) -> dict[str, Any]:
    """Open a page as a file; return what the probe behind it saw."""
    probed = page.with_name(f"probe-{width}-{page.name}")
    probed.write_text(page.read_text().replace("</body>", PROBE))
    try:
        done = subprocess.run(
            [
                browser,
                "--no-sandbox",
                "--disable-gpu",
                f"--blink-settings=preferredColorScheme={0 if dark else 1}",
                f"--window-size={width},900",
                "--virtual-time-budget=6000",
                "--dump-dom",
                f"file://{probed}{query}",
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    finally:
        probed.unlink()
    found = re.search(r"<title>told(.*?)end</title>", done.stdout)
    assert found, done.stderr[-2000:]
    told: dict[str, Any] = json.loads(html.unescape(found[1]))
    return told
