"""``graphsys split`` and ``ingest --split``: a trust network from CSV to held-out edges."""

import json
from pathlib import Path
from typing import Any

import pytest

import graphsys as gs
from graphsys.cli.main import main


@pytest.fixture
def trust(tmp_path: Path) -> Path:
    path = tmp_path / "trust.csv"
    rows = (
        f"{k},{(k * 7 + j) % 100},{j},{1e9 + k + 0.25}" for k in range(100) for j in (1, 2)
    )
    header = "FROM_NODE,TO_NODE,TRUST_INDEX,TIME_SINCE_EPOCH\n"
    path.write_text(header + "\n".join(rows) + "\n")
    return path


def test_a_csv_goes_in_with_no_flag_but_split(
    trust: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(
            [
                "ingest",
                str(trust),
                "-o",
                str(tmp_path / "g"),
                "--split",
                "0.8,0.1,0.1",
                "--json",
            ]
        )
        == 0
    )
    facts = json.loads(capsys.readouterr().out)
    assert facts["num_edges_by_split"] == {"train": 160, "valid": 20, "test": 20}
    assert facts["num_edges"] == 160
    assert main(["verify", str(tmp_path / "g")]) == 0


def test_a_store_is_split_and_info_is_printed(
    trust: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, out = str(tmp_path / "g"), str(tmp_path / "s")
    assert (
        main(
            [
                "ingest",
                str(trust),
                "-o",
                whole,
                "--columns",
                "src=FROM_NODE,dst=TO_NODE,weight=TRUST_INDEX",
            ]
        )
        == 0
    )
    capsys.readouterr()
    assert (
        main(["split", whole, "-o", out, "--ratio", "5,15", "--seed", "3", "--json"]) == 0
    )
    facts = json.loads(capsys.readouterr().out)
    assert facts["num_edges_by_split"] == {"train": 180, "valid": 5, "test": 15}
    assert main(["split", whole, "-o", out]) == 2
    assert "already holds a graph" in capsys.readouterr().err
    assert main(["split", whole, "-o", out, "--overwrite"]) == 0
    assert "test 20, train 160, valid 20" in capsys.readouterr().out
    assert main(["split", out, "-o", whole + "2"]) == 2
    assert "already, expected all in train" in capsys.readouterr().err
    assert main(["split", whole, "-o", whole + "2", "--by", "size"]) == 2
    assert "got 'size', expected one of random, time, relation" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:.*stored as millionths")
def test_edges_that_come_in_are_split_by_time_with_negatives(
    trust: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["ingest", str(trust), "-o", str(tmp_path / "g"), "--split", "0.8,0.1,0.1"]
    words += ["--by", "time", "--negatives", "2", "--json"]
    assert main(words) == 2
    assert "have no column time; name it with --columns" in capsys.readouterr().err
    columns = "src=FROM_NODE,dst=TO_NODE,time=TIME_SINCE_EPOCH"
    assert main([*words, "--columns", columns]) == 0
    facts = json.loads(capsys.readouterr().out)["num_edges_by_split"]
    assert facts["train"] == 160
    assert facts["valid_negative"] == 2 * facts["valid"] == 40
    with gs.open(tmp_path / "g") as graph:
        (edge_type,) = graph.edge_types
        times: list[Any] = [
            graph.bucket(edge_type, 0, 0, split).time
            for split in ("train", "valid", "test")
        ]
    assert times[0].max() < times[1].min()
    assert times[1].max() < times[2].min()


@pytest.mark.parametrize("given", [("--by", "time"), ("--negatives", "1")])
def test_how_to_split_without_what_is_refused(
    trust: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], given: tuple[str, str]
) -> None:
    assert main(["ingest", str(trust), "-o", str(tmp_path / "g"), *given]) == 2
    assert "about edges held out; give split" in capsys.readouterr().err
    assert not (tmp_path / "g").exists()
