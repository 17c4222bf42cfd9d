"""The Open Graph Benchmark's raw folders, as its archives unpack: ``raw/`` and ``split/``.

One kind of nodes: ``raw/edge.csv.gz``, ``num-node-list.csv.gz``, and where they exist
``node-feat.csv.gz`` (features x), ``node-label.csv.gz`` (label; lists where there are
several), ``node_year.csv.gz`` (time). Several kinds: ``raw/triplet-type-list.csv.gz``,
``num-node-dict.csv.gz`` and folders ``relations``, ``node-feat``, ``node-label`` by name.
``split/KIND/train.csv.gz`` and so on become the node column ``split``. Ids are OGB's
numbers; edges are directed as stored. Binary folders (``raw/data.npz``) and edges that
torch saved by split (``split/KIND/train.pt``) have modules of their own.

References:
    Hu et al., "Open graph benchmark: datasets for machine learning on graphs", NeurIPS
    2020; ogb.stanford.edu.
"""

from pathlib import Path
from typing import Any, Final

from graphsys.core.errors import ConfigError, InputError
from graphsys.core.types import NODE
from graphsys.datasets.base import Format, ReadOptions, formats
from graphsys.datasets.files import InputFile, input_file
from graphsys.datasets.folders.ogb_binary import OgbBinarySource
from graphsys.datasets.folders.ogb_splits import OgbSplitSource, split_files
from graphsys.datasets.table_spec import describe_source
from graphsys.datasets.text.layout import as_count, show
from graphsys.storage.source import Source

_FILES: Final = {
    "features": {"x": "node-feat.csv"},
    "arrays": {"label": "node-label.csv", "time": "node_year.csv"},
}
_SPLITS: Final = ("train", "valid", "test")


def _present(root: Path, name: str) -> str | None:
    """Return the name of a file, compressed or not, if it is there."""
    names = (f"{name}.gz", name)
    try:
        return next((it for it in names if (root / it).is_file()), None)
    except OSError:  # a name that is too long
        return None


def _find(folder: Path) -> list[Path]:
    """Return the file that says how many nodes there are."""
    for name in ("raw/num-node-list.csv", "raw/num-node-dict.csv"):
        if (found := _present(folder, name)) is not None:
            return [folder / found]
    binary = [folder / "raw" / name for name in ("data.npz", "num_nodes_list.npy")]
    return [path for path in binary if path.is_file()][:1]


def _lines(path: Path) -> list[list[str]]:
    """Return the fields of a small file."""
    text = input_file(path).read_all().decode("utf-8", "replace")
    return [line.split(",") for line in text.splitlines() if line.strip()]


def _counts(path: Path) -> dict[str, int]:
    """Return the number of nodes of every type.

    Raises:
        InputError: the file holds something else, such as many graphs.
    """
    lines = _lines(path)
    if path.name.startswith("num-node-list"):
        names, lines = ["node"], lines
    else:
        names, lines = (lines[0], lines[1:]) if lines else ([], [])
    if (
        len(lines) != 1
        or len(lines[0]) != len(names)
        or None in (counts := [as_count(it.strip().encode()) for it in lines[0]])
    ):
        raise InputError(
            f"{path}: {len(lines)} lines, expected the numbers of nodes of one graph; data "
            "sets of many graphs are not read"
        )
    return {name: it or 0 for name, it in zip(names, counts, strict=True)}


def _nodes(root: Path, node_type: str, count: int, *, is_typed: bool) -> dict[str, Any]:
    """Describe the nodes of one type."""
    card: dict[str, Any] = {"type": node_type, "count": count}
    for key, names in _FILES.items():
        for name, file in names.items():
            folders = [f"raw/{it}/{node_type}" for it in ("node-feat", "node-label")]
            for folder in folders if is_typed else ["raw"]:
                if (found := _present(root, f"{folder}/{file}")) is not None:
                    card.setdefault(key, {})[name] = found
    kinds = sorted(it for it in (root / "split").glob("*") if it.is_dir())
    if len(kinds) > 1:
        raise InputError(
            f"{root}/split: holds {len(kinds)} splits, expected one; remove the others"
        )
    for kind in kinds:
        folder = f"split/{kind.name}" + (f"/{node_type}" if is_typed else "")
        files = {it: _present(root, f"{folder}/{it}.csv") for it in _SPLITS}
        found_files = {it: name for it, name in files.items() if name is not None}
        if found_files:
            card["splits"] = {"split": found_files}
    return card


def _edges(root: Path, *, is_typed: bool) -> list[dict[str, Any]]:
    """Describe the edges of every type."""
    plain = {"columns": ["src", "dst"], "separator": "comma", "ids": "int"}
    if not is_typed:
        name = _present(root, "raw/edge.csv") or "raw/edge.csv.gz"
        return [{"file": name, **plain}]
    listed = _present(root, "raw/triplet-type-list.csv") or "raw/triplet-type-list.csv.gz"
    cards = []
    for number, triple in enumerate(_lines(root / listed), start=1):
        if len(triple) != 3 or any(not it or set(it) & set("/\\\0") for it in triple):
            raise InputError(
                f"{root / listed}:{number}: found {show(','.join(triple).encode())}, "
                "expected the names of a source type, a relation and a destination type"
            )
        name = f"raw/relations/{'___'.join(triple)}/edge.csv"
        cards.append(
            {"file": _present(root, name) or f"{name}.gz", "type": triple, **plain}
        )
    return cards


def open_ogb(files: list[InputFile], options: ReadOptions) -> Source:
    """Make a source of the folder that one of the files lies in.

    Raises:
        InputError: a file is missing or does not fit.
    """
    if options.columns or options.roles or options.skip or options.edge_type:
        raise ConfigError("ogb folders have fixed columns and types; leave them out")
    path = files[0].path
    root = path.parent.parent
    if path.name in ("data.npz", "num_nodes_list.npy"):
        return OgbBinarySource(root, is_directed=not options.is_undirected)
    if splits := split_files(root):
        counts = _counts(path)
        if list(counts) != [NODE]:
            raise InputError(
                f"{next(iter(splits.values()))}: edges of several types of nodes in files "
                "of torch, which are not read"
            )
        return OgbSplitSource(root, splits, counts[NODE], not options.is_undirected)
    is_typed = path.name.startswith("num-node-dict")
    mapping = {
        "directed": not options.is_undirected,
        "nodes": [
            _nodes(root, node_type, count, is_typed=is_typed)
            for node_type, count in _counts(path).items()
        ],
        "edges": _edges(root, is_typed=is_typed),
    }
    return describe_source(mapping, root, where=str(root), num_threads=options.num_threads)


formats.register("ogb")(
    Format(
        open=open_ogb,
        patterns=("num-node-list.csv", "num-node-dict.csv"),
        find=_find,
        about="the Open Graph Benchmark's folders: raw/edge.csv.gz and so on",
    )
)
