"""Checkpoints of a run on a cluster: every worker writes its part, the first commits all.

The folder is that of :mod:`graphsys.engine.execute.checkpoint`; the arrays hold the own
spans only, and their names begin with the worker's number.
"""

from dataclasses import asdict
from typing import Any

import numpy as np

from graphsys.core.errors import ClusterError
from graphsys.distributed.supersteps import SharedFrontier, WorkerExecutor
from graphsys.distributed.work import ProgramWork
from graphsys.engine.execute.checkpoint import (
    Checkpoints,
    fingerprint_of,
    write_array,
)
from graphsys.engine.execute.checkpoint_place import CheckpointPlace
from graphsys.engine.execute.executor import Executor, Position
from graphsys.engine.execute.frontier import Frontier
from graphsys.storage.transaction import disk_errors

_OF_EDGES = "edge__"
"""States of edges, which lie by entries, the others' too; all else is of nodes."""


class ClusterCheckpoints(Checkpoints):
    """The part of one worker in the checkpoints of a run."""

    is_first = True

    @classmethod
    def of(cls, work: ProgramWork, executor: WorkerExecutor) -> "ClusterCheckpoints | None":
        """Open the folder of a run, and put the worker where the checkpoint stands.

        Raises:
            ConfigError: a checkpoint of something else, or of another number of workers.
            OutputExistsError: there is a checkpoint and the run is not to go on from it.
            CorruptStoreError: a file is missing, cut short or altered.
        """
        if work.checkpoint is None:
            return None
        fingerprint = fingerprint_of(executor.program, executor.plan, executor.topology)
        saved = cls.__new__(cls)
        saved.is_first = executor.exchange.rank == 0
        # the first locks and looks; when it has, all others read what it read
        if saved.is_first:
            saved._open(work, fingerprint, executor)
        executor.exchange.collect(())
        if not saved.is_first:
            saved._open(work, fingerprint, executor)
        if saved._found is not None:
            saved._restore(executor, saved._found)
        return saved

    def _open(
        self, work: ProgramWork, fingerprint: dict[str, Any], executor: WorkerExecutor
    ) -> None:
        fingerprint = {**fingerprint, "workers": executor.exchange.size}
        assert work.checkpoint is not None  # of() looked
        if self.is_first:
            super().__init__(
                work.checkpoint,
                every=work.checkpoint_every,
                fingerprint=fingerprint,
                resume=work.resume,
            )
            return
        self._place = CheckpointPlace.at(work.checkpoint)
        self._every, self._fingerprint = work.checkpoint_every, fingerprint
        self._found = self._read()

    def write(self, executor: Executor) -> None:
        """Write a checkpoint together with all other workers.

        Raises:
            StorageFullError: there is no room; the checkpoint before stays.
        """
        if not isinstance(executor, WorkerExecutor):
            raise ClusterError("a checkpoint of a cluster is written by its workers")
        exchange = executor.exchange
        if self._is_at(executor):
            return
        own = self._place.name_of(executor.at.superstep)
        if self.is_first:
            with disk_errors(self.folder):
                self._sweep()
                self._place.begin(own)
        # Nobody writes before the first has swept; its name is the one that all take.
        name: str = exchange.collect((own,))[0][0]
        with disk_errors(self.folder):
            target = self._place.begin(name)
            files = {
                key: asdict(write_array(target, key, array))
                for key, array in self._own_arrays(executor).items()
            }
            self._place.send(name)
        # Gathered by all, so that the first commits when the last has written, not before.
        every = exchange.collect((files,))
        frontier = executor.frontier
        content = {
            "format": 1,
            "run": self._fingerprint,
            "folder": name,
            "position": asdict(executor.at),
            "frontier": None
            if frontier is None
            else {
                "everyone": frontier.everyone,
                "count": frontier.count,
                "edges": frontier.edges,
            },
            "files": {key: file for (part,) in every for key, file in part.items()},
        }
        if self.is_first:
            with disk_errors(self.folder), self._tidied():
                self._commit(content)
        self._found = content
        exchange.collect(())

    def _own_arrays(self, executor: WorkerExecutor) -> dict[str, Any]:
        rank = executor.exchange.rank
        kept = executor.arrays.kept()
        found = {
            f"worker-{rank}__{key}": (
                array if key.startswith(_OF_EDGES) else _cut(array, executor.spans)
            )
            for key, array in kept.items()
        }
        if executor.frontier is not None and not executor.frontier.everyone:
            found[f"worker-{rank}__frontier"] = np.sort(executor.frontier.listed())
        return found

    def _restore(self, executor: WorkerExecutor, content: dict[str, Any]) -> None:
        prefix, listed = f"worker-{executor.exchange.rank}__", None
        num_nodes = executor.topology.num_nodes
        for key, file in content["files"].items():
            if not key.startswith(prefix):
                continue
            array = self.read_array(key, file)
            name = key.removeprefix(prefix)
            if name == "frontier":
                listed = np.array(array)
                continue
            if name.startswith(_OF_EDGES):
                executor.arrays.put_back(name, array.dtype, len(array))[:] = array
                continue
            whole = executor.arrays.put_back(name, array.dtype, num_nodes)
            place = 0
            for low, high in executor.spans:
                whole[low:high] = array[place : place + high - low]
                place += high - low
        position = dict(content["position"])
        executor.at.totals.update(position.pop("totals"))
        executor.at = Position(**position, totals=executor.at.totals)
        said = content["frontier"]
        if said is None:
            executor.frontier = None
        elif said["everyone"] or listed is None:
            executor.frontier = Frontier.all(num_nodes, said["edges"])
        else:
            own = Frontier.from_list(num_nodes, listed, 0)
            executor.frontier = SharedFrontier(own, said["count"], said["edges"])
        limit = executor.max_supersteps
        if limit is not None and executor.at.superstep >= limit and not executor.at.is_done:
            executor.at.is_done, executor.at.converged = True, False


def _cut(array: Any, spans: Any) -> Any:
    return np.concatenate([array[:0], *(array[low:high] for low, high in spans)])
