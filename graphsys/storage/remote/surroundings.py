"""What lies around a location: no graph or run may have others' files inside of it."""

from graphsys.core.errors import ConfigError
from graphsys.core.remote.locations import Location
from graphsys.storage.folder_kinds import RUN_NAME
from graphsys.storage.manifest import MANIFEST_NAME
from graphsys.storage.objects.object_store import ObjectStore

KINDS = {MANIFEST_NAME: "graph", RUN_NAME: "training run"}


def require_outside(location: Location) -> None:
    """Refuse an output inside a graph or a run on an object store.

    Raises:
        ConfigError: it lies in one.
        ObjectStoreError: the storage fails.
    """
    for folder in location.parents():
        for head, kind in KINDS.items():
            if ObjectStore(folder).kind(head) == "file":
                raise ConfigError(
                    f"{location} lies inside {folder}, which is a {kind} and holds no "
                    "other files; choose an output outside of it"
                )
