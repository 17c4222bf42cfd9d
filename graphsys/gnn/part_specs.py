"""What tasks, samplers, decoders and losses are, and the lists of all of them.

Each stands in its own file, ours or that of another package, which gives it as an entry
point of the groups ``graphsys.tasks``, ``graphsys.side_tasks``, ``graphsys.samplers``,
``graphsys.decoders`` or ``graphsys.pair_losses``; see the guide of networks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from graphsys.core.registry import SpecRegistry

TASKS_GROUP: Final = "graphsys.tasks"
SIDE_TASKS_GROUP: Final = "graphsys.side_tasks"
SAMPLERS_GROUP: Final = "graphsys.samplers"
DECODERS_GROUP: Final = "graphsys.decoders"
PAIR_LOSSES_GROUP: Final = "graphsys.pair_losses"


def _whole(graph: Any, config: Any) -> Any:
    return graph


@dataclass(frozen=True, kw_only=True)
class TaskSpec:
    """What a network is trained for.

    Attributes:
        name: What ``task`` names it in a config.
        make: From ``(graph, config)``, the :class:`graphsys.gnn.tasks.task.Task`.
        has_labels: Whether ``make`` also takes ``learned``: a
            :class:`graphsys.gnn.tasks.task.Learned` in place of the graph's own labels.
        is_of_links: Whether pairs of nodes are learned, not values of nodes.
        has_times: Whether its seeds are nodes that may have a column ``time``.
        view: From ``(graph, config)``, what of the graph carries messages; all by default.
        is_of_events: Whether edges are learned in order of time, so that models that
            follow them can be.
        is_of_graphs: Whether whole graphs are learned, from a store of many small ones.
        has_classes: Whether classes are learned, whose weights and targets may be set.
    """

    name: str
    make: Callable[..., Any]
    has_labels: bool = False
    is_of_links: bool = False
    has_times: bool = False
    view: Callable[[Any, Any], Any] = _whole
    is_of_events: bool = False
    is_of_graphs: bool = False
    has_classes: bool = False


@dataclass(frozen=True, kw_only=True)
class SideTaskSpec:
    """What is learned beside links, from the same rows.

    Attributes:
        name: What ``side_tasks`` names it in a config.
        make: From ``(config, shapes, num_out)``, the settings, the
            :class:`graphsys.gnn.data.features.InputShape` of the ends that have features,
            by node type, and the features of a row, a module. It maps rows
            ``[n, num_out]`` and inputs ``[n, F]`` of distinct nodes, by type, to the mean
            loss: a tensor of one number.
    """

    name: str
    make: Callable[[Any, Any, int], Any]


def _no(_: Any) -> bool:
    return False


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
        can_iterate: Whether it can weigh neighbors, in ``labor_iterations`` rounds.
        has_shares: From the config, whether entries have weights, for the mean of a row.
        can_be_recent: Whether it can take the latest neighbors.
        has_times: Whether it looks at the times of seeds.
        has_all_edges: Whether sums over its samples estimate those over all edges.
    """

    name: str
    make: Callable[[Any, Any], Any]
    is_usual: bool = False
    can_replace: bool = False
    can_weigh: bool = False
    can_iterate: bool = False
    has_shares: Callable[[Any], bool] = _no
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


@dataclass(frozen=True, kw_only=True)
class PairLossSpec:
    """How wrong the scores of pairs are beside those of their negatives.

    Attributes:
        name: What ``loss`` names it in a config.
        measure: From ``(config, positive, negative)``, the settings and scores ``[n, 1]``
            and ``[n, K]``, the mean loss: a tensor of one number. It falls where a
            positive rises or a negative falls, or stays.
    """

    name: str
    measure: Callable[[Any, Any, Any], Any]


TASKS = SpecRegistry(
    "task",
    TASKS_GROUP,
    TaskSpec,
    modules={
        "node_classification": "graphsys.gnn.tasks.task",
        "regression": "graphsys.gnn.tasks.regression",
        "graph_classification": "graphsys.gnn.tasks.graph_classification",
        "link_prediction": "graphsys.gnn.tasks.link_prediction",
        "recommendation": "graphsys.gnn.tasks.link_prediction",
        "temporal_link_prediction": "graphsys.gnn.tasks.temporal_links",
        "change_prediction": "graphsys.gnn.tasks.change_prediction",
    },
)
SIDE_TASKS = SpecRegistry(
    "side task",
    SIDE_TASKS_GROUP,
    SideTaskSpec,
    modules={"content": "graphsys.gnn.tasks.side_losses"},
)
SAMPLERS = SpecRegistry(
    "sampler",
    SAMPLERS_GROUP,
    SamplerSpec,
    modules=dict.fromkeys(("neighbor", "labor", "temporal"), "graphsys.gnn.data.samplers"),
)
DECODERS = SpecRegistry(
    "decoder",
    DECODERS_GROUP,
    DecoderSpec,
    modules=dict.fromkeys(
        ("dot", "cosine", "distmult", "mlp", "senses"), "graphsys.gnn.tasks.decoders"
    ),
)
PAIR_LOSSES = SpecRegistry(
    "loss",
    PAIR_LOSSES_GROUP,
    PairLossSpec,
    modules=dict.fromkeys(
        ("margin", "logistic", "bpr", "softmax"), "graphsys.gnn.tasks.pair_losses"
    ),
)
