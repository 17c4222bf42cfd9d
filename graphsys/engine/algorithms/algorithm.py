"""What is behind a listed algorithm: a vertex program, a native kernel, or both.

The user need not know which. The native one runs where there are both, unless the program
is asked for (``implementation="program"``) or only the program can do it: in less memory,
on CUDA.
"""

import functools
import importlib
import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ParamSpec, Protocol, TypedDict, cast

import pyarrow as pa

from graphsys.core.errors import BudgetError, ConfigError, unknown_name
from graphsys.core.threads import require_threads
from graphsys.engine.last_result import AGAIN, prepare_from
from graphsys.engine.memory_plan import Facts, Need
from graphsys.engine.native_plan import NativeRun, prepare_native
from graphsys.engine.parameters import fitted
from graphsys.engine.program import VertexProgram, parameter_types
from graphsys.engine.program_run import ProgramRun, prepare_program
from graphsys.engine.result import Result
from graphsys.engine.run import run
from graphsys.engine.topology import Topology
from graphsys.storage.reader import GraphReader

_PROGRAMS = "graphsys.engine.programs."
_FOLLOWERS = "graphsys.engine.incremental."
Parameters = ParamSpec("Parameters")
GraphLike = GraphReader | Topology | str | os.PathLike[str] | Any


class NativeOptions(TypedDict, total=False):
    """Options of every algorithm: ``memory`` ("4GB", or bytes) and ``num_threads``.

    ``last`` is a result of the store as it was some appends ago, or its file: those of
    whose entry names a follower go on from it.
    """

    memory: int | str | None
    num_threads: int | None
    last: Result | pa.Table | str | os.PathLike[str] | None


class RunOptions(NativeOptions, total=False):
    """Options of algorithms that are vertex programs; those of ``gs.run``.

    ``implementation`` is ``native`` or ``program``, where there are both.
    """

    implementation: str | None
    require_convergence: bool
    checkpoint: str | os.PathLike[str] | None
    checkpoint_every: int
    resume: bool
    check: bool
    device: str
    strategy: str
    device_memory: int | str | None


