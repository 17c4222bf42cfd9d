"""What is advised to users of PyTorch-BigGraph leads to a training."""

import json
from pathlib import Path

import pytest

from tests.advice.case import advised
from tests.advice.conftest import Command

pbg_layout = pytest.importorskip("tests.unit.embedding.pbg_layout")


def test_files_of_edges_have_fixed_columns(folder: Path, command: Command) -> None:
    made = pbg_layout.write_layout(folder / "pbg")
    line = f"ingest {made.data / 'train'} -o g --format pbg"
    refused = command(f"{line} --columns src,dst --skip 1")
    left_out = advised(
        refused.said,
        "datasets/readers/pbg.py",
        "fixed columns; leave out (--columns) and (--skip)$",
    )
    assert all(it not in line for it in left_out.groups())
    assert command(line).code == 0


def test_a_config_is_no_graph_of_networkx(folder: Path, command: Command) -> None:
    made = pbg_layout.write_layout(folder / "pbg")
    config = made.config(num_gpus=1, num_epochs=1, checkpoint_path=None)
    (folder / "pbg.json").write_text(json.dumps(config))
    refused = command("ingest pbg.json -o g")
    found = advised(
        refused.said,
        "datasets/readers/networkx_files.py",
        r"a config of PyTorch-BigGraph; pass (--format) (pbg),",
    )
    assert command(f"ingest pbg.json {found[1]} {found[2]} -o g").code == 0


def test_what_a_config_leaves_out_is_said_with_the_command(
    folder: Path, command: Command
) -> None:
    made = pbg_layout.write_layout(folder / "pbg")
    config = made.config(num_gpus=1, num_epochs=1, checkpoint_path=None)
    (folder / "pbg.json").write_text(json.dumps(config))
    assert command("ingest pbg.json --format pbg -o g").code == 0
    train = "train embedding g -o run --config pbg.json"
    told = command(f"{train} --dry-run")
    assert told.code == 0, told.said
    device = advised(
        told.said,
        "graphsys/embedding/pbg/settings.py",
        r"the device is an option of the command, (--device)",
    )
    assert command(f"{train} {device[1]} cpu").code == 0
    parts = advised(
        told.said,
        "graphsys/embedding/pbg/settings.py",
        r"is the graph's: (graphsys ingest) (--partitions) all=(\d+)",
    )
    assert (
        command(f"{parts[1]} pbg.json --format pbg -o g2 {parts[2]} {parts[3]}").code == 0
    )
    assert json.loads(command("info g2 --json").out)["partitions"] == int(parts[3])
