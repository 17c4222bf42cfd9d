"""A limit that ends a run: it counts in every program, and its advice works."""

import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import graphsys as gs
from graphsys.core.errors import ConfigError, NotConvergedError
from graphsys.engine.output import write_table
from graphsys.engine.result import RUN_KEY
from graphsys.engine.run import run as run_program

PATH = gs.Topology.from_edges(np.arange(60), np.arange(1, 61), num_nodes=61, directed=False)
# hub and leaves of K1,4; its largest eigenvalue is 2
STAR = gs.Topology.from_edges(
    np.zeros(4, int), np.arange(1, 5), num_nodes=5, directed=False
)


def algorithm(name: str) -> Any:
    """Return a listed algorithm."""
    return gs.algorithms.ALGORITHMS[name]


def more_of(text: str) -> int:
    """Return the number of supersteps that a message advises."""
    found = re.search(r"max_supersteps=(\d+) \(--max-supersteps (\d+)\)", text)
    assert found is not None
    assert found[1] == found[2]
    return int(found[1])


@pytest.mark.parametrize("name", ["eigenvector", "katz", "hits", "pagerank"])
def test_fewer_supersteps_than_by_default_are_run(name: str) -> None:
    with pytest.warns(gs.NotConvergedWarning, match="converge within 6 supersteps"):
        done = algorithm(name)(PATH, max_supersteps=6, tolerance=1e-13)
    assert (done.supersteps, done.converged) == (6, False)


@pytest.mark.parametrize("name", ["eigenvector", "katz"])
def test_a_short_run_is_scaled_too(name: str) -> None:
    with pytest.warns(gs.NotConvergedWarning):
        done = algorithm(name)(PATH, max_supersteps=6, tolerance=1e-13)
    assert np.linalg.norm(done.to_numpy()["value"]) == pytest.approx(1.0)


def test_what_the_warning_advises_leads_to_convergence() -> None:
    options = {"tolerance": 1e-12}
    with pytest.warns(gs.NotConvergedWarning) as told:
        first = algorithm("eigenvector")(PATH, **options)
    assert first.supersteps == 1001
    assert told[0].filename == __file__
    more = more_of(str(told[0].message))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = algorithm("eigenvector")(PATH, max_supersteps=more, **options)
    assert done.converged
    assert 1001 < done.supersteps < more
    exact = np.sin(np.pi * np.arange(1, 62) / 62)  # of a path; Spectra of Graphs, 1.4.4
    np.testing.assert_allclose(
        done.to_numpy()["value"], exact / np.linalg.norm(exact), atol=1e-8
    )


def test_an_error_advises_what_leads_to_convergence() -> None:
    run = algorithm("eigenvector")
    with pytest.raises(NotConvergedError) as told:
        run(PATH, tolerance=1e-12, require_convergence=True)
    more = more_of(str(told.value))
    run(PATH, tolerance=1e-12, require_convergence=True, max_supersteps=more)


class Reached(gs.VertexProgram):
    """Counts to twenty in one phase, then doubles."""

    count = gs.state("int64")
    least = gs.aggregator(gs.minimum)

    class Add(gs.Phase):
        """Add one."""

        repeat, max_supersteps = True, 5

        def update(self, node: Any) -> Any:
            return node.count + 1

        def aggregate(self, before: Any, node: Any) -> Any:
            return node.count

        def until(self, totals: Any) -> bool:
            return bool(totals["least"] >= 20)

    class Twice(gs.Phase):
        """Double."""

        def update(self, node: Any) -> Any:
            return 2 * node.count

    phases = (Add, Twice)


@pytest.mark.parametrize(
    ("limit", "supersteps", "value", "converged"),
    [(None, 6, 10, False), (4, 4, 6, False), (21, 21, 40, True), (99, 21, 40, True)],
)
def test_a_limit_of_the_run_replaces_that_of_a_phase(
    limit: int | None, supersteps: int, value: int, converged: bool
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = run_program(Reached, STAR, max_supersteps=limit)
    assert (done.supersteps, done.converged) == (supersteps, converged)
    assert set(done.to_numpy()["value"].tolist()) == {value}


class CountedTwice(gs.VertexProgram):
    """Adds thrice, which is what it is about, then once more."""

    count = gs.state("int64")

    class Thrice(gs.Phase):
        """Add one, three times."""

        repeat, max_supersteps = True, 3

        def update(self, node: Any) -> Any:
            return node.count + 1

    class Once(gs.Phase):
        """Add one."""

        def update(self, node: Any) -> Any:
            return node.count + 1

    phases = (Thrice, Once)


def test_a_phase_that_asks_for_a_number_keeps_it() -> None:
    done = run_program(CountedTwice, STAR, max_supersteps=50)
    assert (done.supersteps, done.converged) == (4, True)


def test_a_checkpoint_of_a_run_cut_short_goes_on(tmp_path: Path) -> None:
    with pytest.warns(gs.NotConvergedWarning):
        run_program(
            Reached, STAR, max_supersteps=8, checkpoint=tmp_path / "c", checkpoint_every=1
        )
    done = run_program(
        Reached, STAR, max_supersteps=99, checkpoint=tmp_path / "c", resume=True
    )
    assert (done.supersteps, done.converged) == (21, True)
    assert set(done.to_numpy()["value"].tolist()) == {40}


@pytest.mark.parametrize("limit", [0, -3])
def test_a_limit_below_one_is_refused(limit: int) -> None:
    with pytest.raises(ConfigError, match=rf"max_supersteps is {limit}, expected a whole"):
        run_program(Reached, STAR, max_supersteps=limit)


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_a_file_tells_whether_its_run_converged(tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"scores.{suffix}"
    with pytest.warns(gs.NotConvergedWarning):
        done = gs.algorithms.pagerank(PATH, max_supersteps=2)
    write_table(done.table, out)
    schema = pq.read_schema(out) if suffix == "parquet" else pa.ipc.open_file(out).schema
    told = {"algorithm": "pagerank", "supersteps": 2, "converged": False}
    assert json.loads(schema.metadata[RUN_KEY]) == told
    whole = gs.algorithms.pagerank(PATH)
    assert json.loads(whole.table.schema.metadata[RUN_KEY])["converged"] is True