class ProgramOptions(RunOptions, total=False):
    """Those of :class:`RunOptions`, and ``max_supersteps``: stop after so many."""

    max_supersteps: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A graph on which an algorithm can be tried: what warm-up, benchmarks and tests take.

    Attributes:
        dataset: A generated data set, as of ``graphsys dataset build``.
        settings: Parameters of the data set.
        parameters: Those without which the algorithm does not run, as for this data set.
        needs: What the algorithm asks of a graph beyond edges, for people; or "".
        largest: R-MAT scale on which the algorithm still ends in seconds, for benchmarks.
    """

    dataset: str = "rmat"
    settings: Mapping[str, Any] = field(default_factory=lambda: {"scale": 8})
    parameters: Mapping[str, Any] = field(default_factory=dict)
    needs: str = ""
    largest: int = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Algorithm:
    """One algorithm of the list.

    Attributes:
        name: Its name in Python and on the command line.
        summary: What it computes, in one line.
        native: What computes it on a topology; None if only a program does.
        needs: Tells what the native one takes.
        program: ``module:Class`` under ``engine/programs``, or a function of the same
            parameters that returns a program, or "".
        follower: ``module:function`` under ``engine/incremental``: what goes on natively
            from the result of before some appends; or "".
        answers: Whether the native one gives a number, besides the table.
        shown: Which rows a preview shows: the ``largest`` or ``smallest`` by the first
            column behind the ids, or those that are ``stored`` first.
        tags: Names it has elsewhere: in Xu, Jeon, Annavaram, "Graph Processing on GPUs:
            Where are the Bottlenecks?", IISWC 2014.
        example: A graph on which it can be tried.
        function: What users call, with its signature and docstring.
    """

    name: str
    summary: str
    native: Callable[..., Result] | None = None
    needs: Callable[[Facts], Need] | None = None
    program: str = ""
    follower: str = ""
    answers: bool = False
    shown: str = "stored"
    tags: tuple[str, ...] = ()
    example: Example
    function: Callable[..., Any]

    @property
    def has_answer(self) -> bool:
        """Whether the result is one number, besides the table."""
        if self.answers:
            return True
        made = self.program_class() if self.program else VertexProgram
        given = getattr(made, "answer", VertexProgram.answer)
        return given is not VertexProgram.answer

    def native_function(self) -> Callable[..., Result]:
        """Return the native implementation."""
        assert self.native is not None, self.name
        return self.native

    def program_class(self) -> Callable[..., VertexProgram]:
        """Return what makes the vertex program of its parameters."""
        return _loaded(_PROGRAMS, self.program)  # type: ignore[no-any-return]

    def parameters(self, implementation: str | None = None) -> Mapping[str, Any]:
        """Return types of parameters by name: an implementation's, or those of both."""
        if implementation is None and self.native and self.program:
            return {**self.parameters("program"), **self.parameters("native")}
        if self._uses_native(implementation):
            given = _signature(self.native_function()).parameters.values()
            return {p.name: p.annotation for p in given if p.kind is p.KEYWORD_ONLY}
        return _program_parameters(self.program)

    def __call__(
        self,
        graph: GraphReader | Topology | str | os.PathLike[str],
        *,
        implementation: str | None = None,
        num_threads: int | None = None,
        **options: Any,
    ) -> Result:
        """Run the algorithm.

        Args:
            graph: An open graph, its path, or edges in memory.
            implementation: ``native`` or ``program``; the faster that fits by default.
            num_threads: Threads; all cores by default.
            options: The algorithm's parameters; ``memory``, as for ``gs.run``; ``last``, a
                result of before the last appends to go on from; and other arguments
                of ``gs.run`` (``device`` ...), which only programs take.

        Raises:
            UnknownNameError: there is no such parameter, or no such node.
            ConfigError: a parameter is missing or does not fit.
            BudgetError: nothing fits the budget; the message names one that works.

        Warns:
            NotConvergedWarning: a limit ended the run; ``Result.converged`` is false.
        """
        work = self.prepare(
            graph, implementation=implementation, num_threads=num_threads, **options
        )
        return work.run().warned()

    def prepare(
        self,
        graph: GraphReader | Topology | str | os.PathLike[str],
        *,
        implementation: str | None = None,
        num_threads: int | None = None,
        **options: Any,
    ) -> NativeRun | ProgramRun:
        """Decide what will run and how it will use memory, without running it.

        Takes and refuses what a call does.

        Returns:
            What ``run()`` runs and ``explanation()`` tells of.

        Raises:
            UnknownNameError: there is no such parameter.
            ConfigError: a parameter is missing or does not fit.
            BudgetError: nothing fits the budget; the message names one that works.
        """
        topology = Topology.of(graph)
        require_threads(num_threads)
        kinds = self.parameters()
        for name in options.keys() & kinds.keys():
            what = f"parameter {name} of {self.name}"
            options[name] = fitted(options[name], kinds[name], what)
        last = options.pop("last", None)
        if last is not None:
            return self._from_last(last, topology, implementation, num_threads, options)
        if implementation is None and self.native and self.program:
            only = self.parameters("program").keys() - self.parameters("native").keys()
            implementation = "program" if only & options.keys() else None
        own = self.parameters("native" if self._uses_native(implementation) else "program")
        names = [n for n in options if n in _PROGRAM_OPTIONS and n not in own]
        given = {name: options.pop(name) for name in names}
        settings = {n: value for n, value in given.items() if value is not None}
        memory = settings.pop("memory", None)
        if implementation is None and settings and self.program:
            implementation = "program"
        if not self._uses_native(implementation):
            return self._program(topology, own, options, memory, num_threads, settings)
        if settings:
            raise ConfigError(
                f"{self.name} is native and has no option {next(iter(settings))!r}; it "
                "runs on the CPU, from its beginning to its end"
            )
        try:
            return self._native(topology, own, options, memory, num_threads)
        except BudgetError as err:
            may_change = implementation is None and self.program
            if not may_change or not options.keys() <= self.parameters("program").keys():
                raise
            return self._or(err, topology, options, memory, num_threads)

    def _from_last(
        self,
        last: Any,
        topology: Topology,
        implementation: str | None,
        num_threads: int | None,
        options: dict[str, Any],
    ) -> NativeRun:
        """Return the run that brings a result up to date; what it cannot do is refused."""
        memory = options.pop("memory", None)
        settings = {n for n, value in options.items() if value is not None}
        own = self.parameters("native") if self.native else {}
        for name in sorted((settings & set(_PROGRAM_OPTIONS)) - own.keys()):
            raise ConfigError(
                f"{name} does not go with a last result; leave out one of them"
            )
        if implementation == "program":
            raise ConfigError("a last result is followed natively; leave out 'program'")
        if not self.follower or self.native is None or self.needs is None:
            raise ConfigError(
                f"{self.name} does not go on from a last result, only "
                f"{', '.join(followed())} do; {AGAIN}"
            )
        self._check_options(self.native, own, options)
        return prepare_from(
            last,
            self.name,
            self.native,
            _loaded(_FOLLOWERS, self.follower),
            self.needs,
            topology,
            options,
            memory,
            num_threads,
        )

    def _native(
        self,
        topology: Topology,
        own: Iterable[str],
        options: Mapping[str, Any],
        memory: int | str | None,
        num_threads: int | None,
    ) -> NativeRun:
        function = self.native_function()
        self._check_options(function, own, options)
        options = {**options, "num_threads": num_threads}
        assert self.needs is not None, self.name
        return prepare_native(self.name, function, topology, options, memory, self.needs)

    def _program(
        self,
        topology: Topology,
        own: Iterable[str],
        options: Mapping[str, Any],
        memory: int | str | None,
        num_threads: int | None,
        settings: Mapping[str, Any],
    ) -> ProgramRun:
        made = self.program_class()
        if not isinstance(made, type):
            self._check_options(made, own, options)
        return prepare_program(
            made(**options),
            topology,
            name=self.name,
            memory=memory,
            num_threads=num_threads,
            **settings,
        )

    def _or(
        self,
        refusal: BudgetError,
        topology: Topology,
        options: Mapping[str, Any],
        memory: int | str | None,
        num_threads: int | None,
    ) -> ProgramRun:
        """Return the program where the native algorithm was refused for its memory."""
        own = self.parameters("program")
        try:
            return self._program(topology, own, options, memory, num_threads, {})
        except BudgetError as err:
            raise min(refusal, err, key=lambda error: error.smallest) from None

    def _check_options(
        self, function: Callable[..., Any], known: Iterable[str], options: Mapping[str, Any]
    ) -> None:
        for name in options:
            if name not in known:
                raise unknown_name(f"parameter of {self.name}", name, known)
        given = _signature(function).parameters
        for name in known:
            if given[name].default is inspect.Parameter.empty and name not in options:
                raise ConfigError(f"{self.name} needs the parameter {name!r}")

    def _uses_native(self, implementation: str | None) -> bool:
        if implementation not in (None, "native", "program"):
            raise ConfigError(
                f"implementation must be 'native' or 'program', got {implementation!r}"
            )
        wanted = implementation or ("native" if self.native else "program")
        if not getattr(self, wanted):
            raise ConfigError(f"{self.name} has no {wanted} implementation")
        return wanted == "native"


