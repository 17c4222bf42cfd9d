"""Every plug-in of ours runs through its kind's contract."""

from graphsys.partitioners import PARTITIONERS, STREAM_PARTITIONERS
from tests.unit.partitioners.test_contract import CONTRACT_RUNS
from tests.unit.partitioners.test_stream_contract import NAMES


def test_every_partitioner_has_a_contract_run() -> None:
    missing = set(PARTITIONERS.names()) - set(CONTRACT_RUNS)
    assert not missing, f"add {sorted(missing)} to tests/unit/partitioners/test_contract.py"


def test_every_stream_partitioner_has_a_contract_run() -> None:
    assert set(STREAM_PARTITIONERS.names()) == set(NAMES)
