"""Every plug-in of ours runs through its kind's contract."""

from graphsys.partitioners import PARTITIONERS
from graphsys.partitioners.testing import PartitionerContract
from tests.unit.partitioners import test_contract


def test_every_partitioner_has_a_contract_run() -> None:
    run = {
        case.name
        for case in vars(test_contract).values()
        if isinstance(case, type) and issubclass(case, PartitionerContract)
    }
    missing = set(PARTITIONERS.names()) - run
    assert not missing, f"add {sorted(missing)} to tests/unit/partitioners/test_contract.py"
