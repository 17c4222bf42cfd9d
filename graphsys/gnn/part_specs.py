"""What tasks, samplers and decoders are, and the lists of all of them.

Each stands in its own file, ours or that of another package, which gives it as an entry
point of the groups ``graphsys.tasks``, ``graphsys.samplers`` or ``graphsys.decoders``; see
README.md, "A model of one's own".
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from graphsys.core.registry import SpecRegistry

TASKS_GROUP: Final = "graphsys.tasks"
SAMPLERS_GROUP: Final = "graphsys.samplers"
DECODERS_GROUP: Final = "graphsys.decoders"


@dataclass(frozen=True, kw_only=True)
class TaskSpec:
    """What a network is trained for.

    Attributes:
        name: What ``task`` names it in a config.
        make: From ``(graph, config)``, the :class:`graphsys.gnn.tasks.task.Task`.
        is_of_links: Whether pairs of nodes are learned, not values of nodes.
        has_times: Whether its seeds are nodes that may have a column ``time``.
    """

    name: str
    make: Callable[[Any, Any], Any]
    is_of_links: bool = False
    has_times: bool = False


@dataclass(frozen=True, kw_only=True)
class SamplerSpec:
    """How the neighbors of a node are drawn.

    Attributes:
        name: What ``sampler`` names it in a config.
        make: From ``(rows, config)``, the relations and the settings, the
            :class:`graphsys.sampling.multi_hop.HopSampler`.
        is_usual: Whether it is the one where nothing is said, also where nothing is
            sampled.
        can_replace: Whether it can draw with replacement.
        can_weigh: Whether it can draw by weights of edges.
        can_be_recent: Whether it can take the latest neighbors.
        has_times: Whether it looks at the times of seeds.
        has_all_edges: Whether sums over its samples estimate those over all edges.
    """

    name: str
    make: Callable[[Any, Any], Any]
    is_usual: bool = False
    can_replace: bool = False
    can_weigh: bool = False
    can_be_recent: bool = False
    has_times: bool = False
    has_all_edges: bool = True


@dataclass(frozen=True, kw_only=True)
class DecoderSpec:
    """How two rows become the score of a pair.

    Attributes:
        name: What ``decoder`` names it in a config.
        make: From ``(config, num_features)``, the
            :class:`graphsys.gnn.tasks.decoders.Decoder`.
    """

    name: str
    make: Callable[[Any, int], Any]


TASKS = SpecRegistry(
    "task", TASKS_GROUP, TaskSpec,
    modules=(
        "graphsys.gnn.tasks.task", "graphsys.gnn.tasks.regression",
        "graphsys.gnn.tasks.link_prediction",
    ),
)  # fmt: skip
SAMPLERS = SpecRegistry(
    "sampler", SAMPLERS_GROUP, SamplerSpec, modules=["graphsys.gnn.data.samplers"]
)
DECODERS = SpecRegistry(
    "decoder", DECODERS_GROUP, DecoderSpec, modules=["graphsys.gnn.tasks.decoders"]
)
