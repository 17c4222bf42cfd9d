"""What a vertex program is made of: the only classes a user subclasses.

Nothing here compiles or loads numba; :mod:`graphsys.engine.codegen.spec` reads these
declarations, :mod:`graphsys.engine.codegen.lower` the functions.
"""

import difflib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from graphsys.core.caller_warnings import note
from graphsys.core.errors import ConfigError, unknown_name


class NodeId:
    """Type of parameters and states that name a node by the user's id.

    Inside a program such a value is the node's place among all user ids in order, so
    comparing two of them compares ids, whatever the partitions. In results it is the id.
    """


class _SelfId:
    """Stands for the node itself, as the default of a :class:`NodeId` state."""

    def __repr__(self) -> str:
        return "gs.own_id"


class _Component:
    """Stands for the number of the component that a function is computing."""

    def __repr__(self) -> str:
        return "gs.component"


component: Any = _Component()
"""In a function of a program with vector states: the component it computes, 0, 1, ..."""

own_id = _SelfId()
"""Default of a :class:`NodeId` state: the node itself."""

NO_NODE = -1
"""The value of a :class:`NodeId` state that names no node; null in results."""

_UNSET: Any = object()


@dataclass(frozen=True, slots=True)
class NumberedStates:
    """States of many nodes at the start of a run, without a Python object for each.

    What :meth:`VertexProgram.start` may return in place of a mapping by user id.

    Attributes:
        numbers: The nodes by the engine's numbers (``NodeNumbers``), int64 ``[K]``,
            ascending, each once.
        values: Values ``[K]``, or one for all, by state, of the state's dtype; of a
            :class:`NodeId` state places among all ids.
    """

    numbers: Any
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class State:
    """A value that every node holds; made by :func:`state`."""

    dtype: Any
    default: Any
    null: Any
    num_components: int = 0
    """How many numbers it is; 0 for one that is no vector."""


@dataclass(frozen=True, slots=True)
class EdgeState:
    """A value that every edge holds; made by :func:`edge_state`, or a column of the store.

    Attributes:
        dtype: Its type.
        default: What it is at first; of a column, what an edge that is not there has.
        is_column: Whether it is a column, which is read and never stored.
    """

    dtype: str
    default: float
    is_column: bool = False


@dataclass(frozen=True, slots=True)
class Aggregator:
    """A total over nodes; made by :func:`aggregator`."""

    operation: Literal["sum", "minimum", "maximum"]


@dataclass(frozen=True, slots=True)
class Combiner:
    """How the messages to a node become one.

    Attributes:
        name: ``sum``, ``mean``, ``minimum``, ``maximum``, ``argmin``, ``argmax``, ``mode``,
            ``any`` or ``own``.
        function: The user's function of two messages, for ``own``.
        identity: What combining with changes nothing, for ``own``.
        idempotent: Whether the same message twice counts once.
    """

    name: str
    function: Callable[[Any, Any], Any] | None = None
    identity: Any = None
    idempotent: bool = False

    def __call__(self, *values: Any) -> Any:
        """Refuse: a combiner is a declaration."""
        raise TypeError(f"gs.{self.name} declares how to combine, it does not compute")


sum_ = Combiner("sum")
mean = Combiner("mean")
minimum = Combiner("minimum", idempotent=True)
maximum = Combiner("maximum", idempotent=True)
argmin = Combiner("argmin", idempotent=True)
argmax = Combiner("argmax", idempotent=True)
mode = Combiner("mode")
any_ = Combiner("any", idempotent=True)


def combiner(
    function: Callable[[Any, Any], Any], *, identity: Any, idempotent: bool = False
) -> Combiner:
    """Combine messages by a function of two, which must not care about order.

    Args:
        function: Commutative and associative, of two messages; compiled. Of two vectors it
            combines each component with its like.
        identity: The message that changes nothing; a tuple where messages are tuples.
        idempotent: Whether combining a message with itself gives the message.
    """
    return Combiner("own", function, identity, idempotent)


def state(dtype: Any, default: Any = 0, *, null: Any = _UNSET, shape: Any = None) -> Any:
    """Declare a value that every node holds.

    Args:
        dtype: ``"float64"``, ``"int32"``, ``"bool"`` ... or :class:`NodeId`.
        default: Its first value: a number, or ``gs.own_id`` for a :class:`NodeId`.
        null: The value that is null in results. By default an infinite ``default``, and
            ``gs.NO_NODE``.
        shape: ``(K,)``: a vector of so many numbers. Functions are then written for one
            component and applied to each; all vectors of a program have one length.

    Raises:
        ConfigError: a default that is no number, a shape of other than one dimension, a
            vector of nodes or with a null.

    Examples:
        >>> state("float32", default=float("inf")).null
        inf
        >>> state("float32", shape=(16,)).num_components
        16
    """
    _require_scalar("default", default)
    num_components = _components_of(shape)
    if num_components:
        if dtype is NodeId:
            raise ConfigError(
                "a state of gs.NodeId has no shape: declare one for each node"
            )
        if null is not _UNSET and null is not None:
            raise ConfigError(
                f"a vector state has no null, got null={null!r}; leave it out"
            )
        return State(dtype, default, None, num_components)
    if null is _UNSET:
        infinite = isinstance(default, float) and default in (float("inf"), -float("inf"))
        null = default if infinite else None
    if dtype is NodeId:
        default = NO_NODE if default is None else default
        null = NO_NODE
    return State(dtype, default, null)


