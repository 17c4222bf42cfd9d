"""Inputs of the case ``readers``: one graph in every text format."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from bench.cases.ingest_inputs import edge_checksum

Pairs = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
EDGE_FACTOR = 24
NUM_RELATIONS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """A written graph.

    Attributes:
        paths: The files to open.
        options: Options of ``open_source``.
        num_edges: Its edges.
        num_bytes: Bytes of all its files.
        checksum: Of its edges, counted from 0 (see edge_checksum).
        first_id: Id of node 0.
        is_directed: Whether the order of an edge's ends counts.
    """

    paths: list[str]
    options: dict[str, Any]
    num_edges: int
    num_bytes: int
    checksum: int
    first_id: int
    is_directed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How a graph is written in a format.

    Attributes:
        write: Writes the files into a folder and returns those to open; given the edges
            from 0, and the number of nodes.
        kind: Kind of graph: "int" ids, "weighted": those and weights, "words", or
            "simple": undirected, without loops and repeated edges.
        options: Options of ``open_source``.
        first_id: Id of node 0.
    """

    write: Callable[[Path, Pairs, int], list[Path]]
    kind: str = "int"
    options: dict[str, Any] = field(default_factory=dict)
    first_id: int = 0


def write_input(name: str, folder: Path, scale: int) -> Input:
    """Write the graph of ``2**scale`` nodes in one format."""
    from graphsys.datasets.generators import rmat
    from graphsys.storage.source import EdgeChunk

    form = FORMATS[name]
    chunks = list(rmat(scale, EDGE_FACTOR, seed=1).chunks())
    edges = [it for it in chunks if isinstance(it, EdgeChunk)]
    src, dst = (
        np.concatenate([getattr(it, end) for it in edges]) for end in ("src", "dst")
    )
    src, dst = src.astype(np.int64), dst.astype(np.int64)
    if form.kind == "simple":
        low, high = np.minimum(src, dst), np.maximum(src, dst)
        keys = np.unique((low << 32 | high)[low != high])
        src, dst = keys >> 32, keys & 0xFFFFFFFF
    folder.mkdir(parents=True, exist_ok=True)
    paths = form.write(folder, (src, dst), 1 << scale)
    return Input(
        paths=[str(path) for path in paths],
        options=form.options,
        num_edges=len(src),
        num_bytes=sum(it.stat().st_size for it in folder.rglob("*") if it.is_file()),
        checksum=edge_checksum(src, dst),
        first_id=form.first_id,
        is_directed=form.kind != "simple",
    )


