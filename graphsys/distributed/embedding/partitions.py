"""The partitions a worker has in memory, and the one it reads ahead.

Files never change: what was read ahead is what the lock server names later by the same
files, or of no use. So reading ahead takes no lock, and a partition that another worker
trained in between is read again.
"""

import threading
from collections.abc import Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from graphsys.core.errors import CorruptStoreError, ObjectStoreError
from graphsys.distributed.embedding.bucket_locks import Turn
from graphsys.distributed.run_files import Listed, RunFiles
from graphsys.embedding.data.schedule import Part
from graphsys.embedding.rows.table_files import Table, TableFiles


class WorkerPartitions:
    """Reads partitions, ahead too, and writes them.

    Args:
        files: Where they come from and go to.
        travel: How the files come from other machines, and go there.
        always: Partitions that stay, whose changes travel by the parameter server.
        prefetch: Whether to read ahead, in a thread; it takes the room of a partition.

    Attributes:
        resident: The partitions in memory, but for the one read ahead.
        num_read: Partitions read for a unit so far, those read ahead included.
        num_ahead: Of them, those read ahead.
    """

    def __init__(
        self,
        files: TableFiles,
        travel: RunFiles,
        always: Collection[Part],
        *,
        prefetch: bool,
    ) -> None:
        self._files, self._travel, self._always = files, travel, set(always)
        self.resident: dict[Part, Table] = {
            part: self._brought(part, files.listed(part)) for part in always
        }
        self.num_read = self.num_ahead = 0
        self._versions: dict[Part, tuple[str, ...]] = {}
        self._lock = threading.Lock()  # of the files
        self._pool = ThreadPoolExecutor(1) if prefetch else None
        self._ahead: tuple[Part, tuple[str, ...], Future[Table | None]] | None = None

    def load(self, parts: Collection[Part], turn: Turn) -> None:
        """Have partitions in memory as the files say that the lock server names."""
        for part in self.resident.keys() - set(parts) - self._always:
            del self.resident[part], self._versions[part]
        for part in sorted(parts):
            listed = turn.files.get(part, {})
            version = tuple(sorted(listed))
            found = self._taken(part, version)
            with self._lock:
                self._files.adopt(part, listed)  # own ones too: they stay until given back
                if self._versions.get(part) == version:
                    continue
                self.num_read += 1
                self.num_ahead += found is not None
                self.resident[part] = found or self._brought(part, listed)
        self._begin_ahead(turn.ahead)

    def store(self, parts: Collection[Part], serial: int) -> dict[Part, Listed]:
        """Write partitions to new files, which have the numbers after one; return those.

        Just these: numbers further on are other workers', who write the same partitions.
        """
        with self._lock:
            self._files.number_from(serial)
            for part in sorted(parts):
                self._files.store(part, self.resident[part])
                self._versions[part] = tuple(sorted(self._files.listed(part)))
            stored: dict[Part, Listed] = {p: self._files.listed(p) for p in parts}
        for listed in stored.values():
            self._travel.send(listed)
            self._travel.let_go(listed)
        return stored

    def _brought(self, part: Part, listed: Listed) -> Table:
        """Read a partition whose files the tables have adopted."""
        self._travel.bring(listed)
        table = self._files.load(part)
        self._travel.let_go(listed)
        return table

    def _begin_ahead(self, ahead: Mapping[Part, Listed]) -> None:
        """Read a partition ahead, unless it was; drop another one."""
        if self._pool is None:
            return
        wanted = {part: tuple(sorted(listed)) for part, listed in ahead.items()}
        if self._ahead is not None and wanted.get(self._ahead[0]) == self._ahead[1]:
            return
        self._ahead = None
        for part, version in wanted.items():
            future = self._pool.submit(self._read, part, ahead[part])
            self._ahead = part, version, future

    def _read(self, part: Part, listed: Listed) -> Table | None:
        """Read a partition; None where its files are gone, being superseded."""
        try:
            self._travel.bring(listed)  # takes longest, and needs no tables
            with self._lock:
                self._files.adopt(part, listed)
                return self._brought(part, listed)
        except (CorruptStoreError, ObjectStoreError, OSError):
            return None

    def _taken(self, part: Part, version: tuple[str, ...]) -> Table | None:
        """Return what was read ahead of those files, if it was."""
        if self._ahead is None or self._ahead[0] != part:
            return None
        _, known, future = self._ahead
        self._ahead = None
        table = future.result()
        return table if known == version else None
