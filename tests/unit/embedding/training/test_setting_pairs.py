"""Any two settings of the registry train together, or are refused in one clear line.

The settings and their values are read off the config class: a new setting takes part.
"""

import itertools
import math
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys import embedding
from graphsys.core.config import REQUIRED
from graphsys.core.errors import GraphsysError
from graphsys.core.memory import resident_bytes
from graphsys.embedding import EmbeddingConfig
from graphsys.storage import Graph

BASE: dict[str, Any] = {
    "dim": 8,
    "epochs": 1,
    "batch_size": 40,
    "num_batch_negatives": 10,
    "num_uniform_negatives": 10,
    "threads": 1,
    "init_scale": 0.1,
}
KNOWLEDGE = {**BASE, "reciprocal": True, "operator": "complex_diagonal"}
NOT_HERE = {"tensorboard"}
"""What takes an extra of pip."""
NUM_TRAINED = 12
Change = dict[str, Any]


def values_of(hint: Any, field: "Field[Any]", base: Any) -> Iterator[Any]:
    """Yield values of a field that are not its default, by its type and its limits."""
    told = field.metadata
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        inner = [it for it in typing.get_args(hint) if it is not type(None)]
        yield from (v for it in inner for v in values_of(it, field, base))
    elif told.get("choices"):
        yield from (name for name in told["choices"]() if name != base)
    elif typing.get_origin(hint) is typing.Literal:
        yield from (value for value in typing.get_args(hint) if value != base)
    elif hint is bool:
        yield not base
    elif hint in (int, float):
        low = told["minimum"] if told["minimum"] is not None else told["above"]
        high = told["maximum"]
        if high is not None:
            yield hint(low + (high - low) / 2)
        else:
            yield hint((base or low or 0) * 2 or 1)
        if told["minimum"] is not None and told["minimum"] != base:
            yield hint(told["minimum"])
    elif is_dataclass(hint):
        yield from made_of(typing.cast("type", hint))
    elif typing.get_origin(hint) is tuple and is_dataclass(typing.get_args(hint)[0]):
        yield from ((it,) for it in values_of(typing.get_args(hint)[0], field, base))
    elif typing.get_origin(hint) in (dict, Mapping):
        name = "entity" if field.name == "node_types" else "*"
        yield from ({name: it} for it in values_of(typing.get_args(hint)[1], field, base))


def made_of(cls: type) -> Iterator[Any]:
    """Yield tables of a class, each with one value that is not its default."""
    hints = typing.get_type_hints(cls)
    own = fields(cls)
    needed = [f for f in own if f.default is REQUIRED]
    given = [[(f.name, v) for v in values_of(hints[f.name], f, None)] for f in needed]
    for chosen in itertools.product(*given):
        for field in own:
            if field in needed:
                continue
            for value in values_of(hints[field.name], field, field.default):
                try:
                    yield cls(**dict(chosen), **{field.name: value})
                except GraphsysError as err:
                    require_clear(err)


def changes_of(base: Change) -> list[Change]:
    """Return every change of one setting."""
    hints, found = typing.get_type_hints(EmbeddingConfig), []
    for field in fields(EmbeddingConfig):
        default = field.default if field.default is not MISSING else None
        own = base.get(field.name, default)
        for value in values_of(hints[field.name], field, own):
            if field.name not in NOT_HERE:
                found.append({field.name: value})
    return found


def pairs_of(base: Change) -> list[Change]:
    """Return every change of two settings."""
    every = itertools.combinations(changes_of(base), 2)
    return [first | second for first, second in every if first.keys() != second.keys()]


def require_clear(err: GraphsysError) -> None:
    """Check that an error is one line that says what was found."""
    text = str(err)
    assert len(text) > 30
    assert "\n" not in text
    assert "Traceback" not in text


def config_of(base: Change, change: Change) -> EmbeddingConfig | None:
    """Return the config, or None where it is refused, in a line that is clear."""
    try:
        return EmbeddingConfig(**{**base, **change})
    except GraphsysError as err:
        require_clear(err)
        return None


def train(graph: Graph, config: EmbeddingConfig, out: Path, **options: Any) -> str:
    """Train and measure; return what the graph refuses, or ""."""
    try:
        embedding.train(graph, config, out, **options)
    except GraphsysError as err:
        require_clear(err)
        return str(err)
    run = embedding.open_run(out)
    for name in graph.node_types:
        for part in range(graph.num_partitions(name)):
            assert np.isfinite(np.asarray(run.rows(name, part), np.float32)).all()
    found = embedding.evaluate(out, split="valid")["metrics"]
    assert 0 < found["mrr"] <= 1
    assert math.isfinite(found["mr"])
    return ""


def few(pairs: list[Change], num: int) -> list[Change]:
    """Return some of the pairs, the same in every process."""
    order = np.random.default_rng(0).permutation(len(pairs))
    return [pairs[k] for k in order[:num]]


@pytest.mark.parametrize("base", [BASE, KNOWLEDGE], ids=["usual", "knowledge"])
def test_two_settings_are_taken_or_refused_in_a_line(base: Change) -> None:
    pairs = pairs_of(base)
    assert len(pairs) > 5000  # of all settings with values of their own
    taken = [config_of(base, change) for change in few(pairs, 1000)]
    assert 0.2 < np.mean([config is not None for config in taken]) < 0.8


@pytest.mark.parametrize(("base", "partitions"), [(BASE, 4), (KNOWLEDGE, 1)])
def test_two_settings_train_together(
    make_ring: Callable[[int], Graph], tmp_path: Path, base: Change, partitions: int
) -> None:
    """Numbers and switches alone: names choose kernels, which take long to compile."""
    graph, done = make_ring(partitions), 0
    memory = resident_bytes() + 10**9  # tests before this one are in the process, too
    for number, change in enumerate(few(pairs_of(base), 150)):
        if any(isinstance(value, str) for value in change.values()):
            continue
        if (config := config_of(base, change)) is not None:
            done += not train(graph, config, tmp_path / str(number), memory=memory)
        if done == NUM_TRAINED:
            return
    pytest.fail(f"{done} pairs of settings were trained")
