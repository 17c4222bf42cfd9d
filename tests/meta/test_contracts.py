"""Every plug-in of ours runs through its kind's contract."""

from graphsys.partitioners import PARTITIONERS
from tests.unit.partitioners.test_contract import CONTRACT_RUNS


def test_every_partitioner_has_a_contract_run() -> None:
    missing = set(PARTITIONERS.names()) - set(CONTRACT_RUNS)
    assert not missing, f"add {sorted(missing)} to tests/unit/partitioners/test_contract.py"
