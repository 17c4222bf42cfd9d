"""A native algorithm made ready: how it will use memory, and how it is run."""

import contextlib
import importlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from graphsys.core.compiling import CompileWatch, WorkKernels
from graphsys.core.events import observing_seconds
from graphsys.core.memory import resident_bytes, scratch_is_memory
from graphsys.core.progress import IN_NOTEBOOKS, Progress, collected_figures
from graphsys.core.threads import num_cores
from graphsys.engine.memory_plan import (
    Facts,
    MemoryPlan,
    Mode,
    Need,
    RowBytes,
    base_bytes,
    budget_of,
    fitting,
    none_fits,
    placed,
    reasons_of,
    row_texts,
    simple_bytes,
    united_bytes,
)
from graphsys.engine.result import Result, marked, parameters_of
from graphsys.engine.topology import Topology

if TYPE_CHECKING:
    from graphsys.engine.united_rows import Direction

_ROOM = "graphsys.engine.algorithms"
_TICK_S = 5.0
KEPT_BYTES = 8 << 20
"""What allocators keep of freed memory where no budget has them give it back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeRun:
    """A native algorithm on a graph, and how it will use memory.

    Attributes:
        name: Of the algorithm.
        function: What computes it.
        topology: The graph.
        options: The function's parameters.
        choice: Where the rows will be.
        kernels: Those that it may call; None where nothing is planned by them.
        parameters: What its result says of its parameters; what the function takes.
    """

    name: str
    function: Callable[..., Result]
    topology: Topology
    options: Mapping[str, Any]
    choice: MemoryPlan
    kernels: WorkKernels | None = None
    parameters: Mapping[str, str] | None = None
    implementation: ClassVar[str] = "native"

    def run(self, progress: Progress = IN_NOTEBOOKS) -> Result:
        """Run it; the time to compile its kernels is told apart.

        Args:
            progress: Told every some seconds that it still runs, and how far it is where
                the algorithm says so.
        """
        topology = placed(self.choice, self.topology)
        pa.array([0])  # with its first array pyarrow loads pandas, where it is installed
        with CompileWatch() as compiling:  # numba is loaded here, if it was not yet
            begin, observing = time.perf_counter(), observing_seconds()
            with _ticking(progress, self.name):
                done = self.function(topology, **self.options)
        observing = observing_seconds() - observing
        working = time.perf_counter() - begin - compiling.seconds - observing
        if self.kernels is not None:
            self.kernels.remember()
        parameters = self.parameters
        if parameters is None:
            parameters = parameters_of(self.function, self.options)
        pieces = done.pieces
        if pieces is not None:
            done = replace(
                done,
                pieces=lambda: (
                    marked(piece, self.name, parameters, topology) for piece in pieces()
                ),
            )
        return replace(
            done,
            seconds=min(done.seconds, working),
            compile_seconds=compiling.seconds,
            source=lambda: marked(done.table, self.name, parameters, topology),
        )

    def explanation(self) -> str:
        """Tell what :meth:`run` will do."""
        kind = "directed" if self.topology.is_directed else "undirected"
        size = f"{self.topology.num_nodes} nodes, {self.topology.num_edges} {kind} edges"
        what = "native: kernels written for it, not a vertex program"
        return "\n".join([f"{self.name} on {size}", what, *self.choice.reasons])


@contextlib.contextmanager
def _ticking(progress: Progress, name: str) -> Iterator[None]:
    """Tell of the seconds that a block has taken so far, and how far it says it is."""
    if not progress.is_heard:
        yield
        return
    began, is_over = time.monotonic(), threading.Event()

    def tick() -> None:
        while not is_over.wait(_TICK_S):
            progress.advance(0, seconds=time.monotonic() - began, **figures.copy())

    progress.stage(name)
    with collected_figures() as figures:
        ticker = threading.Thread(target=tick, daemon=True, name="graphsys-ticker")
        ticker.start()
        try:
            yield
        finally:
            is_over.set()
            ticker.join()
            progress.close()


def prepare_native(
    name: str,
    function: Callable[..., Result],
    topology: Topology,
    options: Mapping[str, Any],
    memory: int | str | None,
    needed: Callable[[Facts], Need],
) -> NativeRun:
    """Decide how a native algorithm uses memory: once, for all.

    Args:
        name: Of the algorithm.
        function: What computes it.
        topology: The graph.
        options: The function's parameters, checked.
        memory: Budget of anonymous memory; what there is by default.
        needed: Tells what it takes.

    Raises:
        BudgetError: the budget is too small; the message names one that works.
    """
    budget = budget_of(memory)
    size = f"{topology.num_nodes} nodes and {topology.num_edges} edges"  # opens all files
    base = base_bytes()  # before counting entries loads kernels, which base_bytes adds
    threads = options.get("num_threads") or num_cores()
    is_stated = memory is not None
    need = needed(
        Facts(topology=topology, options=options, threads=threads, is_stated=is_stated)
    )
    if resident_bytes() > base:  # counting compiled its kernels
        base = base_bytes()
    rows = united_bytes(topology, need.rows, in_place=need.in_place, columns=need.columns)
    if need.simple:
        rows += simple_bytes(topology, in_place=True)
    module = f"{_ROOM}.{need.kernels}" if need.kernels else function.__module__
    work = module.rpartition(".")[2] + (f"-{need.variant}" if need.variant else "")
    kernels = WorkKernels(work, lambda: _kernels_of(importlib.import_module(module)))
    base += kernels.compile_bytes() + (0 if is_stated else KEPT_BYTES)
    needs = _needs(topology, need, rows, base)
    mode = fitting(needs, budget)
    if mode is None:
        raise none_fits(f"{name} on {size}", needs, budget)
    unites = rows.entries + need.entries > 0
    index_bytes = _index_bytes(topology, need)
    copies = unites and (rows.entries > 0 or not need.beside)
    texts = row_texts(
        index_bytes,
        is_mapped=index_bytes > 0 and not copies,
        unites=unites,
        why=_why_copied(topology, need) if copies else "",
        beside=need.beside,
    )
    choice = MemoryPlan(
        mode=mode,
        needs=needs,
        budget=budget,
        index_bytes=index_bytes,
        reasons=reasons_of(mode, needs, budget, texts),
        unites=unites,
    )
    return NativeRun(
        name=name,
        function=function,
        topology=topology,
        options=options,
        choice=choice,
        kernels=kernels,
    )


def _why_copied(topology: Topology, need: Need) -> str:
    """Return why an algorithm copies the rows of a store, for people."""
    if need.copies:
        return need.copies
    found = (topology.why_copied(side, need.columns) for side in need.rows or ("out",))
    made = "the simple undirected graph is made of them" if need.simple else ""
    return next((reason for reason in found if reason), made)


def _needs(topology: Topology, need: Need, rows: RowBytes, base: int) -> dict[Mode, int]:
    """Rows are made before anything else is."""
    everything = rows.made_before(int(need.bytes + need.entries), in_memory=True)
    needs: dict[Mode, int] = {"memory": base + everything}
    if topology.graph is not None and not scratch_is_memory():
        needs["streamed"] = base + rows.made_before(int(need.bytes), in_memory=False)
    return needs


def _index_bytes(topology: Topology, need: Need) -> int:
    """Return what the rows take on disk."""
    if topology.graph is None or not (need.rows or need.simple):
        return 0
    sides: tuple[Direction, ...] = ("out", "in") if topology.is_directed else ("out",)
    chosen = [side for side in sides if need.simple or side in need.rows] or ["out"]
    indexes = [block.index for side in chosen for block in topology.blocks(side)]
    names = ("indptr", "indices", *need.columns)
    arrays = [getattr(index, name) for index in indexes for name in names]
    return sum(int(array.nbytes) for array in arrays if array is not None)


def _kernels_of(module: ModuleType) -> Iterator[Any]:
    """Yield the kernels that a module of algorithms names, or modules of kernels in it."""
    for value in vars(module).values():
        if isinstance(value, ModuleType) and ".kernels." in value.__name__:
            yield from _kernels_of(value)
        else:
            yield value
