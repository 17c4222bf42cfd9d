"""Further columns of edges in programs: which there are, nulls, what is refused."""

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graphsys.core.errors import CompileError, ConfigError, InvalidGraphError
from graphsys.core.types import EdgeType
from graphsys.distributed.cluster import Cluster
from graphsys.distributed.run import ClusterRun
from graphsys.engine import program as gs
from graphsys.engine.execute.prepared import prepare
from graphsys.engine.execute.program_memory import MemoryEstimate
from graphsys.engine.program_run import prepare_program
from graphsys.engine.run import run
from tests.processes import SIMULATED, printed_by
from tests.stores import edge_chunk, make_store
from tests.unit.engine.algorithms.small_graphs import values

PAIRS = [(1, 2), (2, 3), (3, 1), (4, 1), (5, 4), (5, 1), (1, 2)]


def store(path: Path, **columns: Any) -> str:
    make_store(path / "graph", edge_chunk(PAIRS, **columns), partitions=2)
    return str(path / "graph")


class Paid(gs.VertexProgram):
    """What comes in."""

    paid = gs.state("float64")
    combine, schedule, max_supersteps = gs.sum_, "all", 1

    def message(self, src: Any, edge: Any) -> Any:
        return edge.amount

    def update(self, node: Any, message: Any) -> Any:
        return message


AMOUNTS = [1, 2, 4, 8, 16, 32, 64]


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint8(), pa.float32(), pa.float64()])
def test_numbers_of_all_kinds_are_read(tmp_path: Path, kind: Any) -> None:
    graph = store(tmp_path, amount=pa.array(AMOUNTS, kind))
    assert values(run(Paid(), graph)) == {1: 44, 2: 65, 3: 2, 4: 16, 5: 0}


def test_times_are_numbers_in_their_unit(tmp_path: Path) -> None:
    days = pa.array([dt.date(1970, 1, 1 + day) for day in range(7)])
    graph = store(tmp_path, amount=days)
    assert values(run(Paid(), graph)) == {1: 2 + 3 + 5, 2: 6, 3: 1, 4: 4, 5: 0}


def test_both_directions_and_the_way_back_have_the_edge_s_value(tmp_path: Path) -> None:
    class Balance(Paid):
        direction = "both"

        def message(self, src: Any, edge: Any) -> Any:
            return edge.amount if edge.forward else -edge.amount

    graph = store(tmp_path, amount=pa.array(AMOUNTS))
    found = {1: 44 - 65, 2: 65 - 2, 3: 2 - 4, 4: 16 - 8, 5: -48}
    assert values(run(Balance(), graph)) == found


def test_types_are_read_together_and_one_without_the_column_has_nulls(
    tmp_path: Path,
) -> None:
    class Several(Paid):
        def message(self, src: Any, edge: Any) -> Any:
            return edge.amount if edge.amount == edge.amount else 1000.0  # NaN

    paid, owes = EdgeType("node", "paid", "node"), EdgeType("node", "owes", "node")
    make_store(
        tmp_path / "graph",
        edge_chunk(PAIRS, paid, amount=pa.array(AMOUNTS, pa.float64())),
        edge_chunk([(1, 2), (2, 1)], owes),
        partitions=2,
    )
    wanted = {1: 44 + 1000, 2: 65 + 1000, 3: 2, 4: 16, 5: 0}
    assert values(run(Several(), str(tmp_path / "graph"))) == wanted


def test_an_unknown_one_is_refused_with_those_there_are(tmp_path: Path) -> None:
    class Misspelled(Paid):
        def message(self, src: Any, edge: Any) -> Any:
            return edge.amont

    graph = store(tmp_path, amount=pa.array(AMOUNTS))
    with pytest.raises(CompileError, match=r"edge.amont.*weight, time.*amount"):
        run(Misspelled(), graph)


def test_a_null_integer_is_refused_and_a_null_float_is_nan(tmp_path: Path) -> None:
    amounts = [1, None, 4, 8, 16, 32, 64]
    graph = store(tmp_path, amount=pa.array(amounts, pa.int32()))
    told = r"'amount' of the edges of .*int32 and null for 1 of them.*as floats"
    with pytest.raises(InvalidGraphError, match=told):
        run(Paid(), graph)
    other = tmp_path / "other"
    other.mkdir()
    graph = store(other, amount=pa.array(amounts, pa.float32()))
    found = values(run(Paid(), graph))
    assert np.isnan(found.pop(3))
    assert found == {1: 44, 2: 65, 4: 16, 5: 0}


def test_an_edge_state_goes_before_a_column_of_its_name(tmp_path: Path) -> None:
    class Own(Paid):
        amount = gs.edge_state("float64", default=0.5)

    graph = store(tmp_path, amount=pa.array(AMOUNTS))
    assert values(run(Own(), graph)) == {1: 1.5, 2: 1.0, 3: 0.5, 4: 0.5, 5: 0}


def test_only_what_is_read_is_held_and_counted(tmp_path: Path) -> None:
    others = pa.array([None] * 6 + [1])  # whose nulls nobody reads
    graph = store(tmp_path, amount=pa.array(AMOUNTS, pa.int16()), other=others)
    work = prepare(Paid(), graph)
    assert {*work.plan.spec.edge_states} == {"amount"}
    with_amounts = MemoryEstimate(work.plan, work.topology).edge_state_bytes
    # held once, twice while it is brought into the rows' order, and the rows with it
    assert with_amounts == 7 * (2 + 3 * 2 + 4)
    assert values(run(Paid(), graph))[2] == 65


def test_workers_refuse_it(tmp_path: Path) -> None:
    graph = store(tmp_path, amount=pa.array(AMOUNTS))
    work = prepare_program(Paid, graph)
    with pytest.raises(ConfigError, match=r"Paid reads amount of edges.*leave out"):
        ClusterRun.of(work, "Paid", {}, Cluster.parse("local:2"))


def test_a_device_reads_it(tmp_path: Path) -> None:
    graph = store(tmp_path, amount=pa.array(AMOUNTS))
    code = (
        "from tests.cuda_sim import warp_shim\n"
        "warp_shim.install()\n"
        "from graphsys.engine.run import run\n"
        "from tests.unit.engine.test_edge_columns import Paid\n"
        f"done = run(Paid(), {graph!r}, device='cuda', strategy='warp')\n"
        "print(*done.table.column('value').to_pylist())\n"
    )
    [line] = printed_by("-c", code, environment=SIMULATED)
    assert sorted(map(float, line.split())) == [0, 2, 16, 44, 65]