_PROGRAM_OPTIONS = tuple(
    name
    for name in inspect.signature(run).parameters
    if name not in ("program", "graph", "num_threads", "progress")
)


@functools.cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    """Return a signature: every call of an algorithm asks for some."""
    return inspect.signature(function)


@functools.cache
def _program_parameters(program: str) -> Mapping[str, Any]:
    """Return the types of a program's parameters by name, kept as signatures are."""
    made = _loaded(_PROGRAMS, program)
    if isinstance(made, type):
        return parameter_types(made)
    return {n: p.annotation for n, p in inspect.signature(made).parameters.items()}


_PLAIN = Example()


def _loaded(room: str, place: str) -> Any:
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(room + module), attribute)


class Listed(Protocol[Parameters]):
    """An algorithm as users call it.

    Attributes:
        native: What computes it on a topology, with no budget looked at; programs have
            none that can be called.
    """

    native: Callable[Parameters, Result]

    def __call__(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        """Run it: natively or as a program, within the budget."""


def listed(
    *,
    native: Callable[..., Result] | None = None,
    needs: Callable[[Facts], Need] | None = None,
    program: str = "",
    follower: str = "",
    answers: bool = False,
    shown: str = "stored",
    tags: tuple[str, ...] = (),
    example: Example = _PLAIN,
) -> Callable[[Callable[Parameters, Result | None]], Listed[Parameters]]:
    """Put an algorithm on the list by its signature and docstring.

    Args:
        native: As in :class:`Algorithm`, where it is another function than the one that
            is decorated.
        needs: As in :class:`Algorithm`.
        program: As in :class:`Algorithm`.
        follower: As in :class:`Algorithm`.
        answers: As in :class:`Algorithm`.
        shown: As in :class:`Algorithm`.
        tags: As in :class:`Algorithm`.
        example: As in :class:`Algorithm`.

    Returns:
        A decorator of the native implementation, or of a function without a body where
        there is only a program; its parameters are those of both. What it returns decides
        which one runs.
    """

    def declared(
        function: Callable[Parameters, Result | None],
    ) -> Listed[Parameters]:
        summary = (inspect.getdoc(function) or "").partition("\n")[0].rstrip(".")
        has_body = needs is not None and native is None
        algorithm = Algorithm(
            name=function.__name__,
            summary=summary,
            native=cast("Callable[..., Result]", function) if has_body else native,
            needs=needs,
            program=program,
            follower=follower,
            answers=answers,
            shown=shown,
            tags=tags,
            example=example,
            function=function,
        )
        ALGORITHMS[algorithm.name] = algorithm

        @functools.wraps(function)
        def call(graph: GraphLike, **options: Any) -> Result:
            return algorithm(graph, **options)

        signature = inspect.signature(function).replace(return_annotation=Result)
        found: Any = call
        found.__signature__, found.native = signature, algorithm.native
        return cast("Listed[Parameters]", found)

    return declared


ALGORITHMS: dict[str, Algorithm] = {}
"""All algorithms by name."""


def followed() -> list[str]:
    """Return the names of the algorithms that go on from their last result."""
    return [name for name, it in ALGORITHMS.items() if it.follower]