def _components_of(shape: Any) -> int:
    """Return how many numbers a state of a shape is, 0 for one that is no vector."""
    if shape is None or shape == ():
        return 0
    sizes = shape if isinstance(shape, tuple | list) else (shape,)
    is_one = len(sizes) == 1 and isinstance(sizes[0], int) and sizes[0] > 0
    if not is_one or isinstance(sizes[0], bool):
        raise ConfigError(
            f"a state is a number or a vector, but shape={shape!r}; expected one "
            'dimension, such as gs.state("float32", shape=(16,))'
        )
    return int(sizes[0])


def _require_scalar(name: str, value: Any) -> None:
    """Refuse what is no number as the first value of a state."""
    if value is None or value is own_id or isinstance(value, bool | int | float):
        return
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if dtype is not None and shape == () and dtype.kind in "biuf":
        return
    kind = f"{name} is {type(value).__name__}"
    found = f"{kind} of shape {shape}" if shape else kind
    raise ConfigError(
        f"a state begins as one number, but {found}; give a number. Only a state of nodes "
        'may be a vector: gs.state("float32", shape=(16,)), whose components init or start '
        "may set"
    )


def edge_state(dtype: str, default: float = 0) -> Any:
    """Declare a value that every edge holds, in each direction its own.

    ``edge.name`` reads it in ``message``, ``edge.reverse.name`` that of the way back. A
    phase with ``stores = "name"`` keeps its messages there (the first value of a tuple);
    edges whose sender or receiver takes no part keep what they had.

    In an undirected graph, and in phases of direction ``both``, the way back is the same
    edge from its other end. Else it is an edge from the receiver to the sender; the k-th of
    several, in the order of weights, belongs to the k-th there, and without one the default
    is read. All phases that use states of edges have one direction in directed graphs.
    """
    _require_scalar("default", default)
    return EdgeState(dtype, default)


def aggregator(operation: Combiner = sum_) -> Any:
    """Declare a total over the nodes that a superstep updates: sum, minimum or maximum."""
    if operation.name not in ("sum", "minimum", "maximum"):
        raise ConfigError(
            f"an aggregator takes gs.sum, gs.minimum or gs.maximum, got gs.{operation.name}"
        )
    return Aggregator(operation.name)  # type: ignore[arg-type]


def random(seed: int, node: int, draw: int) -> float:
    """Return a number in [0, 1) that depends on the three arguments alone.

    For use in programs: draws keyed by ``node.id`` are the same for any partitioning and
    number of threads.
    """
    raise TypeError("gs.random is compiled into programs; call it in message or update")


random.graphsys_kernel = ("graphsys.kernels.cpu.hashing", "random_fraction")  # type: ignore[attr-defined]


class _Functions:
    """The functions and settings that programs and phases share."""

    direction: ClassVar[Literal["out", "in", "both"]] = "out"
    """Messages travel along the edges, against them, or both ways."""
    schedule: ClassVar[Literal["changed", "all"] | None] = None
    """Who sends: nodes whose state changed, or all. See architecture.md."""
    max_supersteps: int | None = None
    """Give up after so many; ``__init__`` of a program may change it."""
    message_type: ClassVar[Any] = None
    """Dtype of messages (a tuple of dtypes for tuples), where it should not be inferred."""
    stores: ClassVar[str | None] = None
    """Name of the edge state that keeps the messages."""

    message: ClassVar[Any] = None
    combine: ClassVar[Any] = None
    update: ClassVar[Any] = None
    active: ClassVar[Any] = None
    """``active(self, node)``: whether the node may send."""
    accepts: ClassVar[Any] = None
    """``accepts(self, node)``: whether the node takes messages now."""
    aggregate: ClassVar[Any] = None
    """``aggregate(self, before, node)``: the node's part of every aggregator, in order."""
    until: ClassVar[Any] = None
    """``until(self, totals)``: plain Python; true ends the loop."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Tell of what nothing reads, where its name is nearly one that is read."""
        super().__init_subclass__(**kwargs)
        if not cls.__module__.startswith("graphsys."):
            _note_misspelled(cls)


def _note_misspelled(cls: type) -> None:
    """Say of functions and settings whose names are nearly those of a program."""
    bases = [base for base in cls.__mro__ if base.__module__ == __name__]
    read = {name for base in bases for name in vars(base) if not name.startswith("_")}
    missing = (read | {"identity", "idempotent"}) - vars(cls).keys()
    declared = (State, EdgeState, Aggregator, type)
    for name, value in vars(cls).items():
        is_other = name in read or name in inspect.get_annotations(cls)
        if is_other or name.startswith("_") or isinstance(value, declared):
            continue
        for close in difflib.get_close_matches(name, missing, n=1, cutoff=0.8):
            note(f"{cls.__name__}.{name} is not read by any run; did you mean {close!r}?")