def _write(
    path: Path,
    columns: list[Any],
    *,
    separator: str = " ",
    head: str = "",
    quotes: str = "none",
) -> Path:
    """Write columns as text, behind some first lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    options = pa.csv.WriteOptions(
        include_header=False, delimiter=separator, quoting_style=quotes
    )
    names = [str(k) for k in range(len(columns))]
    with path.open("wb") as stream:
        stream.write(head.encode())
        pa.csv.write_csv(pa.table(columns, names=names), stream, options)
    return path


def _weights(size: int) -> npt.NDArray[np.float64]:
    return (np.random.default_rng(3).integers(0, 10**6, size) / 1000).round(3)


def _relations(size: int) -> npt.NDArray[np.int64]:
    return np.random.default_rng(4).integers(0, NUM_RELATIONS, size)


def _words(numbers: npt.NDArray[np.int64], prefix: str) -> Any:
    return pc.binary_join_element_wise(prefix, pa.array(numbers).cast(pa.string()), "")


def _edgelist(folder: Path, edges: Pairs, _: int) -> list[Path]:
    return [_write(folder / "g.txt", list(edges), separator="\t")]


def _edgelist_words(folder: Path, edges: Pairs, _: int) -> list[Path]:
    return [_write(folder / "g.txt", [_words(it, "n") for it in edges], separator="\t")]


def _edgelist_weighted(folder: Path, edges: Pairs, _: int) -> list[Path]:
    columns = [*edges, _weights(len(edges[0]))]
    return [_write(folder / "g.txt", columns, separator="\t")]


def _weighted(folder: Path, edges: Pairs, _: int) -> list[Path]:
    return [_write(folder / "g.wel", [*edges, _weights(len(edges[0]))])]


def _csv(folder: Path, edges: Pairs, _: int) -> list[Path]:
    return [_write(folder / "g.csv", list(edges), separator=",", head="src,dst\n")]


def _quoted(folder: Path, edges: Pairs, _: int) -> list[Path]:
    columns, path = [_words(it, "n") for it in edges], folder / "g.csv"
    return [_write(path, columns, separator=",", head="src,dst\n", quotes="all_valid")]


def _mtx(folder: Path, edges: Pairs, size: int) -> list[Path]:
    head = (
        f"%%MatrixMarket matrix coordinate pattern general\n{size} {size} {len(edges[0])}\n"
    )
    return [_write(folder / "g.mtx", [it + 1 for it in edges], head=head)]


def _mtx_weighted(folder: Path, edges: Pairs, size: int) -> list[Path]:
    head = f"%%MatrixMarket matrix coordinate real general\n{size} {size} {len(edges[0])}\n"
    columns = [*(it + 1 for it in edges), _weights(len(edges[0]))]
    return [_write(folder / "g.mtx", columns, head=head)]


def _metis(folder: Path, edges: Pairs, size: int) -> list[Path]:
    src, dst = np.concatenate(edges), np.concatenate(edges[::-1])
    order = np.lexsort((dst, src))
    texts = np.char.mod("%d", dst[order] + 1)
    rows = np.split(texts, np.cumsum(np.bincount(src, minlength=size))[:-1])
    path = folder / "g.graph"
    lines = "\n".join(" ".join(row.tolist()) for row in rows)
    path.write_text(f"{size} {len(edges[0])}\n{lines}\n")
    return [path]


def _dimacs(folder: Path, edges: Pairs, size: int) -> list[Path]:
    num_edges = len(edges[0])
    weights = np.random.default_rng(3).integers(1, 256, num_edges)
    tags = pa.array(["a"]).take(pa.array(np.zeros(num_edges, np.int8)))
    columns = [tags, *(it + 1 for it in edges), weights]
    return [_write(folder / "g.gr", columns, head=f"p sp {size} {num_edges}\n")]


def _triples(folder: Path, edges: Pairs, _: int) -> list[Path]:
    src, dst = (_words(it, "n") for it in edges)
    relation = _words(_relations(len(edges[0])), "/relation/")
    return [_write(folder / "train.txt", [src, relation, dst], separator="\t")]


def _triples_int(folder: Path, edges: Pairs, _: int) -> list[Path]:
    columns = [edges[0], _relations(len(edges[0])), edges[1]]
    return [_write(folder / "train.txt", columns, separator="\t")]


def _openke(folder: Path, edges: Pairs, _: int) -> list[Path]:
    columns = [*edges, _relations(len(edges[0]))]
    return [_write(folder / "train2id.txt", columns, head=f"{len(edges[0])}\n")]


def _ldbc(folder: Path, edges: Pairs, size: int) -> list[Path]:
    _write(folder / "g.v", [np.arange(size)])
    return [_write(folder / "g.e", list(edges))]


def _ogb(folder: Path, edges: Pairs, size: int) -> list[Path]:
    _write(folder / "raw/num-node-list.csv", [np.array([size])])
    _write(folder / "raw/edge.csv", list(edges), separator=",")
    return [folder]


def _tables(folder: Path, edges: Pairs, size: int) -> list[Path]:
    _write(folder / "edges.txt", list(edges))
    card = (
        f'[[nodes]]\ntype = "node"\ncount = {size}\n[[edges]]\n'
        'type = ["node", "edge", "node"]\nfile = "edges.txt"\ncolumns = ["src", "dst"]\n'
    )
    (folder / "g.toml").write_text(card)
    return [folder / "g.toml"]


def _snb(folder: Path, edges: Pairs, size: int) -> list[Path]:
    nodes = _write(folder / "person_0_0.csv", [np.arange(size)], head="id\n")
    path, head = folder / "person_knows_person_0_0.csv", "Person.id|Person.id\n"
    return [nodes, _write(path, list(edges), separator="|", head=head)]


FORMATS: dict[str, Form] = {
    "edgelist": Form(write=_edgelist),
    "edgelist of words": Form(write=_edgelist_words, kind="words"),
    "csv": Form(write=_csv),
    "csv of quoted words": Form(write=_quoted, kind="words"),
    "mtx": Form(write=_mtx, first_id=1),
    "edgelist with weights": Form(write=_edgelist_weighted, kind="weighted"),
    "mtx with weights": Form(write=_mtx_weighted, first_id=1, kind="weighted"),
    "simple edgelist": Form(write=_edgelist, kind="simple", options={"undirected": True}),
    "metis": Form(write=_metis, first_id=1, kind="simple"),
    "gap wel": Form(write=_weighted, kind="weighted"),
    "gap gr": Form(write=_dimacs, first_id=1, kind="weighted"),
    "triples": Form(write=_triples, kind="words", options={"format": "triples"}),
    "triples of integers": Form(
        write=_triples_int, options={"ids": "int", "format": "triples"}
    ),
    "openke": Form(write=_openke),
    "ldbc": Form(write=_ldbc),
    "ogb": Form(write=_ogb),
    "tables": Form(write=_tables),
    "snb": Form(write=_snb, options={"format": "snb"}),
}
