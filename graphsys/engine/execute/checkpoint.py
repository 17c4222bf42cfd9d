"""Checkpoints of a run: everything the next supersteps depend on, committed by one rename.

A folder, or a location on an object store, holds ``checkpoint.json`` and the arrays of the
superstep that it names, as .npy files in a folder of their own. A new checkpoint is written
beside the old one, flushed, and becomes the checkpoint when ``checkpoint.json`` is
replaced; then the old one goes. So a kill at any moment leaves the one or the other, whole.
"""

import contextlib
import hashlib
import inspect
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.arrays import load_array, npy_pieces
from graphsys.core.checksums import file_sha256
from graphsys.core.compiling import PARSER
from graphsys.core.errors import ConfigError, CorruptStoreError, OutputExistsError
from graphsys.core.plain_files import read_json
from graphsys.engine.codegen.cpu import module_source
from graphsys.engine.codegen.plan import ProgramPlan
from graphsys.engine.execute.checkpoint_place import NAME, CheckpointPlace
from graphsys.engine.execute.executor import Executor, Position
from graphsys.engine.execute.frontier import Frontier
from graphsys.engine.program import VertexProgram
from graphsys.engine.topology import Topology
from graphsys.storage.transaction import disk_errors

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class _SavedArray:
    """One array: its file's size and hash tell whether it is whole."""

    bytes: int
    checksum: str