class Phase(_Functions):
    """One step of a program of several; inner classes of the program.

    A phase sees the program's parameters, states and aggregators as ``self.x`` and
    ``node.x``. It runs one superstep, or with ``repeat = True`` as many as it takes: until
    no node changes, ``until`` is true, or ``max_supersteps``.
    """

    repeat: ClassVar[bool] = False
    updates: ClassVar[tuple[str, ...] | None] = None
    """The states that ``update`` returns, in order; all by default."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Stand for what a phase sees of its program."""


class VertexProgram(_Functions):
    """A graph algorithm written from a node's point of view.

    Class attributes declare parameters (annotated), states, aggregators and functions; see
    the guide of programs. An instance holds the values of the parameters.

    Args:
        parameters: Values of the annotated attributes by name.

    Raises:
        ConfigError: a parameter is missing, or of the wrong type.
        UnknownNameError: there is no such parameter.
    """

    phases: ClassVar[tuple[type[Phase], ...] | None] = None
    loop: ClassVar[bool] = False
    """Whether the phases start again after the last, until ``until`` or no change."""
    delta: ClassVar[bool] = False
    """Send changes of messages instead of messages; for sums."""
    delta_tolerance: ClassVar[float] = 0.0
    """With ``delta``: a node sends when its message moved by more than this."""
    simple: ClassVar[bool] = False
    """Run on the simple undirected graph: no direction, loops, repetitions and columns."""

    start_bytes: ClassVar[int] = 0
    """What ``start`` takes for itself, in bytes per node: part of what a run needs."""

    when_cut_short: ClassVar[str] = ""
    """What helps where a limit ended a run, if not more supersteps: part of the warning."""
    results: ClassVar[tuple[str, ...] | None] = None
    """The states that the result shows; all by default."""

    init: ClassVar[Any] = None
    """``init(self, node)``: first value of every state, in order; compiled."""

    # read-only inside ``message`` and ``update``
    num_nodes: int
    num_edges: int
    superstep: int
    totals: Mapping[str, float]
    superstep_limit: int | None
    """What the run is limited to by whoever started it; for ``until``."""

    def __init__(self, **parameters: Any) -> None:
        known = parameter_types(type(self))
        for name, value in parameters.items():
            if name not in known:
                raise unknown_name(f"parameter of {type(self).__name__}", name, known)
            setattr(self, name, _checked(type(self).__name__, name, known[name], value))
        for name, kind in known.items():
            if not hasattr(self, name):
                raise ConfigError(
                    f"{type(self).__name__} needs the parameter {name!r} "
                    f"({getattr(kind, '__name__', kind)})"
                )

    def start(self, graph: Any) -> Mapping[Any, Mapping[str, Any]] | NumberedStates | None:
        """Return states that differ from the default, by user id: the first to send.

        None: every node sends first. Of many nodes better :class:`NumberedStates`.
        """
        return None

    def answer(self, table: Any) -> int | float | None:
        """Return the result where it is one number (``Result.result``); plain Python.

        Args:
            table: The result, an Arrow table.
        """
        return None

    def total(self, name: str) -> float:
        """Return an aggregator's total over the last superstep that computed it.

        Compiled in ``message`` and ``update``; in ``answer`` and ``until`` plain Python.
        """
        return self.totals[name]


_RESERVED = (
    "num_nodes",
    "num_edges",
    "superstep",
    "totals",
    "max_supersteps",
    "superstep_limit",
)


def parameter_types(program: type[VertexProgram]) -> dict[str, Any]:
    """Return the annotated attributes of a program: its parameters and their types."""
    found: dict[str, Any] = {}
    names = {"NodeId": NodeId, "int": int, "float": float, "bool": bool, "str": str}
    for base in reversed(program.__mro__):
        if base in (object, _Functions, VertexProgram):
            continue
        for name, kind in inspect.get_annotations(base).items():
            if name in _RESERVED or "ClassVar" in str(kind):
                continue
            if isinstance(kind, str):
                kind = names.get(kind.rpartition(".")[2], kind)
            found[name] = kind
    return found


def _checked(program: str, name: str, kind: Any, value: Any) -> Any:
    if kind is NodeId:
        return value
    try:
        if kind is bool and isinstance(value, str):
            return {"true": True, "1": True, "false": False, "0": False}[value.lower()]
        if kind is int and (isinstance(value, bool) or int(value) != float(value)):
            raise ValueError
        return kind(value) if kind in (int, float, bool, str) else value
    except (ValueError, TypeError, KeyError) as err:
        raise ConfigError(
            f"parameter {name!r} of {program} is of type {kind.__name__}, got {value!r}"
        ) from err
