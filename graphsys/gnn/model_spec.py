"""What a model is, said in its own file; and the list of all models.

A model of graphsys or of a third party is one file: its layer, and a :class:`ModelSpec`
that says how it is made and what it needs. Third parties give theirs as an entry point of
the group ``graphsys.models``, users by its place, ``my_model.py:Net``. Of both a class of
``torch.nn.Module`` is enough, which is a layer; see the guide of networks.
"""

import hashlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from graphsys.core.errors import CompileError, ConfigError, told_with_place, user_place
from graphsys.core.registry import Registry, file_and_name, load_from_file

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
        reads_shares: From the config, whether a layer's means heed the weights of entries
            that a sampler gives (``labor_iterations``).
        has_heads: Whether ``heads`` share ``dim``.
        is_of_links: Whether its rows are only compared with each other.
        is_whole_graph: Whether messages of a step go over the whole graph.
        is_skipgram: Whether it learns from windows of walks, whatever ``positives`` say.
        decoder: Of its rows, where others have the config's; "": as others.
        default_fanout: Neighbors per hop.
        reads_fanouts: Whether it takes as many neighbors as ``fanouts`` say, where some
            are drawn.
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
    reads_shares: Callable[[Any], bool] = _no
    has_heads: bool = False
    is_of_links: bool = False
    is_whole_graph: bool = False
    is_skipgram: bool = False
    decoder: str = ""
    default_fanout: int = 10
    reads_fanouts: bool = True
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


def spec_of_module(name: str, cls: type) -> ModelSpec:
    """Return the model whose layers are modules of a class.

    Args:
        name: What messages call it.
        cls: The class of ``torch.nn.Module``. A layer is made as ``cls(num_in, num_out)``
            and called with ``(rows, x_src, x_dst)``: where messages go
            (:class:`graphsys.gnn.SparseRows`), rows of all sources, float32
            ``[rows.num_src, num_in]``, and of the nodes themselves
            ``[rows.num_dst, num_in]``. It returns new ones ``[rows.num_dst, num_out]``.
    """
    place = _place_of(cls)

    def make(config: Any, num_in: int, num_out: int, is_last: bool) -> Any:
        try:
            layer = cls(num_in, num_out)
        except Exception as err:
            text = told_with_place(err, user_place(err) or place)
            raise CompileError(
                f"{text} (a layer is made as {cls.__name__}({num_in}, {num_out}): the "
                "features of its input and of its output)"
            ) from err
        _require_callable(layer, place)
        layer.register_forward_hook(_OutputCheck(name, place, num_out))
        return layer

    return ModelSpec(name=name, make_layer=make)


def _require_callable(layer: Any, place: str) -> None:
    """Check that a layer takes what it is called with, and has its parameters.

    Raises:
        ConfigError: It does not.
    """
    from torch import nn

    try:
        inspect.signature(layer.forward).bind(None, None, None)
        is_own = type(layer).forward is not nn.Module.forward
    except TypeError:
        is_own = False
    if not is_own:
        raise ConfigError(
            f"{place}: forward of {type(layer).__name__} cannot be called as a layer; "
            "expected forward(self, rows, x_src, x_dst): where messages go, the rows of "
            "their sources and of the nodes themselves"
        )
    lazy = [name for name, it in layer.named_parameters() if nn.parameter.is_lazy(it)]
    if lazy:
        raise ConfigError(
            f"{place}: parameter {lazy[0]} of {type(layer).__name__} has no shape yet; "
            "expected no Lazy modules: __init__(self, num_in, num_out) is told all sizes"
        )


class _OutputCheck:
    """Refuses what a layer returns, if it is no row for each node.

    Args:
        name: Of the model.
        place: File and line of its class.
        num_out: Features that a row is to have.
    """

    def __init__(self, name: str, place: str, num_out: int) -> None:
        self._name, self._place, self._num_out = name, place, num_out

    def __call__(self, layer: Any, given: Any, found: Any) -> None:
        """Look at the output of a layer, which was given ``(rows, x_src, x_dst)``."""
        import torch

        expected = (int(given[0].num_dst), self._num_out)
        is_tensor = isinstance(found, torch.Tensor)
        if is_tensor and tuple(found.shape) == expected and found.is_floating_point():
            return
        got = f"{list(found.shape)} of {found.dtype}" if is_tensor else type(found).__name__
        raise ConfigError(
            f"{self._place}: forward returned {got}, expected a float tensor "
            f"[{expected[0]}, {expected[1]}]: a row of num_out features for each of "
            "rows.num_dst nodes"
        )


