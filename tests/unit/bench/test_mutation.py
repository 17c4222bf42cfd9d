"""``scripts/mutation``: what it changes, what it runs, what it counts."""

import argparse
import ast
import importlib
import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import ROOT

SOURCE = '''
"""A module."""
import os

LIMIT: int = 4


def first(values: list[int], end: int = 2) -> int:
    """Return 1 of 2."""
    total = 0
    for value in values:
        if not value < end:
            continue
        total += value * -1
    os.sync()
    if total == 0 and values:
        raise ValueError(f"no {1 + 1}")
    return min(total, 5)
'''


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what imports modules of ``mutating``, as scripts/mutation does."""
    monkeypatch.syspath_prepend(ROOT / "scripts")
    return importlib.import_module


def test_every_kind_of_change_is_made_and_nothing_else(load: Any) -> None:
    keys = [it.key for it in load("mutating.mutants").mutants_of(SOURCE)]
    assert keys == [
        ": 4 -> 5",
        "first: 2 -> 3",
        "first: 0 -> 1",
        "first: not value < end -> value < end",
        "first: value < end -> value <= end",
        "first: continue -> break",
        "first: total += value * -1 -> total -= value * -1",
        "first: value * -1 -> value / -1",
        "first: -1 -> 1",
        "first: 1 -> 2",
        "first: os.sync() -> pass",
        "first: total == 0 and values -> total == 0 or values",
        "first: total == 0 -> total != 0",
        "first: 0 -> 1 #2",
        "first: min -> max",
        "first: 5 -> 6",
    ]


def test_a_mutant_is_the_module_with_one_change(load: Any) -> None:
    mutants = load("mutating.mutants")
    plain = ast.unparse(ast.parse(SOURCE)).splitlines()
    for mutant in mutants.mutants_of(SOURCE):
        tree = mutants.mutated(SOURCE, mutant.index)
        compile(tree, "mutant", "exec")
        changed = ast.unparse(tree).splitlines()
        assert sum(a != b for a, b in zip(plain, changed, strict=True)) == 1
    with pytest.raises(ValueError, match="the module has no mutant 16"):
        mutants.mutated(SOURCE, 16)


def test_samples_are_those_of_the_seed_and_all_of_a_small_file(load: Any) -> None:
    main = load("mutating.__main__")
    text = "\n".join(f"x{k} = {k}" for k in range(50))

    def sample(seed: int, size: int) -> list[int]:
        chosen = argparse.Namespace(seed=seed, sample=size)
        found, total = main.sample_of("x.py", text, chosen)
        assert total == 50
        return [it.index for it in found]

    assert sample(0, 40) == sample(0, 40) != sample(1, 40)
    assert len(set(sample(0, 40))) == 40
    assert sample(0, 60) == list(range(50))


def test_a_rate_leaves_out_only_what_is_told_to_be_equivalent(
    load: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = load("mutating.__main__")
    monkeypatch.setitem(main.TARGETS, "x.py", ("tests/x.py", "--deselect", "tests/x.py::y"))
    mutants = load("mutating.mutants").mutants_of("a = 1\nb = 2\nc = 3\nd = 4\n")
    outcomes = {"0": "killed", "1": "survived", "2": "timeout", "3": "broken"}
    told = {": 4 -> 5": "nobody reads d"}
    row = main.row_of("x.py", mutants, 9, outcomes, told, 0)
    assert (row["mutants"], row["killed"], row["timeouts"], row["survived"]) == (4, 2, 1, 1)
    assert row["rate"] == pytest.approx(2 / 3)
    assert [it["mutant"] for it in row["survivors"]] == [": 2 -> 3"]
    assert row["equivalent"][0]["reason"] == "nobody reads d"


def test_targets_and_what_is_told_of_them_are_there(load: Any) -> None:
    targets, mutants = load("mutating.targets").TARGETS, load("mutating.mutants")
    for name, tests in targets.items():
        assert (ROOT / name).exists(), name
        for test in tests:
            if test.startswith("tests/"):
                assert (ROOT / test.partition("::")[0]).exists(), test
    text = (ROOT / "scripts" / "mutating" / "equivalent.toml").read_text()
    for told in tomllib.loads(text)["mutants"]:
        known = {it.key for it in mutants.mutants_of((ROOT / told["file"]).read_text())}
        assert told["mutant"] in known, told["file"]
        assert len(told["reason"]) > 20


ROOMS = (
    "graphsys/engine/execute/",
    "graphsys/engine/codegen/",
    "graphsys/storage/deltas/",
    "graphsys/storage/dynamic/",
    "graphsys/distributed/",
    "graphsys/mining/",
)
"""Where wrong results were found; each has files that are mutated."""


def test_nine_in_ten_changes_of_each_file_are_noticed_in_every_room(load: Any) -> None:
    newest = max((ROOT / "scripts" / "bench" / "results").glob("mutation_*.json"))
    rows = {row["file"]: row for row in json.loads(newest.read_text())["rows"]}
    assert rows.keys() == load("mutating.targets").TARGETS.keys()
    assert {name: row["rate"] for name, row in rows.items() if row["rate"] < 0.9} == {}
    assert [room for room in ROOMS if not any(name.startswith(room) for name in rows)] == []


def test_a_record_names_files_of_today(
    load: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    newest = max((ROOT / "scripts" / "bench" / "results").glob("mutation_*.json"))
    targets = load("mutating.targets").TARGETS
    kept = json.loads(newest.read_text())
    assert {row["file"] for row in kept["rows"]} <= set(targets)
    counted = kept["killed"] + sum(row["survived"] for row in kept["rows"])
    assert kept["killed"] == sum(row["killed"] for row in kept["rows"])
    assert kept["rate"] == pytest.approx(kept["killed"] / counted)
    monkeypatch.setattr(load("bench.output"), "RESULTS", tmp_path)
    first, second = sorted(targets)[:2]
    save = load("mutating.record").save_rows
    save([{"file": name, "killed": 9, "survived": 1} for name in ("gone.py", first)])
    told = json.loads(save([{"file": second, "killed": 5, "survived": 5}]).read_text())
    assert [row["file"] for row in told["rows"]] == [first, second]
    assert (told["killed"], told["rate"]) == (14, 0.7)


def test_stand_ins_do_what_the_instructions_do(load: Any) -> None:
    from graphsys.kernels.cpu import atomics, bits, pointers
    from graphsys.kernels.cpu.embedding import softmax

    found = load("mutating.stand_ins").STAND_INS
    numbers = np.array([5, 2**31, 9], dtype=np.uint32)
    assert found["load_uint32"](numbers.ctypes.data, 1) == 2**31
    assert found["address"](numbers) == numbers.ctypes.data
    assert (found["lowest_bit"](12), found["num_bits"](13)) == (2, 3)
    sums = np.array([1.5, 2.0])
    assert found["atomic_add"](sums, 1, 3.0) == 2.0
    assert sums.tolist() == [1.5, 5.0]
    assert (found["atomic_load"](sums, 1), found["yield_processor"]()) == (5.0, 0)
    assert found["compare_exchange"](sums, 0, 1.0, 7.0) is False
    assert found["compare_exchange"](sums, 0, 1.5, 7.0) is True
    ours = np.array([0.5, 2.0, -1.0], np.float32)
    theirs, bias = ours.copy(), np.array([0.0, 1.0, 0.5], np.float32)
    nodes = np.array([3, 4, 5])
    wanted = softmax.begin_row(theirs, bias, nodes, 4)
    where = (ours.ctypes.data, bias.ctypes.data, nodes.ctypes.data)
    assert found["_begin"](*where, 4, 3) == wanted
    assert ours.tolist() == theirs.tolist() == [0.5, -np.inf, -0.5]
    total = softmax.exp_shifted(theirs, wanted)
    assert found["_exponentials"](ours.ctypes.data, wanted, 3) == pytest.approx(total)
    assert ours == pytest.approx(theirs)
    known = {
        name
        for module in (atomics, bits, softmax, pointers)
        for name, value in vars(module).items()
        if type(value).__name__ == "_Intrinsic"
    }
    assert known <= found.keys()
