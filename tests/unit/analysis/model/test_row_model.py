"""The row model's sums: which launches fill the SMs."""

import numpy as np

from graphsys.analysis.model.devices import GPUS
from graphsys.analysis.model.predicted import gpu_facts
from graphsys.analysis.model.row_model import RowModel
from graphsys.core.visits import RowVisit


def test_launches_are_told_by_how_they_fill_the_places() -> None:
    gpu = GPUS["m2050"]
    model = RowModel(gpu)
    assert model.resident == 4  # of 256 threads with 32 registers
    places = gpu.num_sms * model.resident
    for ctas in (places, 3, places - 1, 2 * places + 1):
        lengths = np.ones(256 * ctas, dtype=np.int64)
        model([RowVisit(superstep=0, kind="pull", lengths=lengths)])
    model([RowVisit(superstep=0, kind="pull", lengths=np.zeros(0, dtype=np.int64))])
    found = gpu_facts(model)["mappings"]["thread"]["fillings"]
    assert {name: it["launches"] for name, it in found.items()} == {
        "fewer": 2, "exact": 1, "more": 1,
    }  # fmt: skip
    assert found["exact"] == {
        "launches": 1, "waves": 1.0, "cta_imbalance": 1.0, "sm_imbalance": 1.0,
    }  # fmt: skip
    # three CTAs on 14 SMs: one where the mean is 3 / 14; 55 of 56: 4 where it is 55 / 14
    fewer = (14 / 3 + 4 * 14 / 55) / 2
    assert np.isclose(found["fewer"]["cta_imbalance"], fewer)
    assert np.isclose(found["fewer"]["waves"], (3 + 55) / 56 / 2)
    # 113 equal CTAs: 8 on each of 13 SMs, 9 on one
    assert np.isclose(found["more"]["cta_imbalance"], 9 * 14 / 113)
    assert np.isclose(found["more"]["sm_imbalance"], 9 * 14 / 113)
    assert gpu_facts(RowModel(gpu))["mappings"]["thread"]["fillings"] == {}
