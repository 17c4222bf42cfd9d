"""What a model is, said in its own file; and the list of all models.

A model of graphsys or of a third party is one file: its layer, and a :class:`ModelSpec`
that says how it is made and what it needs. Third parties give theirs as an entry point of
the group ``graphsys.models``; see README.md, "A model of one's own".
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from graphsys.core.errors import ConfigError
from graphsys.core.registry import SpecRegistry

GROUP: Final = "graphsys.models"
_FILES: Final = {
    "sage": "layers.sage",
    "gcn": "layers.gcn",
    "lightgcn": "layers.gcn",
    "gat": "layers.gat",
    "gatv2": "layers.gat",
    "gin": "layers.gin",
    "rgcn": "layers.relational",
    "hgt": "layers.relational",
    "han": "layers.han",
    "pinsage": "layers.pinsage",
    "gatne": "gatne",
    "tgn": "tgn",
    "jodie": "jodie",
    "edgebank": "edgebank",
    "recency": "recency",
    "evolving": "evolving",
    "sagpool": "sagpool",
    "diffpool": "diffpool",
    "hep": "hep",
    "ahep": "hep",
    "bem": "bem",
    "mixture": "mixture",
}


def _no(_: Any) -> bool:
    return False


def _everywhere(_: Any) -> None:
    return None


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """One model; one of the first five makes it.

    Attributes:
        name: What ``model`` names it in a config.
        make_layer: From ``(config, num_in, num_out, is_last)``, the layer of one relation:
            a module that maps ``(rows, x_src, x_dst)`` to the new rows ``[D, num_out]``.
        make_hop: From ``(config, relations, num_in, num_out)``, one layer over all
            relations: maps ``(rows, h, own)`` by relation and node type to rows by type.
        make_model: From ``(config, relations, shapes, decoder)``, a whole
            :class:`graphsys.gnn.models.model.Model` that shares nothing with the others.
        make_stream: From ``(config, events, decoder)``, a
            :class:`graphsys.gnn.models.stream.StreamModel`, which follows edges in order
            of time (``events``: :class:`graphsys.gnn.data.events.EventStream`).
        make_graph_model: From ``(config, relations, shapes, num_out, graph_type)``, a model
            of whole graphs, :class:`graphsys.gnn.models.graph_network.GraphNetwork` or
            what is made of it.
        messages: Where they come from: ``edges``; ``walks`` (PinSage's neighborhoods);
            ``relations``, each by itself; ``metapaths`` (needs the whole graph at once);
            ``layers``: edges from a few sources that all nodes of a hop share, weighted;
            ``none``: a node's own input is all that is read.
        weights: Of messages: ``none``, or ``degrees`` of the whole graph.
        has_loops: Whether every node sends a message to itself.
        exit_layers: Linear layers after the last one, 0 to 2; others go without.
        has_activation: Whether a layer ends with its own.
        is_mean_of_layers: Whether the output is the mean of the input and of all layers'.
        is_linear: From the config, whether a layer begins with a linear map, so that
            features that are mostly zero stay as entries.
        has_heads: Whether ``heads`` share ``dim``.
        is_of_links: Whether its rows are only compared with each other.
        is_whole_graph: Whether messages of a step go over the whole graph.
        is_skipgram: Whether it learns from windows of walks, whatever ``positives`` say.
        decoder: Of its rows, where others have the config's; "": as others.
        default_fanout: Neighbors per hop.
        device_gap: From the config, what a device has no kernels for, as the setting and
            the values that it has them for; None where it has all.
    """

    name: str
    make_layer: Callable[[Any, int, int, bool], Any] | None = None
    make_hop: Callable[[Any, Any, int, int], Any] | None = None
    make_model: Callable[[Any, Any, Any, Any], Any] | None = None
    make_stream: Callable[[Any, Any, Any], Any] | None = None
    make_graph_model: Callable[[Any, Any, Any, int, str], Any] | None = None
    messages: Literal["edges", "walks", "relations", "metapaths", "layers", "none"] = (
        "edges"
    )
    weights: Literal["none", "degrees"] = "none"
    has_loops: bool = False
    exit_layers: int = 0
    has_activation: bool = False
    is_mean_of_layers: bool = False
    is_linear: Callable[[Any], bool] = _no
    has_heads: bool = False
    is_of_links: bool = False
    is_whole_graph: bool = False
    is_skipgram: bool = False
    decoder: str = ""
    default_fanout: int = 10
    device_gap: Callable[[Any], tuple[str, str] | None] = _everywhere

    def __post_init__(self) -> None:
        """Refuse what cannot be made.

        Raises:
            ConfigError: Not one of the five ways to make it is given.
        """
        ways: tuple[Any, ...] = (self.make_layer, self.make_hop, self.make_model)
        ways = (*ways, self.make_stream, self.make_graph_model)
        if sum(way is not None for way in ways) != 1:
            raise ConfigError(
                f"model {self.name!r}: expected one of make_layer, make_hop, make_model, "
                "make_stream, make_graph_model"
            )


models = SpecRegistry(
    "model",
    GROUP,
    ModelSpec,
    modules={name: f"graphsys.gnn.models.{file}" for name, file in _FILES.items()},
)
register = models.add
spec_of = models.get
model_names = models.names