class Checkpoints:
    """The checkpoints of one run in one folder.

    Args:
        folder: Where they go, ``s3://...`` too; made when missing.
        every: Supersteps between two checkpoints.
        fingerprint: See :func:`fingerprint_of`.
        resume: Whether to go on from the checkpoint that is there, if one is.

    Raises:
        ConfigError: ``every`` is not positive; a checkpoint of something else; a folder
            inside a graph or a run.
        OutputExistsError: the folder holds a checkpoint and ``resume`` is off, or holds
            something else.
        StoreBusyError: another run writes here.
        StorageFullError: the folder cannot be made.
        ObjectStoreError: the storage fails.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        every: int,
        fingerprint: Mapping[str, Any],
        resume: bool,
    ) -> None:
        if every < 1:
            raise ConfigError(f"checkpoint_every must be 1 or more, got {every}")
        self._every = every
        self._fingerprint = dict(fingerprint)
        self._place = CheckpointPlace.at(folder)
        self._place.claim()
        try:
            self._found = self._read()
            if self._found is not None and not resume:
                at = self._found["position"]["superstep"]
                raise OutputExistsError(
                    f"{self._place} holds a checkpoint of {self._found['run']['program']} "
                    f"after {at} supersteps; resume it, or remove the folder"
                )
            self._place.require_own()
            if self._found is not None:
                with contextlib.suppress(OSError):
                    self._sweep()  # a killed run may have committed last of all
        except BaseException:
            self.close()
            raise

    @property
    def folder(self) -> Path:
        """Where they are on this machine."""
        return self._place.folder

    def close(self) -> None:
        """Let another run write here."""
        self._place.release()

    # ---- writing

    def after(self, executor: Executor) -> None:
        """Write a checkpoint if it is time, or the run has come to its own end."""
        at = executor.at
        if not at.converged:
            return  # a limit ended a phase: more supersteps go on from before its end
        if at.is_done or at.superstep % self._every == 0:
            self.write(executor)

    def write(self, executor: Executor) -> None:
        """Write a checkpoint of a run between two supersteps.

        Raises:
            StorageFullError: there is no room; the checkpoint before stays.
        """
        with disk_errors(self.folder), self._tidied():
            if self._is_at(executor):
                return  # nothing has happened since
            self._sweep()
            name = self._place.name_of(executor.at.superstep)
            target = self._place.begin(name)
            arrays, frontier = executor.arrays.kept(), _frontier_of(executor.frontier)
            if executor.frontier is not None and not executor.frontier.everyone:
                arrays[f"frontier__{frontier['form']}"] = _bits_or_list(executor.frontier)
            files = {key: write_array(target, key, array) for key, array in arrays.items()}
            self._place.send(name)
            content = {
                "format": FORMAT_VERSION,
                "run": self._fingerprint,
                "folder": name,
                "position": asdict(executor.at),
                "frontier": frontier,
                "files": {key: asdict(file) for key, file in files.items()},
            }
            self._commit(content)

    def _is_at(self, executor: Executor) -> bool:
        """Return whether the checkpoint that is there is of this superstep."""
        found = self._found
        return found is not None and found["position"]["superstep"] == executor.at.superstep

    def _commit(self, content: dict[str, Any]) -> None:
        text = json.dumps(content, indent=1, sort_keys=True)
        # The file that commits all others has nobody to list it: it carries its own
        # checksum.
        whole = {"checksum": _hash(text.encode()), "content": content}
        self._place.commit(json.dumps(whole, indent=1, sort_keys=True), content["folder"])
        self._found = content

    @contextlib.contextmanager
    def _tidied(self) -> Iterator[None]:
        """Leave nothing of a checkpoint that could not be written."""
        try:
            yield
        except BaseException:
            with contextlib.suppress(OSError):
                self._sweep()
            raise

    def _sweep(self) -> None:
        """Remove what is not the committed checkpoint."""
        self._place.sweep(None if self._found is None else self._found["folder"])

    # ---- reading

    def restore(self, executor: Executor) -> bool:
        """Put a new run where the checkpoint stands; false where there is none.

        Raises:
            CorruptStoreError: a file is missing, cut short or altered.
        """
        if self._found is None:
            return False
        content, frontier_array = self._found, None
        for key, file in content["files"].items():
            array = self.read_array(key, file)
            if key.startswith("frontier__"):
                frontier_array = array
                continue
            own = executor.arrays.put_back(key, array.dtype, len(array))
            if own.shape != array.shape or own.dtype != array.dtype:
                raise self._corrupt(
                    key,
                    f"holds {array.dtype} {array.shape}, expected {own.dtype} {own.shape}",
                )
            np.copyto(own, array)
        position = dict(content["position"])
        executor.at.totals.update(position.pop("totals"))
        executor.at = Position(**position, totals=executor.at.totals)
        executor.frontier = _restored(content["frontier"], frontier_array)
        # The run may have been told of fewer supersteps than the checkpoint has done.
        limit = executor.max_supersteps
        if limit is not None and executor.at.superstep >= limit and not executor.at.is_done:
            executor.at.is_done, executor.at.converged = True, False
        return True

    def _read(self) -> dict[str, Any] | None:
        self._place.look()
        path = self.folder / NAME
        if not path.exists():
            return None
        try:
            whole = read_json(path)
            content: dict[str, Any] = whole["content"]
            text = json.dumps(content, indent=1, sort_keys=True)
            if whole["checksum"] != _hash(text.encode()):
                raise ValueError("its checksum does not match")
        except (ValueError, KeyError, TypeError, OSError) as err:
            raise self._corrupt(NAME, str(err)) from err
        if content["format"] != FORMAT_VERSION:
            raise ConfigError(
                f"{self._place}/{NAME} has format {content['format']}, this version reads "
                f"{FORMAT_VERSION}; remove the folder to start again"
            )
        self._refuse_others(content["run"])
        self._place.found(content["folder"])
        return content

    def _refuse_others(self, found: Mapping[str, Any]) -> None:
        for what in {**self._fingerprint, **found}:
            ours: Any = self._fingerprint.get(what)
            theirs: Any = found.get(what)
            if theirs == ours:
                continue
            detail = f"{what} {theirs!r}, this run {ours!r}"
            if what == "workers":
                detail = f"the parts of {theirs or 1} (workers), this run has {ours or 1}"
            elif what in ("graph", "source"):
                changed = {"graph": "graph", "source": "program's source"}[what]
                detail = f"another {changed} ({theirs} there, {ours} now)"
            elif what == "parameters" and isinstance(theirs, dict):
                names = [n for n in {**theirs, **ours} if theirs.get(n) != ours.get(n)]
                pairs = [f"{n} = {theirs.get(n)!r}, now {ours.get(n)!r}" for n in names]
                detail = "other parameters: " + "; ".join(pairs)
            raise ConfigError(
                f"the checkpoint in {self._place} cannot be resumed: it has {detail}; "
                "remove the folder to start again"
            )

    def read_array(self, key: str, said: Mapping[str, Any]) -> npt.NDArray[Any]:
        """Map an array of the checkpoint, after a look whether it is whole.

        Raises:
            CorruptStoreError: it is missing, cut short or altered.
        """
        file = _SavedArray(**said)
        assert self._found is not None  # restore() checked
        path = self.folder / self._found["folder"] / f"{key}.npy"
        name = f"{self._found['folder']}/{path.name}"
        try:
            self._place.bring(name, file.bytes, file.checksum)
            if path.stat().st_size != file.bytes:
                raise ValueError(f"{path.stat().st_size} bytes, expected {file.bytes}")
            if file_sha256(path) != file.checksum:
                raise ValueError("its checksum does not match")
            array = load_array(path)
        except (OSError, ValueError, EOFError) as err:
            raise self._corrupt(path.name, str(err)) from err
        return array

    def _corrupt(self, name: str, what: str) -> CorruptStoreError:
        return CorruptStoreError(
            f"checkpoint {self._place} cannot be read: {name}: {what}; remove the folder "
            "to start again"
        )


def fingerprint_of(
    program: VertexProgram, plan: ProgramPlan, topology: Topology
) -> dict[str, Any]:
    """Return what a run must share with a checkpoint to go on from it."""
    source = module_source(plan)
    # typed in, or made by exec; a class is looked for by parsing its file
    with PARSER, contextlib.suppress(OSError, TypeError):
        source += inspect.getsource(type(program))
    names = plan.spec.parameters
    parameters = {name: _plain(getattr(program, name)) for name in names}
    return {
        "program": plan.spec.name,
        "parameters": parameters,
        "graph": _graph_hash(topology),
        "source": _hash(source.encode())[:16],
    }


def _plain(value: Any) -> Any:
    is_plain = value is None or isinstance(value, bool | int | float | str)
    return value if is_plain else repr(value)


def _graph_hash(topology: Topology) -> str:
    if topology.graph is not None:
        return topology.graph.fingerprint[:16]
    digest = hashlib.sha256(str((topology.num_nodes, topology.is_directed)).encode())
    rows = topology.csr("out")
    for array in (rows.indptr, rows.indices, *rows.columns.values()):
        digest.update(np.ascontiguousarray(array).data.cast("B"))
    digest.update(str(topology.ids().to_pylist()).encode())
    return digest.hexdigest()[:16]


def _frontier_of(frontier: Frontier | None) -> dict[str, Any]:
    if frontier is None:
        return {"form": "none"}
    form = "all" if frontier.everyone else "bits"
    if form == "bits" and frontier.count < frontier.num_nodes // 64:
        form = "list"
    return {
        "form": form,
        "num_nodes": frontier.num_nodes,
        "count": frontier.count,
        "edges": frontier.edges,
    }


def _bits_or_list(frontier: Frontier) -> npt.NDArray[Any]:
    is_list = _frontier_of(frontier)["form"] == "list"
    return frontier.listed() if is_list else frontier.words()


def _restored(said: Mapping[str, Any], array: npt.NDArray[Any] | None) -> Frontier | None:
    if said["form"] == "none":
        return None
    if said["form"] == "all" or array is None:
        return Frontier.all(said["num_nodes"], said["edges"])
    copy = np.array(array)
    if said["form"] == "list":
        return Frontier.from_list(said["num_nodes"], copy, said["edges"])
    return Frontier.from_words(said["num_nodes"], copy, said["count"], said["edges"])


def write_array(folder: Path, key: str, array: npt.NDArray[Any]) -> _SavedArray:
    """Write an array as a file ``KEY.npy``, flushed, and return what tells it is whole."""
    path = folder / f"{key}.npy"
    with path.open("wb") as file:
        file.writelines(npy_pieces(array))
        file.flush()
        os.fsync(file.fileno())
    return _SavedArray(path.stat().st_size, file_sha256(path))


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
