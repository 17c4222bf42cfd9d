"""Builds: find or fetch the files of a data set, ingest them, check the counts."""

import os
import shutil
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graphsys.core.caller_warnings import note
from graphsys.core.errors import ConfigError, InputError, cut_list
from graphsys.core.progress import SILENT, Progress
from graphsys.datasets import generators
from graphsys.datasets.download import cache_folder, fetch
from graphsys.datasets.files import DAMAGE, describe
from graphsys.datasets.opening import open_source
from graphsys.datasets.recipes.card import Recipe, RecipeFile, show
from graphsys.datasets.table_spec import describe_source
from graphsys.storage.ingest.ingest import ingest
from graphsys.storage.source import EdgeChunk, NodeChunk, Source

if TYPE_CHECKING:
    from graphsys.storage.ingest.ingest import IngestReport
    from graphsys.storage.reader import GraphReader


_MAX_MARKED: Final = 1 << 31

GENERATORS: Final[dict[str, Callable[..., Source]]] = {
    "activity": generators.activity,
    "communities": generators.communities,
    "demo": generators.demo,
    "grid": generators.grid,
    "ksat": generators.ksat,
    "pins": generators.pins,
    "planted": generators.planted,
    "rmat": generators.rmat,
    "road": generators.road,
    "rules": generators.rules,
    "uniform": generators.uniform,
}


def build(
    name: str,
    out: str | os.PathLike[str],
    *,
    folder: str | os.PathLike[str] | None = None,
    allow_other_counts: bool = False,
    progress: Progress = SILENT,
    **options: Any,
) -> "IngestReport[GraphReader]":
    """Build a data set into a store.

    Args:
        name: Name of the data set.
        out: Where the store goes.
        folder: Where its files lie, by their base names; None to fetch them.
        allow_other_counts: Warn where counts differ from the published ones, and go on.
        progress: Told of downloads and of the ingest.
        **options: Parameters of a generator (its card lists them), and options of
            ``graphsys.storage.ingest.ingest.ingest``.

    Raises:
        UnknownNameError: there is no such data set.
        InputError: a file is missing or damaged, cannot be fetched, or the counts differ
            from the published ones; nothing is written then.
    """
    recipe = show(name)
    if recipe.kind == "generator":
        if folder is not None:
            raise ConfigError(f"{name} is generated, got --from {folder}; leave it out")
        source = _generated(recipe, options)
    else:
        paths = (
            _find(recipe, Path(folder)) if folder is not None else _fetch(recipe, progress)
        )
        source = _opened(recipe, paths)
    if isinstance(source, CountedSource):
        source.allows_others = allow_other_counts
    return ingest(source, out, progress=progress, **options)


def _generated(recipe: Recipe, options: dict[str, Any]) -> Source:
    """Make the source of a generator; its parameters are taken out of the options."""
    given = {key: options.pop(key) for key in recipe.parameters if key in options}
    if "seed" in given:  # the partitioner's too
        options["seed"] = given["seed"]
    parameters = {**recipe.parameters, **given}
    for key, value in given.items():
        expected = type(recipe.parameters[key])
        if expected is float and type(value) is int:
            parameters[key] = value = float(value)
        if type(value) is not expected:
            raise ConfigError(
                f"{recipe.name}.{key}: got {value!r}, expected {expected.__name__}"
            )
    source = GENERATORS[recipe.name](**parameters)
    is_default = parameters == dict(recipe.parameters)
    return CountedSource(source, recipe) if is_default and recipe.counts else source


def _opened(recipe: Recipe, paths: list[Path]) -> Source:
    if recipe.tables:
        source: Source = describe_source(
            recipe.tables, paths[0].parent, where=f"recipe {recipe.name}"
        )
        return CountedSource(source, recipe) if recipe.counts else source
    chosen = [path for path in paths if not recipe.main or path.name in recipe.main]
    is_openke = any(path.name == "train2id.txt" for path in chosen)
    source = open_source(
        chosen, format="openke" if is_openke else recipe.format, **recipe.options
    )
    return CountedSource(source, recipe) if recipe.counts else source


def _find(recipe: Recipe, folder: Path) -> list[Path]:
    """Return the files of a recipe that lie in a folder.

    Raises:
        InputError: the folder or a file is missing.
    """
    if not folder.is_dir():
        raise InputError(
            f"{folder}: no such folder; --from names one with {_wanted(recipe)}"
        )
    sets = [tuple(file.name for file in recipe.files), *recipe.instead]
    for names in sets:
        if all((folder / name).is_file() for name in names):
            return [folder / name for name in names]
    missing = [name for name in sets[0] if not (folder / name).is_file()]
    raise InputError(
        f"{folder}: has no {cut_list(missing)}; {recipe.name} needs {_wanted(recipe)} "
        "directly in the folder"
    )


def _wanted(recipe: Recipe) -> str:
    sets = [tuple(file.name for file in recipe.files), *recipe.instead]
    return " or ".join(cut_list(names, 8) for names in sets)


