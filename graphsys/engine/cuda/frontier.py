"""The nodes that send next, as they lie on the device."""

from dataclasses import dataclass
from typing import Any

from graphsys.engine.execute.frontier import Frontier


@dataclass
class DeviceFrontier(Frontier):
    """A set of nodes on the device, as a list or as stamps.

    Attributes:
        epoch: The stamp of its nodes in ``stamps("active")``; None: not stamped.
        is_listed: Whether ``node_list("frontier")`` holds it, ``size_at`` its length.
        size_at: Where in the counters its length stands.
        nodes: Its nodes on the host, not yet copied; or None.
    """

    epoch: int | None = None
    is_listed: bool = False
    size_at: int = 0
    nodes: Any = None
