"""Where a training writes: a folder, which may become a run on an object store."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graphsys.core.errors import ConfigError
from graphsys.core.remote.locations import is_remote
from graphsys.storage.folder_kinds import RUN_NAME
from graphsys.storage.remote.publishing import generation_folder, own_number, published
from graphsys.storage.runs.remote_checkpoint import require_checkpoint, settings_folder


@contextlib.contextmanager
def run_target(out: Path, cluster: str | None, how: dict[str, Any]) -> Iterator[Path]:
    """Give the folder that a training writes to.

    Of a location on an object store that is a folder here, which is uploaded and committed
    when the block ends without an error.

    Args:
        out: What the user named.
        cluster: Where it is trained.
        how: Arguments of ``train``; nothing is left to overwrite in a folder of our own,
            and ``through`` is added where machines do not share it. By ``resume`` the last
            checkpoint is in the folder, whoever made it.

    Raises:
        ConfigError: it is trained by processes of torchrun, or nothing is to be resumed.
        OutputExistsError: a run is there and may not be replaced.
        StoreBusyError: another process wrote there meanwhile.
        ObjectStoreError: the storage fails.
    """
    if not is_remote(out):
        yield out
        return
    is_shared = cluster is not None and not cluster.startswith("local:")
    if os.environ.get("WORLD_SIZE", "1") != "1":
        raise ConfigError(
            f"{out} is on an object store, and processes of torchrun share the folder of "
            "the run they train; train to a folder that all of them mount, or by --cluster"
        )
    overwrite, how["overwrite"] = how["overwrite"], False
    if how["resume"] and how["dry_run"]:
        with settings_folder(out) as folder:
            yield folder
        return
    number = own_number() if is_shared else None
    if number is not None:
        how["through"] = generation_folder(out, number)
    replaces = overwrite or how["resume"]
    with published(out, RUN_NAME, overwrite=replaces, number=number) as folder:
        if how["resume"]:  # looked for now: what is committed from here on is not replaced
            require_checkpoint(out).bring(folder)
        yield folder