def _place_of(cls: type) -> str:
    """Return file and line at which a class begins, or its forward."""
    found = vars(cls).get("forward", cls)
    try:
        file = inspect.getsourcefile(found) or inspect.getfile(found)
        return f"{file}:{inspect.getsourcelines(found)[1]}"
    except (OSError, TypeError):
        return f"{cls.__module__}.{cls.__qualname__}"


def is_file(model: str) -> bool:
    """Tell whether a model is named by its file.

    Examples:
        >>> is_file("my.py:Net"), is_file("my.py"), is_file("sage")
        (True, True, False)
    """
    return ".py:" in model or model.endswith(".py")


def checksum_of(source: bytes) -> str:
    """Return the checksum of a file that is to be executed, which nobody can forge."""
    return f"sha256:{hashlib.sha256(source).hexdigest()}"


def _is_module(value: Any) -> bool:
    from torch import nn

    return isinstance(value, type) and issubclass(value, nn.Module)


def _adapted(found: Any) -> ModelSpec:
    """Return what an entry point gives as a model.

    Raises:
        TypeError: It gives none.
    """
    if isinstance(found, ModelSpec):
        return found
    if _is_module(found):
        return spec_of_module(found.__name__, found)
    kind = found.__name__ if isinstance(found, type) else type(found).__name__
    raise TypeError(f"expected a ModelSpec or a class of torch.nn.Module, got {kind}")


class ModelRegistry(Registry[ModelSpec]):
    """The models by name, and those that were loaded from users' files by their place."""

    def __init__(self) -> None:
        files = {name: f"graphsys.gnn.models.{file}" for name, file in _FILES.items()}
        super().__init__("model", GROUP, adapt=_adapted, modules=files)
        self._loaded: dict[str, tuple[str, ModelSpec]] = {}

    def get(self, name: str) -> ModelSpec:
        """Return a model; one of a file that another process has named is loaded.

        Raises:
            UnknownNameError: There is none; the message lists the known names.
            ConfigError: There is no such file, or no such class in it.
            CompileError: The file has an error; the message has its line.
        """
        if not is_file(name):
            return super().get(name)
        if name not in self._loaded:
            self.load(name)
        return self._loaded[name][1]

    def add(self, spec: ModelSpec) -> ModelSpec:
        """Register a model under its name, which is given once."""
        return self.register(spec.name)(spec)

    def load(self, place: str) -> tuple[str, str]:
        """Run the file of a user's model, unless it has not changed since it was run.

        Args:
            place: ``my_model.py:Net``: a class of ``torch.nn.Module``, or a
                :class:`ModelSpec`. A relative path is taken from the working directory.

        Returns:
            The same with the whole path, by which :meth:`get` knows it, and the checksum
            of the file.

        Raises:
            ConfigError: There is no such file, or no such class in it.
            CompileError: The file has an error; the message has its line.
        """
        path, name = file_and_name(place)
        if not path.is_file():
            raise ConfigError(f"{path}: there is no such file")
        source = path.read_bytes()
        seen, place = checksum_of(source), f"{path.resolve()}:{name}"
        if name and seen == self.digest_of(place):
            return place, seen
        found = load_from_file(
            place,
            lambda it: isinstance(it, ModelSpec) or _is_module(it),
            kinds="models",
            source=source,
        )
        if not name:
            place += found.__name__ if isinstance(found, type) else found.name
        spec = found if isinstance(found, ModelSpec) else spec_of_module(place, found)
        self._loaded[place] = seen, spec
        return place, seen

    def digest_of(self, name: str) -> str:
        """Return the checksum of the file that a model was loaded from; "" of others."""
        return self._loaded[name][0] if name in self._loaded else ""


models = ModelRegistry()
register = models.add
spec_of = models.get
model_names = models.names
