"""Training on a device that is not there, or with settings that it lacks."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from graphsys.core.config import option
from graphsys.core.errors import ConfigError, MissingDependencyError
from graphsys.core.triton.device import require_device
from graphsys.embedding import EmbeddingConfig, train
from graphsys.embedding.negatives_config import PoolConfig
from graphsys.embedding.training.cuda.support import require_supported
from graphsys.embedding.type_configs import RelationConfig
from graphsys.storage import Graph


@dataclass(frozen=True, kw_only=True)
class Wider(EmbeddingConfig):
    """A config with a setting that no kernel knows."""

    shininess: float = option(0.0, "of a test")


def test_no_gpu_is_said_before_anything_is_written(
    make_ring: Callable[[int], Graph], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("triton", reason="the gpu extra (triton) is not installed")
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match="no CUDA device or driver; use device='cpu'"):
        train(make_ring(1), EmbeddingConfig(dim=4), tmp_path / "run", device="cuda")
    assert not (tmp_path / "run").exists()


def test_torch_without_cuda_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton", reason="the gpu extra (triton) is not installed")
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setattr(torch.version, "cuda", None)
    with pytest.raises(ConfigError, match="is built without CUDA; install a build with it"):
        require_device()


def test_missing_triton_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'graphsys\[gpu\]'"):
        require_device()


def test_unknown_device_is_refused(
    make_ring: Callable[[int], Graph], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="got 'tpu', expected cpu or cuda"):
        train(make_ring(1), EmbeddingConfig(dim=4), tmp_path / "run", device="tpu")


def test_settings_without_a_kernel_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"no kernel for shininess = 0\.5, it knows only"):
        require_supported(Wider(shininess=0.5))
    require_supported(Wider())


def test_operators_without_a_kernel_are_refused() -> None:
    with pytest.raises(
        ConfigError, match="no kernel for operator = 'rotation', it has comp"
    ):
        require_supported(EmbeddingConfig(operator="rotation"))
    relations = {"likes": RelationConfig(operator="rotation")}
    with pytest.raises(ConfigError, match=r"relations\.likes\.operator = 'rotation'"):
        require_supported(EmbeddingConfig(relations=relations))


def test_rows_that_no_kernel_reads_are_refused() -> None:
    with pytest.raises(ConfigError, match="no kernel for row_dtype = 'int8', it has bfl"):
        require_supported(EmbeddingConfig(row_dtype="int8"))


def test_negatives_that_no_kernel_knows_are_refused() -> None:
    hard = (PoolConfig(kind="hard", num=3),)
    with pytest.raises(ConfigError, match="no kernel for negatives = "):
        require_supported(EmbeddingConfig(negatives=hard))
    with pytest.raises(ConfigError, match="no kernel for mask_known_edges = True"):
        require_supported(EmbeddingConfig(mask_known_edges=True))
