"""A debugging aid: whether a user's combine cares about the order of messages.

Messages reach a node in an order that depends on partitions and threads, so a combiner must
be commutative and associative. Messages of the run are sampled and regrouped at random.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from graphsys.core.errors import ConfigError
from graphsys.engine.codegen.cpu import module_source
from graphsys.engine.codegen.lowered import COMPONENT, EDGE_COLUMNS, Input, Lowered
from graphsys.engine.codegen.plan import PhasePlan
from graphsys.engine.execute.directions import out_going, push_directions
from graphsys.engine.execute.executor import Executor
from graphsys.engine.execute.launch import Launch
from graphsys.engine.execute.rows import RowBlock
from graphsys.generated.modules import load_module

_SENDERS = 32
_MESSAGES = 48
_DRAWS = 200
_RELATIVE = 1e-5

Message = tuple[Any, ...]


class CombineCheck:
    """Regroups sampled messages of a run between its supersteps."""

    def __init__(self, executor: Executor, seed: int = 0) -> None:
        self._executor = executor
        self._rng = np.random.default_rng(seed)
        self._module = load_module(module_source(executor.plan))

    def check(self) -> None:
        """Check the combiner on messages that the states of now would send.

        Raises:
            ConfigError: it depends on order or grouping; the message shows messages for
                which it does.
        """
        phases = self._executor.plan.phases
        phase = phases[min(self._executor.at.phase, len(phases) - 1)]
        combine, message = phase.functions["combine"], phase.functions["message"]
        if phase.combiner != "own" or combine is None or message is None:
            return
        if phase.uses_edge_states or message.reads("at"):
            return
        messages = list(self._messages(phase, message))
        if messages:
            self._regroup(phase, combine, messages)

    # ---- regrouping

    def _regroup(self, phase: PhasePlan, combine: Lowered, messages: list[Message]) -> None:
        def joined(a: Message, b: Message) -> Message:
            return self._combined(phase, combine, a, b)

        name = f"combine of {phase.spec.name}"
        for a in messages:
            if not _same(joined(phase.identity, a), a):
                raise ConfigError(
                    f"{name}: the identity {_text(phase.identity)} changes the message "
                    f"{_text(a)} to {_text(joined(phase.identity, a))}"
                )
        for i, j, k in self._rng.integers(0, len(messages), (_DRAWS, 3)).tolist():
            a, b, c = messages[i], messages[j], messages[k]
            one, other = joined(a, b), joined(b, a)
            if not _same(one, other):
                raise ConfigError(
                    f"{name} depends on the order of messages: ({_text(a)}, {_text(b)}) "
                    f"gives {_text(one)}, ({_text(b)}, {_text(a)}) {_text(other)}; "
                    "messages come in any order"
                )
            one, other = joined(joined(a, b), c), joined(a, joined(b, c))
            if not _same(one, other):
                raise ConfigError(
                    f"{name} depends on the grouping of messages: {_text(a)} and "
                    f"{_text(b)} first and then {_text(c)} gives {_text(one)}, "
                    f"{_text(b)} and {_text(c)} first {_text(other)}; any grouping occurs"
                )
        combiner = phase.spec.combine
        if combiner is not None and combiner.idempotent:
            for a in messages:
                if not _same(joined(a, a), a):
                    raise ConfigError(
                        f"{name} is declared idempotent, but {_text(a)} with itself gives "
                        f"{_text(joined(a, a))}"
                    )

    def _combined(
        self, phase: PhasePlan, combine: Lowered, a: Message, b: Message
    ) -> Message:
        pair: list[Any] = [a, b] if len(a) > 1 else [a[0], b[0]]
        others = [self._scalar(given, {}) for given in combine.inputs]
        found = getattr(self._module, combine.name)(*pair, *others)
        return _typed(phase, found)

    # ---- sampling

    def _messages(self, phase: PhasePlan, message: Lowered) -> Iterator[Message]:
        """Yield some messages that nodes would send now; those that are sent, not None."""
        executor = self._executor
        frontier = executor.frontier
        degrees = out_going(executor.arrays, phase)
        if frontier is None or frontier.everyone or not frontier.count:
            nodes = np.flatnonzero(degrees)
        else:
            nodes = frontier.listed()[degrees[frontier.listed()] > 0]
        if not len(nodes):
            return
        nodes = self._rng.choice(nodes, min(_SENDERS, len(nodes)), replace=False)
        found = 0
        for direction in push_directions(executor.topology, phase):
            for block, own in executor.supersteps.rows.holding(direction, np.sort(nodes)):
                for node in own.tolist():
                    row = node - block.row_base
                    entries = range(int(block.begins[row]), int(block.ends[row]))
                    for entry in entries[:3]:
                        sent = self._message(phase, message, block, node, entry)
                        if sent != _typed(phase, _one(phase.identity)):
                            yield sent
                            found += 1
                        if found >= _MESSAGES:
                            return

    def _message(
        self, phase: PhasePlan, message: Lowered, block: RowBlock, node: int, entry: int
    ) -> Message:
        ends = {"src": node, "dst": int(block.indices[entry]) + block.column_base}
        values = [self._scalar(given, ends, block, entry) for given in message.inputs]
        if message.drops:
            values.append(_one(_typed(phase, _one(phase.identity))))
        return _typed(phase, getattr(self._module, message.name)(*values))

    def _scalar(
        self,
        given: Input,
        ends: dict[str, int],
        block: RowBlock | None = None,
        entry: int = 0,
    ) -> Any:
        executor = self._executor
        if given.kind in ends:
            known = executor.arrays.states
            array = known.get(given.name)
            array = executor.arrays.column(given.name) if array is None else array
            found = array[ends[given.kind]]
            return found[0] if np.ndim(found) else found  # components are alike
        if given == COMPONENT:
            return 0
        if given.kind == "edge":
            if given.name not in EDGE_COLUMNS:
                return True
            if block is None or given.name not in block.columns:
                return 1.0 if given.name == "weight" else 0
            row = ends["src"] - block.row_base
            shift = int(block.begins_of(given.name)[row]) - int(block.begins[row])
            return block.columns[given.name][entry + shift]
        launch = Launch(kernel="", block=executor.supersteps.all_nodes, phase=None)
        return executor.launcher.argument(given.argument, launch)


def _typed(phase: PhasePlan, found: Any) -> Message:
    values = found if isinstance(found, tuple) else (found,)
    pairs = zip(values, phase.message_dtypes, strict=True)
    return tuple(dtype.type(value) for value, dtype in pairs)


def _one(values: Message) -> Any:
    return values if len(values) > 1 else values[0]


def _same(a: Message, b: Message) -> bool:
    return all(
        bool(np.isclose(x, y, rtol=_RELATIVE, atol=1e-9, equal_nan=True))
        for x, y in zip(a, b, strict=True)
    )


def _text(message: Message) -> str:
    texts = [str(getattr(value, "item", lambda v=value: v)()) for value in message]
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