def _fetch(recipe: Recipe, progress: Progress) -> list[Path]:
    """Return the files of a recipe in the cache, fetched where they are not there.

    Raises:
        InputError: a file cannot be fetched.
    """
    folder = cache_folder() / recipe.name

    def get(file: RecipeFile) -> Path:
        if not file.url:
            raise InputError(
                f"{file.name} cannot be fetched by a program; see {recipe.homepage}"
            )
        return fetch(
            file.url,
            folder / file.name,
            sha256=file.sha256,
            num_bytes=file.bytes,
            progress=progress,
        )

    try:
        if recipe.archive is not None:
            names = [file.name for file in recipe.files]
            if not all((folder / name).is_file() for name in names):
                unpack(get(recipe.archive), recipe.archive.prefix, names, folder)
            return [folder / name for name in names]
        return [get(file) for file in recipe.files]
    except InputError as err:
        raise InputError(
            f"{err}; or put {_wanted(recipe)} into a folder and pass --from FOLDER"
        ) from err


class CountedSource(Source):
    """A source whose nodes and edges are counted against a card while they pass.

    The check comes before the store is committed: at the end of ``chunks``.

    Attributes:
        allows_others: Whether other counts are but a warning.
    """

    def __init__(self, source: Source, recipe: Recipe) -> None:
        self.name = source.name
        self.total_bytes = source.total_bytes
        self.is_directed = source.is_directed
        self._source = source
        self._recipe = recipe
        self.allows_others = False
        self._edges: Counter[str] = Counter()
        self._nodes: dict[str, Any] = {}
        self._marks: dict[str, npt.NDArray[np.bool_]] = {}

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield what the source yields.

        Raises:
            InputError: a count differs from the card's.
        """
        for chunk in self._source.chunks():
            if isinstance(chunk, NodeChunk):
                self._see(chunk.node_type, chunk.ids)
            else:
                self._edges[chunk.split] += len(chunk.src)
                self._see(chunk.edge_type.src_type, chunk.src)
                self._see(chunk.edge_type.dst_type, chunk.dst)
            yield chunk
        num_nodes = sum(len(ids) for ids in self._nodes.values())
        num_nodes += sum(int(marks.sum()) for marks in self._marks.values())
        found = {**self._edges, "nodes": num_nodes}
        wrong = [
            f"{found.get(key, 0)} {key if key == 'nodes' else f'{key} edges'}, expected "
            f"{expected} as published"
            for key, expected in self._recipe.counts.items()
            if found.get(key, 0) != expected
        ]
        if not wrong:
            return
        what = f"{self._recipe.name}: found {'; '.join(wrong)}"
        what += "; the files are another version"
        if not self.allows_others:
            raise InputError(f"{what}: fetch them again, or pass --allow-other-counts")
        note(what)

    def _see(self, node_type: str, ids: Any) -> None:
        """Add ids to the distinct ones of a type."""
        if "nodes" not in self._recipe.counts:
            return
        if isinstance(ids, np.ndarray):
            if len(ids) and int(ids.max()) < _MAX_MARKED:
                self._mark(node_type, ids)
                return
            ids = pa.array(ids)
        elif pa.types.is_dictionary(ids.type):
            ids = ids.dictionary.take(pc.unique(ids.indices))
        seen = self._nodes.get(node_type)
        both = ids if seen is None else pa.concat_arrays([seen, ids.cast(seen.type)])
        self._nodes[node_type] = pc.unique(both)

    def _mark(self, node_type: str, ids: npt.NDArray[np.integer[Any]]) -> None:
        """Mark integer ids, a byte for each up to the greatest."""
        marks = self._marks.get(node_type)
        size = int(ids.max()) + 1
        if marks is None or len(marks) < size:
            grown = np.zeros(
                max(size, 1024 if marks is None else 2 * len(marks)), dtype=np.bool_
            )
            if marks is not None:
                grown[: len(marks)] = marks
            marks = self._marks[node_type] = grown
        marks[ids] = True


def unpack(archive: Path, prefix: str, names: Sequence[str], folder: Path) -> None:
    """Write members of an archive into a folder, each whole or not at all.

    Args:
        archive: A .zip, or a tar compressed or not.
        prefix: What comes before the names in the archive.
        names: Names of files, with folders where the data set has them.
        folder: Where they go, under their names.

    Raises:
        InputError: the archive is damaged, or a member is missing.
    """
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as packed:
                for name in names:
                    with packed.open(prefix + name) as member:
                        _write(member, folder / name)
        else:
            with tarfile.open(archive) as packed_tar:
                for name in names:
                    found = packed_tar.extractfile(prefix + name)
                    if found is None:
                        raise KeyError(name)
                    _write(found, folder / name)
    except KeyError as err:
        raise InputError(
            f"{archive}: has no member {err.args[0]}; the archive is another version"
        ) from err
    except (*DAMAGE, RuntimeError) as err:  # RuntimeError: a member is encrypted
        if isinstance(err, InputError):
            raise
        raise InputError(
            f"{archive}: cannot be unpacked: {describe(err)}; remove it and fetch it again"
        ) from err


def _write(member: IO[Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    with part.open("wb") as out:
        shutil.copyfileobj(member, out, 1 << 20)
    part.replace(path)
