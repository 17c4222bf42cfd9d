"""Pictures: the right plane, every node once, its color, a PNG like the SVG."""

import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pyarrow as pa
import pytest

from graphsys.core.errors import (
    ConfigError,
    MissingDependencyError,
    OutputExistsError,
    UnknownNameError,
)
from graphsys.embedding import EmbeddingConfig, Embeddings, picture, train
from graphsys.embedding.inference.plot import principal_axes
from graphsys.storage import Graph
from graphsys.storage.ingest.ingest import ingest
from graphsys.storage.source import EdgeChunk, NodeChunk
from tests.stores import ListSource

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Embeddings:
    """Return a run over 60 nodes with a label, a size and a cut-off column."""
    folder = tmp_path_factory.mktemp("picture")
    columns = {
        "label": pa.array([f"<{k % 3}>" for k in range(60)]),
        "size": pa.array(np.linspace(0, 1, 60)),
        "many": pa.array(range(60)),
    }
    nodes = NodeChunk(ids=np.arange(60), columns=columns)
    edges = EdgeChunk(src=np.arange(60), dst=(np.arange(60) + 3) % 60)
    ingest(ListSource([nodes, edges]), folder / "graph", partitions=2)
    config = EmbeddingConfig(dim=6, epochs=2, init_scale=1.0)
    train(Graph(folder / "graph"), config, folder / "run")
    return Embeddings(folder / "run")


def circles(file: Path) -> list[tuple[float, float, str, str]]:
    """Return position, color and title of every node drawn."""
    text = file.read_text()
    root = ET.fromstring(text[text.index("<svg") :])
    found = []
    for group in root.findall(f"{SVG}g"):
        for circle in group.findall(f"{SVG}circle"):
            title = circle.find(f"{SVG}title")
            assert title is not None
            place = float(circle.attrib["cx"]), float(circle.attrib["cy"])
            found.append((*place, group.attrib["fill"], str(title.text)))
    return found


def test_the_plane_is_that_of_the_singular_vectors(run: Embeddings) -> None:
    rows = run.take("node", np.arange(60)).astype(np.float64)
    _, sizes, vectors = np.linalg.svd(rows - rows.mean(axis=0))
    axes = principal_axes(run, ["node"])
    assert np.abs(np.sum(axes.directions.T * vectors[:2], axis=1)) == pytest.approx(1)
    assert axes.shares == pytest.approx(sizes[:2] ** 2 / np.sum(sizes**2))
    assert axes.project(rows).mean(axis=0) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("suffix", ["svg", "html"])
def test_every_node_is_drawn_with_its_name_and_color(
    run: Embeddings, tmp_path: Path, suffix: str
) -> None:
    found = circles(run.picture(tmp_path / f"p.{suffix}"))
    wanted = {f"{k} (<{k % 3}>)" for k in range(60)}
    assert {title for *_, title in found} == wanted
    by_color: dict[str, set[str]] = {}
    for *_, color, title in found:
        by_color.setdefault(color, set()).add(title.split(" ")[1])
    assert sorted(map(len, by_color.values())) == [1, 1, 1]
    places = {int(title.split(" ")[0]): (x, y) for x, y, _, title in found}
    rows = principal_axes(run, ["node"]).project(run.lookup(range(60)))
    for axis, sign in ((0, 1), (1, -1)):
        drawn = np.array([places[k][axis] for k in range(60)])
        assert np.corrcoef(drawn, sign * rows[:, axis])[0, 1] > 0.9999
    assert (
        50
        <= min(x for x, _ in places.values())
        <= max(x for x, _ in places.values())
        <= 790
    )
    assert (
        50
        <= min(y for _, y in places.values())
        <= max(y for _, y in places.values())
        <= 670
    )


def test_colors_by_number_by_many_values_and_by_type(
    run: Embeddings, shop: Graph, tmp_path: Path
) -> None:
    sizes = circles(picture(run, tmp_path / "size.svg", color="size"))
    assert len({color for *_, color, _ in sizes}) == 9  # eight quantiles and the largest
    many = circles(picture(run, tmp_path / "many.svg", color="many"))
    assert sum("50 others" in title for *_, title in many) == 50
    train(shop, EmbeddingConfig(dim=4, epochs=1), tmp_path / "run")
    typed = circles(picture(tmp_path / "run", tmp_path / "typed.svg"))
    assert len({color for *_, color, _ in typed}) == 3
    assert len(typed) == shop.num_nodes
    few = picture(tmp_path / "run", tmp_path / "few.svg", node_type="user", num_nodes=7)
    assert len(circles(few)) == 7


def test_the_png_shows_what_the_svg_says(run: Embeddings, tmp_path: Path) -> None:
    images = pytest.importorskip("matplotlib.image")
    file = run.picture(tmp_path / "p.png", num_nodes=5)
    assert file.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    image = 255 * images.imread(file)[:, :, :3]
    assert image.shape == (1440, 2000, 3)
    for x, y, color, _ in circles(run.picture(tmp_path / "p.svg", num_nodes=5)):
        full = np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)])
        found = image[round(2 * y), round(2 * x)]
        assert np.abs(found - (0.7 * full + 0.3 * 255)).max() <= 2
    for place in (
        image[:96, 100:400],  # title
        image[1345:, 100:1580],  # one axis
        image[100:1340, :96],  # the other
        image[100:400, 1600:],  # legend
    ):
        assert (place.min(axis=2) < 100).sum() > 100


def test_without_matplotlib_a_png_says_what_to_install(
    run: Embeddings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'graphsys\[plot\]'"):
        run.picture(tmp_path / "p.png")
    assert run.picture(tmp_path / "p.html").is_file()


def test_what_cannot_be_drawn_is_an_error(run: Embeddings, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot draw 'p.jpg': .* \.png, \.html, \.svg"):
        picture(run, tmp_path / "p.jpg")
    with pytest.raises(ConfigError, match="num_nodes: got 0, expected an int >= 1"):
        picture(run, tmp_path / "p.svg", num_nodes=0)
    with pytest.raises(UnknownNameError, match=r"unknown node column 'labl'.*'label'"):
        picture(run, tmp_path / "p.svg", color="labl")
    with pytest.raises(UnknownNameError, match="unknown node type 'nod'"):
        picture(run, tmp_path / "p.svg", node_type="nod")
    (tmp_path / "p.svg").write_text("mine")
    with pytest.raises(OutputExistsError, match="exists; replace it"):
        picture(run, tmp_path / "p.svg")
    assert (tmp_path / "p.svg").read_text() == "mine"
