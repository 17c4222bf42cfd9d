"""Every byte of a network's run is checked before it is used; `verify` looks at all."""

import json
from pathlib import Path

import numpy as np
import pytest

from graphsys import gnn
from graphsys.core.errors import CorruptStoreError, TrainingFailedError
from graphsys.storage.verify.run import verify_run
from tests.trainings import RemoveAt
from tests.unit.gnn.conftest import Store
from tests.unit.gnn.training.test_api import config_of


@pytest.fixture
def run(groups: Store, tmp_path: Path) -> Path:
    config = config_of(epochs=2, dim=8, eval_every=1, keep="best")
    gnn.train(groups(2), config, tmp_path / "run")
    return tmp_path / "run"


def test_a_flipped_bit_in_any_file_is_found_by_verify_and_on_opening(
    run: Path, rng: np.random.Generator
) -> None:
    files = sorted(file for file in run.rglob("*") if file.is_file())
    assert len(files) == 5
    assert verify_run(run).ok
    for file in files:
        sound = file.read_bytes()
        for place in [9, *rng.integers(0, len(sound), 5).tolist()]:
            damaged = bytearray(sound)
            damaged[place] ^= 1 << rng.integers(8)
            file.write_bytes(damaged)
            found = [problem.file for problem in verify_run(run).problems]
            assert found == [file.name], place
            with pytest.raises((CorruptStoreError, ValueError)):
                gnn.open_run(run)
        file.write_bytes(sound)
    gnn.open_run(run)


def test_a_run_removed_while_it_is_trained_is_an_error(
    groups: Store, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    with pytest.raises(TrainingFailedError, match="was removed or changed while the run"):
        gnn.train(groups(2), config_of(epochs=3), out, progress=RemoveAt(out, 2))
    assert not (out / "run.json").exists()


def test_the_command_verifies_runs_too(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from graphsys.cli.main import main

    assert main(["verify", str(run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"ok": True, "problems": []}
    (run / "config.toml").write_text("")
    assert main(["verify", str(run)]) == 1
    assert capsys.readouterr().out == "config.toml: does not match its checksum\n"
    assert main(["verify", str(run.parent)]) == 2
