"""The row model's sums: which launches fill the SMs."""

from typing import Any

import numpy as np
import pytest

import graphsys as gs
from graphsys.analysis.model.devices import GPUS
from graphsys.analysis.model.predicted import gpu_facts, predicted_metrics
from graphsys.analysis.model.row_model import RowModel
from graphsys.analysis.model.sectors import SAMPLED_FROM
from graphsys.core.errors import ConfigError
from graphsys.core.row_trace import RowVisit


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
        "fewer": 2,
        "exact": 1,
        "more": 1,
    }
    assert found["exact"] == {
        "launches": 1,
        "waves": 1.0,
        "cta_imbalance": 1.0,
        "sm_imbalance": 1.0,
    }
    # three CTAs on 14 SMs: one where the mean is 3 / 14; 55 of 56: 4 where it is 55 / 14
    fewer = (14 / 3 + 4 * 14 / 55) / 2
    assert np.isclose(found["fewer"]["cta_imbalance"], fewer)
    assert np.isclose(found["fewer"]["waves"], (3 + 55) / 56 / 2)
    # 113 equal CTAs: 8 on each of 13 SMs, 9 on one
    assert np.isclose(found["more"]["cta_imbalance"], 9 * 14 / 113)
    assert np.isclose(found["more"]["sm_imbalance"], 9 * 14 / 113)
    assert gpu_facts(RowModel(gpu))["mappings"]["thread"]["fillings"] == {}


def visit_of(degrees: Any, seed: int = 3) -> RowVisit:
    """Return one pull over rows of random neighbors."""
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(degrees)])
    indices = rng.integers(0, len(degrees), starts[-1]).astype(np.int32)
    return RowVisit(
        superstep=0, kind="pull", lengths=degrees, starts=starts[:-1], indices=indices
    )


def test_some_sms_stand_for_the_requests_of_all() -> None:
    rng = np.random.default_rng(1)
    visit = visit_of(rng.geometric(0.3, SAMPLED_FROM + 1000).astype(np.int64))
    exact, sampled = RowModel(GPUS["h100"]), RowModel(GPUS["h100"], sampled_sms=4)
    exact([visit])
    sampled([visit])
    error = sampled.sampling_error()
    assert error is not None
    assert 0 < error < 0.05
    for mapping in ("thread", "warp", "edge"):
        whole, part = (model.totals[mapping].requests for model in (exact, sampled))
        assert whole is not None
        assert part is not None
        assert part.requests == pytest.approx(whole.requests, rel=0.1)
        rates = [it.per_request(it.value_sectors) for it in (whole, part)]
        assert rates[1] == pytest.approx(rates[0], rel=max(5 * error, 0.01))
        # lanes and balance are counted in full
        assert (
            sampled.totals[mapping].histogram.tolist()
            == exact.totals[mapping].histogram.tolist()
        )
    metrics = {it.name: it for it in predicted_metrics(sampled, "")}
    assert metrics["request_sampling_error"].value == error
    assert not metrics["value_sectors_per_request"].exact
    assert metrics["lane_utilization"].exact
    assert "request_sampling_error" not in {it.name for it in predicted_metrics(exact, "")}


def test_all_sms_together_ask_for_what_a_launch_by_threads_does() -> None:
    visit = visit_of(np.full(SAMPLED_FROM, 2))
    gpu = GPUS["m2050"]
    exact, sampled = RowModel(gpu), RowModel(gpu, sampled_sms=gpu.num_sms)
    exact([visit])
    sampled([visit])
    assert sampled.totals["thread"].requests == exact.totals["thread"].requests
    assert sampled.sampling_error() == 0.0
    # small launches are counted as they are
    small = RowModel(gpu, sampled_sms=2)
    small([visit_of(np.full(1000, 2))])
    assert small.sampling_error() is None
    assert not small.totals["thread"].is_sampled


def test_one_sm_tells_no_error() -> None:
    with pytest.raises(ConfigError, match="sampled_sms: got 1, expected 0, or 2 or more"):
        gs.profile(sampled_sms=1)
