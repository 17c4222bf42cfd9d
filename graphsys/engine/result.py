"""What a run gives back: a table keyed by the user's ids, how it went, what it is of."""

import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy.typing as npt
import pyarrow as pa

from graphsys.core.caller_warnings import note
from graphsys.core.errors import NotConvergedWarning
from graphsys.core.notebook.tables import html_table
from graphsys.engine.topology import Topology
from graphsys.storage.dynamic.delta_range import state_checksum

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


_SHOWN_ROWS = 8
RUN_KEY = b"graphsys.run"
"""Key of a table's metadata: JSON with ``algorithm``, ``supersteps``, ``converged``."""
_ORIGIN_KEY = b"graphsys"
_FREE = ("num_threads", "tolerance", "max_supersteps", "last")
"""Parameters that a result may differ in from what goes on from it."""


def cut_short(algorithm: str, supersteps: int, remedy: str = "") -> str:
    """Say that a limit ended a run, and how it would have gone on.

    Args:
        algorithm: Its name.
        supersteps: How many it ran.
        remedy: What helps, where more supersteps may not.
    """
    more = 10 * supersteps
    return (
        f"{algorithm} did not converge within {supersteps} supersteps, the most it may "
        f"run; "
        + (remedy or f"allow more with max_supersteps={more} (--max-supersteps {more})")
    )


@dataclass(frozen=True, kw_only=True)
class Result:
    """The outcome of an algorithm.

    Attributes:
        source: The table, or what makes it when it is asked for.
        algorithm: Its name.
        supersteps: How many were run; iterations or passes of native algorithms.
        seconds: Time of the run, without compiling and without making the table.
        compile_seconds: Time spent compiling.
        converged: Whether it ended by itself rather than by a limit.
        result: The answer where it is one number, else None.
        pieces: Where the table is too large to be made at once: what makes it piece by
            piece, as they are asked for; ``seconds`` is then 0, and ``table`` refused.
        num_rows: Rows of all pieces.
        shortfall: What a result that did not converge lacks, and what helps; by default
            that its supersteps were the most it may run.
        remedy: What helps then, if not more supersteps.
    """

    source: pa.Table | Callable[[], pa.Table]
    algorithm: str
    supersteps: int
    seconds: float
    compile_seconds: float = 0.0
    converged: bool = True
    result: int | float | None = None
    pieces: Callable[[], Iterator[pa.Table]] | None = None
    num_rows: int | None = None
    shortfall: str = ""
    remedy: str = ""

    @cached_property
    def table(self) -> pa.Table:
        """One row per node (or per pair, walk ... where the algorithm says so).

        Columns ``id``, and ``value`` or the names of the program's fields. The schema's
        metadata tell of the run, under :data:`RUN_KEY`.
        """
        return self._marked(self.source() if callable(self.source) else self.source)

    def parts(self) -> Iterator[pa.Table]:
        """Yield the table, or the pieces that it is made in."""
        if self.pieces is None:
            yield self.table
        else:
            yield from map(self._marked, self.pieces())

    def _marked(self, table: pa.Table) -> pa.Table:
        run = {
            "algorithm": self.algorithm,
            "supersteps": self.supersteps,
            "converged": self.converged,
        }
        known = table.schema.metadata or {}
        return table.replace_schema_metadata({**known, RUN_KEY: json.dumps(run).encode()})

    @property
    def warning(self) -> str | None:
        """What is to be said of a result that did not converge, or None."""
        if self.converged:
            return None
        return self.shortfall or cut_short(self.algorithm, self.supersteps, self.remedy)

    def warned(self) -> "Result":
        """Return the result; one that did not converge with a warning to the caller."""
        if self.warning is not None:
            note(self.warning, NotConvergedWarning)
        return self

    def __len__(self) -> int:
        return int(self.table.num_rows) if self.num_rows is None else self.num_rows

    def __repr__(self) -> str:
        answer = "" if self.result is None else f"result={self.result}, "
        return (
            f"Result({self.algorithm}: {answer}{len(self)} rows, {self.supersteps} "
            f"supersteps, {self.seconds:.3g} s)"
        )

    def _repr_html_(self) -> str:
        if self.pieces is not None:
            return html_table(repr(self), [])
        head = self.table.slice(0, _SHOWN_ROWS)
        rows = [row.values() for row in head.to_pylist()]
        more = len(self) - len(rows)
        notes = [f"{more:,} more rows"] * (more > 0) + [self.warning or ""]
        note = "; ".join(filter(None, notes))
        return html_table(repr(self), rows, head.column_names, note=note)

    def plot(
        self, column: str | None = None, *, groups: bool = False, axes: "Axes | None" = None
    ) -> "Axes":
        """Draw the values of a column by matplotlib (extra ``plot``).

        Args:
            column: Which; the first column of numbers behind the ids by default.
            groups: Draw how large the groups of equal values are, largest first, as of
                communities and components, rather than how often values are there.
            axes: Where to draw; axes of a new figure by default.

        Returns:
            The axes; ``axes.figure.savefig("values.png")`` keeps them. Both are
            logarithmic where the largest value is a hundred times the median.

        Raises:
            UnknownNameError: There is no such column.
            ConfigError: The column holds no numbers.
            MissingDependencyError: matplotlib is not installed.
        """
        from graphsys.engine.plot import plot_values

        table, name = self.table, self.algorithm
        return plot_values(table, name, column, groups=groups, axes=axes)

    def figures(self) -> dict[str, Any]:
        """Return what a report tells of this kind of run besides what it tells of all."""
        return {}

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def to_numpy(self) -> dict[str, npt.NDArray[Any]]:
        """Return every column as numpy; nulls become NaN."""
        names = self.table.column_names
        return {name: self.table.column(name).to_numpy() for name in names}

    def to_pandas(self) -> "pd.DataFrame":
        """Return the table as a pandas data frame."""
        return self.table.to_pandas()


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What a result was computed of.

    Attributes:
        algorithm: Its name.
        parameters: Parameters that decide about the values, as texts.
        generation: Of the store.
        deltas: How many the store had.
        checksum: Hash of the files that it had.
    """

    algorithm: str
    parameters: dict[str, str]
    generation: int
    deltas: int
    checksum: str


def parameters_of(
    function: Callable[..., Any], options: Mapping[str, Any]
) -> dict[str, str]:
    """Return the parameters that decide about values, as texts, defaults included."""
    given = inspect.signature(function).parameters.values()
    return {
        p.name: str(options.get(p.name, p.default))
        for p in given
        if p.kind is p.KEYWORD_ONLY and p.name not in _FREE
    }


def marked(
    table: pa.Table, algorithm: str, parameters: Mapping[str, str], topology: Topology
) -> pa.Table:
    """Return a table that tells what it is of; without a store it tells nothing."""
    graph = topology.graph
    if graph is None or graph.window is not None:
        return table
    manifest = graph.whole_manifest
    count = len(manifest.deltas)
    origin = Origin(
        algorithm=algorithm,
        parameters=dict(parameters),
        generation=manifest.generation,
        deltas=count,
        checksum=state_checksum(manifest, count),
    )
    known = table.schema.metadata or {}
    text = json.dumps(asdict(origin), sort_keys=True)
    return table.replace_schema_metadata({**known, _ORIGIN_KEY: text.encode()})


def origin_of(table: pa.Table) -> Origin | None:
    """Return what a table tells it is of, or None."""
    text = (table.schema.metadata or {}).get(_ORIGIN_KEY)
    if text is None:
        return None
    try:
        return Origin(**json.loads(text))
    except (TypeError, ValueError):
        return None
