"""Readers, recipes and generators: whatever graph a user has, as a source for ingest."""

if __name__ == "datasets":
    raise ImportError(
        "this is the source folder of graphsys.datasets; take the repository root off "
        "sys.path"
    )

from typing import TYPE_CHECKING

from graphsys.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from graphsys.datasets.build_store import ingest as ingest
    from graphsys.datasets.opening import format_names as format_names
    from graphsys.datasets.opening import open_source as open_source
    from graphsys.datasets.readers.in_memory import from_object as from_object

__getattr__ = lazy_exports(__name__)
