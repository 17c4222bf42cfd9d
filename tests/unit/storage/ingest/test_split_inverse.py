"""Inverse relations: edges of test whose inverse is in train are counted, or none are."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import graphsys as gs
from graphsys.cli.main import main
from graphsys.core.errors import ConfigError
from graphsys.storage.ingest.split_inverse import PairSample, canonical_relations

INVERSE = {"parent": "child", "child": "parent"}


def family(rng: np.random.Generator, share: float = 1.0) -> pd.DataFrame:
    """Return parents and children, the inverse of a share, and edges of other relations."""
    ends = np.unique(rng.integers(0, 60, (400, 2)), axis=0)
    ends = ends[ends[:, 0] != ends[:, 1]]
    told = ends[rng.random(len(ends)) < share]
    rows = [(u, "parent", v) for u, v in ends] + [(v, "child", u) for u, v in told]
    rows += [(u, "knows", v) for u, v in rng.integers(0, 60, (200, 2))]
    return pd.DataFrame(rows, columns=["src", "relation", "dst"])


def splits_of(graph: gs.Graph) -> dict[str, list[tuple[Any, ...]]]:
    (kind,) = graph.edge_types
    return {
        split: list(
            graph.to_pandas(split=split)[["src", "relation", "dst"]].itertuples(
                index=False, name=None
            )
        )
        for split in graph.splits(kind)
    }


def leaks_of(found: dict[str, list[tuple[Any, ...]]]) -> int:
    train = set(found["train"])
    return sum((v, INVERSE.get(r), u) in train for u, r, v in found["test"])


@pytest.mark.parametrize("by", ["random", "relation"])
@pytest.mark.parametrize("partitions", [1, 4])
def test_leaks_are_counted_and_together_leaves_none(
    tmp_path: Path, rng: np.random.Generator, by: str, partitions: int
) -> None:
    edges = family(rng)
    options: dict[str, Any] = {"split": "0.8,0.1,0.1", "by": by, "partitions": partitions}
    with pytest.warns(UserWarning, match=r"child and parent.* --inverse together") as said:
        apart = splits_of(gs.ingest(edges, tmp_path / "apart", **options).graph)
    leaks = leaks_of(apart)
    assert leaks > 20
    assert f"{leaks} of " in str(said[-1].message)
    graph = gs.ingest(edges, tmp_path / "together", inverse="together", **options).graph
    together = splits_of(graph)
    assert leaks_of(together) == 0
    assert abs(len(together["test"]) - len(apart["test"])) <= 3
    everything = sorted(row for rows in together.values() for row in rows)
    assert everything == sorted(row for rows in apart.values() for row in rows)
    quiet = gs.ingest(edges, tmp_path / "quiet", inverse="apart", **options).graph
    assert splits_of(quiet) == apart


def test_relations_that_are_no_inverse_are_left_alone(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    edges = family(rng, share=0.2)  # a warning would be an error
    gs.ingest(edges, tmp_path / "g", split="0.8,0.1,0.1")
    edges["relation"] = rng.choice(["a", "b", "c"], len(edges))
    gs.ingest(edges, tmp_path / "h", split="0.8,0.1,0.1")


@pytest.mark.filterwarnings("default")  # the command shows them itself
def test_the_command_does_as_the_warning_says(
    tmp_path: Path, rng: np.random.Generator, capsys: pytest.CaptureFixture[str]
) -> None:
    gs.ingest(family(rng), tmp_path / "g")
    command = ["split", str(tmp_path / "g"), "-o", str(tmp_path / "s"), "--overwrite"]
    assert main(command) == 0
    assert "--inverse together" in capsys.readouterr().err
    assert main([*command, "--inverse", "together"]) == 0
    assert "warning" not in capsys.readouterr().err
    assert leaks_of(splits_of(gs.open(tmp_path / "s"))) == 0
    assert main([*command, "--inverse", "both"]) == 2
    assert "inverse: got 'both', expected together or apart" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="inverse: by time edges of one time are"):
        gs.split(tmp_path / "g", tmp_path / "t", by="time", inverse="together")


def test_a_sample_holds_whole_pairs_and_finds_the_same(rng: np.random.Generator) -> None:
    num_pairs = 200_000
    keys = rng.integers(0, 2**63, num_pairs).astype(np.uint64)
    keys, forward = np.concatenate([keys, keys]), np.arange(2 * num_pairs) < num_pairs
    relations = np.where(forward, 3, 7)
    sample = PairSample()
    for part in np.array_split(np.arange(2 * num_pairs), 5):
        sample.add(keys[part], forward[part], relations[part], np.zeros(len(part), int))
    assert sample.bits == 1
    assert len(sample.keys) < 2**18
    assert sample.inverse_pairs() == [(3, 7)]
    assert len(sample.reverses()[0]) == len(sample.keys)
    assert canonical_relations(9, [(3, 7), (7, 8)]).tolist() == [0, 1, 2, 3, 4, 5, 6, 3, 3]
