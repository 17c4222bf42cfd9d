"""One superstep on the CPU: dense by pull, sparse by push, or along chosen rows.

Dense supersteps pull: every row gathers the messages of its neighbors, and the node is
updated in the same pass. Sparse ones push along the out rows of the frontier into an
accumulator, then update the nodes that were touched; messages that cannot be combined
atomically are pulled along the rows of the touched nodes instead. Which way is taken
depends on the edges of the frontier; the results do not.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from graphsys.engine.codegen.plan import PhasePlan
from graphsys.engine.execute.arrays import Array, RunArrays
from graphsys.engine.execute.directions import (
    in_coming,
    num_messages,
    out_going,
    pull_directions,
    push_directions,
)
from graphsys.engine.execute.frontier import Frontier, StepResult
from graphsys.engine.execute.launch import Launch
from graphsys.engine.execute.launcher import Launcher
from graphsys.engine.execute.rows import RowBlock, RowProvider, all_nodes, part_of_nodes
from graphsys.kernels.cpu.bits import num_words
from graphsys.kernels.cpu.node_lists import clear_listed, mark_neighbors

PULL_SHARE = 10
"""Pull when the frontier's edges are more than one of so many (Beamer's alpha is 14)."""
_WORDS_A_SWEEP = 16
"""Words that are cleared in a row in the time of one by its node's number."""
_SMALL_WORK = 30_000
"""Edges below which a second thread costs more than it saves."""


class Supersteps:
    """Runs supersteps of any phase.

    Args:
        launcher: Calls the kernels.
        rows: The graph's rows.
        list_limit: Nodes that lists have room for, where memory is short.
    """

    def __init__(
        self, launcher: Launcher, rows: RowProvider, list_limit: int | None = None
    ) -> None:
        self.launcher = launcher
        self.list_limit = list_limit
        self.arrays: RunArrays = launcher.arrays
        self.topology = launcher.arrays.topology
        self.rows = rows
        n = self.num_nodes = self.topology.num_nodes
        self.all_nodes = all_nodes(self.topology)
        self._touched = np.zeros(num_words(n), dtype=np.uint64)
        self._cursor = np.zeros(1, dtype=np.int64)

    def everyone(self, phase: PhasePlan) -> Frontier:
        """Return the frontier of all nodes."""
        return Frontier.all(self.num_nodes, num_messages(self.topology, phase))

    def listed(self, phase: PhasePlan, nodes: Array) -> Frontier:
        """Return the frontier of some nodes, by number, each given once."""
        edges = int(out_going(self.arrays, phase)[nodes].sum(dtype=np.int64))
        return Frontier.from_list(self.num_nodes, nodes, edges)

    def initial_totals(self, phase: PhasePlan) -> None:
        """Compute the aggregators on the states as they are."""
        launch = Launch(kernel="totals", block=self.all_nodes, phase=phase)
        self._take_totals(phase, self.launcher.call(launch))

    def run(self, phase: PhasePlan, frontier: Frontier) -> StepResult:
        """Run one superstep of a phase, in which the frontier sends."""
        senders = self._senders(phase, frontier)
        step = self._run_by_mode(phase, senders)
        # One sender is like itself; what all send alike makes receivers alike again.
        if phase.spreads_alike and (senders.is_alike or senders.count == 1):
            step.frontier.is_alike = True
        return step

    def _run_by_mode(self, phase: PhasePlan, senders: Frontier) -> StepResult:
        if phase.kind == "local":
            return self._local(phase, senders)
        if self._is_dense(phase, senders):
            return self._pull(phase, senders)
        if self._can_claim(phase, senders):
            return self._claim(phase, senders)
        if phase.can_push:
            return self._push(phase, senders)
        return self._pull_rows(phase, senders)

    def _is_dense(self, phase: PhasePlan, senders: Frontier) -> bool:
        if phase.spec.schedule == "all":
            return True
        if senders.edges * PULL_SHARE > num_messages(self.topology, phase):
            return True
        few_enough = self.list_limit is None or senders.edges <= self.list_limit
        if phase.can_push:
            return not few_enough
        directions = pull_directions(self.topology, phase)
        is_whole = len(directions) == 1 and self.rows.are_whole(directions[0])
        return not (is_whole and few_enough)

    def _senders(self, phase: PhasePlan, frontier: Frontier) -> Frontier:
        """Return the nodes of the frontier for which ``active`` holds."""
        if phase.spec.schedule == "all":
            frontier = self.everyone(phase)
        if phase.functions["active"] is None:
            return frontier
        words = np.zeros(num_words(self.num_nodes), dtype=np.uint64)
        extra = {"senders": words, "senders_out_going": out_going(self.arrays, phase)}
        launch = Launch(kernel="active", block=self.all_nodes, phase=phase, extra=extra)
        count, edges = self.launcher.call(launch)[:, :2].sum(axis=0).tolist()
        if frontier.everyone:
            return Frontier.from_words(self.num_nodes, words, int(count), int(edges))
        words &= frontier.words()
        count = int(np.bitwise_count(words).sum())
        found = Frontier.from_words(self.num_nodes, words, count, 0)
        return replace(found, edges=self.listed(phase, found.listed()).edges)

    # ---- over all nodes

    def _local(self, phase: PhasePlan, senders: Frontier) -> StepResult:
        changed = self._fresh_words(phase)
        launch = Launch(
            kernel="apply",
            block=self.all_nodes,
            phase=phase,
            senders=senders,
            extra={"changed": changed},
        )
        parts = self.launcher.call(launch)
        self.arrays.swap(phase.buffered)
        return self._dense_step("local", phase, senders, parts, changed)

    def _pull(self, phase: PhasePlan, sending: Frontier) -> StepResult:
        changed = self._fresh_words(phase)
        # old messages again cannot lower a state, and are cheaper than a test per edge
        is_harmless = bool(phase.monotone) and phase.functions["active"] is None
        senders = self.everyone(phase) if is_harmless else sending
        directions = pull_directions(self.topology, phase)
        are_whole = len(directions) == 1 and self.rows.are_whole(directions[0])
        is_one = are_whole and self.rows.num_blocks(directions[0]) == 1
        same = self._same_message(phase, senders) if is_one else {}
        if phase.kind in ("node", "mode") and not same:
            self._send(phase, senders)
        if phase.kind == "mode":
            parts = self._mode(phase)
        elif are_whole:
            kernel = "look" if same else "pull"
            parts = self._over_blocks(kernel, phase, senders, changed, sending, same)
        else:
            self._over_blocks("gather", phase, senders, changed, sending, same)
            extra = {"changed": changed, "touched": self._touched}
            launch = Launch(kernel="apply", block=self.all_nodes, phase=phase, extra=extra)
            parts = self.launcher.call(launch)
            self._touched.fill(0)
        self.arrays.swap(phase.buffered)
        self.arrays.keep_stored(phase)
        return self._dense_step("pull", phase, sending, parts, changed)

    def _over_blocks(
        self,
        kernel: str,
        phase: PhasePlan,
        senders: Frontier,
        changed: Array,
        sending: Frontier,
        same: dict[str, Any],
    ) -> Array:
        """Run a kernel over all rows, or those that ``sending`` nodes can reach."""
        extra = {"changed": changed, "touched": self._touched, **same}
        extra.update(self.arrays.stored(phase))
        parts = [np.zeros((0, 2 + len(self.arrays.plan.spec.aggregators)))]
        active = sending if phase.spec.schedule == "changed" else None
        directions = pull_directions(self.topology, phase)
        may_skip = active is not None and self.rows.num_blocks(directions[0]) > 1
        if kernel == "pull" and may_skip:
            self._copy_states(phase.buffered)
        for direction in directions:
            for block in self.rows.blocks(direction, active):
                launch = Launch(
                    kernel=kernel, block=block, phase=phase, senders=senders, extra=extra
                )
                parts.append(self.launcher.call(launch))
        return np.concatenate(parts)

    def _same_message(self, phase: PhasePlan, senders: Frontier) -> dict[str, Any]:
        """Return the one message of all senders as ``look`` takes it, or nothing."""
        if senders.everyone or not self.launcher.has(f"same_{phase.number}"):
            return {}
        dtype, block, extra = phase.message_dtypes[0], self.all_nodes, {}
        if senders.is_alike:  # ask those of one word alone
            word = int(np.argmax(senders.words() != 0))
            block = part_of_nodes(self.all_nodes, 64 * word, 64)
            extra = {"active": senders.words()[word:], "everyone": False}
        first = np.zeros(max(len(block.bounds) - 1, 1), dtype)
        launch = Launch(
            kernel="same",
            block=block,
            phase=phase,
            senders=senders,
            extra={"first_0": first, **extra},
        )
        num_sent, num_same = self.launcher.call(launch)[:, :2].T
        messages = first[: len(num_sent)][num_sent > 0]
        if not len(messages) or (num_sent != num_same).any():
            return {}
        return {"same_0": messages[0]} if (messages == messages[0]).all() else {}

    def _send(self, phase: PhasePlan, senders: Frontier) -> None:
        launch = Launch(kernel="send", block=self.all_nodes, phase=phase, senders=senders)
        self.launcher.call(launch)

    def _mode(self, phase: PhasePlan) -> Array:
        degrees = in_coming(self.arrays, phase)
        longest = int(degrees.max()) if self.num_nodes else 0
        directions = pull_directions(self.topology, phase)
        if self.rows.num_blocks(directions[0]) != 1:  # nodes of some types have no rows
            self._copy_states(phase.buffered)
        parts = [np.zeros((0, 2 + len(self.arrays.plan.spec.aggregators)))]
        for first, second in self.rows.groups(directions):
            extra = {
                "max_degree": max(longest, 1),
                "scratch_size": 2 ** (2 * longest + 1).bit_length(),
                "other_begins": second.begins if second else first.begins[:0],
                "other_ends": second.ends if second else first.ends[:0],
                "other_indices": second.indices if second else first.indices[:0],
            }
            launch = Launch(kernel="pull", block=first, phase=phase, extra=extra)
            parts.append(self.launcher.call(launch))
        return np.concatenate(parts)

    def _copy_states(self, names: Iterable[str]) -> None:
        """Make the next values those of now, for nodes that no kernel will visit."""
        for name in names:
            np.copyto(self.arrays.next_of(name), self.arrays.states[name])

    # ---- over a frontier

    def _push(self, phase: PhasePlan, senders: Frontier) -> StepResult:
        parallel = senders.edges + senders.count > _SMALL_WORK
        self._cursor[0] = 0
        extra = {
            "touched": self._touched,
            "touched_list": self.arrays.touched_list,
            "cursor": self._cursor,
        }
        for block, nodes in self._by_block(phase, senders):
            launch = Launch(
                kernel="push",
                block=block,
                phase=phase,
                parallel=parallel,
                nodes=nodes,
                extra=extra,
            )
            self.launcher.call(launch)
        touched = self.arrays.touched_list[: int(self._cursor[0])]
        return self._update("push", phase, senders, "apply", [(self.all_nodes, touched)])

    def _can_claim(self, phase: PhasePlan, senders: Frontier) -> bool:
        """Whether senders may update: the rows are one block and no sender accepts."""
        if not self.launcher.has(f"accepting_{phase.number}"):
            return False
        directions = push_directions(self.topology, phase)
        if any(self.rows.num_blocks(direction) != 1 for direction in directions):
            return False
        launch = Launch(
            kernel="accepting",
            block=self.all_nodes,
            phase=phase,
            nodes=senders.listed(),
            parallel=senders.count > _SMALL_WORK,
        )
        return not self.launcher.call(launch)[:, 0].any()

    def _claim(self, phase: PhasePlan, senders: Frontier) -> StepResult:
        """Let senders update the nodes that they find."""
        self._cursor[0] = 0
        counts = np.zeros((self.launcher.num_threads, 2))
        extra = {
            "touched": self._touched,
            "touched_list": self.arrays.touched_list,
            "cursor": self._cursor,
            "partial": counts,
        }
        total = np.zeros(2)
        for block, nodes in self._by_block(phase, senders):
            launch = Launch(
                kernel="claim",
                block=block,
                phase=phase,
                nodes=nodes,
                extra=extra,
                parallel=senders.edges + senders.count > _SMALL_WORK,
            )
            counts.fill(0)
            self.launcher.call(launch)
            total += counts.sum(axis=0)
        changed, edges = int(total[0]), int(total[1])
        claimed = self.arrays.touched_list[: int(self._cursor[0])]
        # Nodes that were found but not changed are noted as their complements, below 0.
        if changed == len(claimed):
            fresh = claimed.copy()
        else:
            fresh = claimed[claimed >= 0]
            np.copyto(claimed, ~claimed, where=claimed < 0)
        self._clear_touched(claimed)
        frontier = Frontier.from_list(self.num_nodes, fresh, edges)
        return StepResult("push", senders.count, senders.edges, changed, frontier)

    def _pull_rows(self, phase: PhasePlan, senders: Frontier) -> StepResult:
        """Pull the rows of all nodes that hear from the frontier."""
        self._cursor[0] = 0
        if phase.kind == "node":
            self._send(phase, senders)
        for block, nodes in self._by_block(phase, senders):
            self.launcher.run_alone(
                mark_neighbors,
                nodes,
                len(nodes),
                block.begins,
                block.ends,
                block.indices,
                block.row_base,
                block.column_base,
                self._touched,
                self.arrays.touched_list,
                self._cursor,
            )
        touched = self.arrays.touched_list[: int(self._cursor[0])]
        (direction,) = pull_directions(self.topology, phase)
        visits = self.rows.holding(direction, touched)
        return self._update("pull rows", phase, senders, "pull", visits)

    def _update(
        self,
        mode: str,
        phase: PhasePlan,
        senders: Frontier,
        kernel: str,
        visits: Iterable[tuple[RowBlock, Array]],
    ) -> StepResult:
        """Update the touched nodes; those that change are the next frontier."""
        touched = self.arrays.touched_list[: int(self._cursor[0])]
        # Only touched nodes can change, so that room for them is enough.
        fresh = np.empty(len(touched), dtype=np.int64)
        # a kernel that reads other nodes' states must not write over them
        copied = phase.buffered if mode == "pull rows" else phase.buffered & phase.read_at
        self._copy_states(copied)
        self.launcher.next_cursor[0] = 0
        parts = [np.zeros((0, 2 + len(self.arrays.plan.spec.aggregators)))]
        for block, nodes in visits:
            launch = Launch(
                kernel=kernel,
                block=block,
                phase=phase,
                nodes=nodes,
                extra={"next_list": fresh},
                in_place=phase.buffered - copied,
                parallel=len(touched) > _SMALL_WORK // 8,
                senders=senders if kernel == "pull" else None,
            )
            parts.append(self.launcher.call(launch))
        self.arrays.swap(copied)
        self._clear_touched(touched)
        changed, edges = self._take_totals(phase, np.concatenate(parts))
        fresh = fresh[: int(self.launcher.next_cursor[0])]
        frontier = Frontier.from_list(self.num_nodes, fresh, edges)
        return StepResult(mode, senders.count, senders.edges, changed, frontier)

    def _by_block(
        self, phase: PhasePlan, senders: Frontier
    ) -> Iterator[tuple[RowBlock, Array]]:
        """Yield the blocks that hold rows of the senders, with those senders."""
        listed = senders.listed()
        for direction in push_directions(self.topology, phase):
            yield from self.rows.holding(direction, listed)

    # ---- afterwards

    def _clear_touched(self, listed: Array) -> None:
        """Unset the bits of the listed nodes, which are all that are set."""
        # Single bits jump through memory: from some share on, sweeping all words is faster.
        if len(listed) * _WORDS_A_SWEEP > len(self._touched):
            self._touched.fill(0)
        else:
            clear_listed(listed, len(listed), self._touched)

    def _fresh_words(self, phase: PhasePlan) -> Array:
        needed = phase.spec.schedule == "changed"
        return np.zeros(num_words(self.num_nodes) if needed else 1, dtype=np.uint64)

    def _dense_step(
        self, mode: str, phase: PhasePlan, senders: Frontier, parts: Array, changed: Array
    ) -> StepResult:
        count, edges = self._take_totals(phase, parts)
        frontier = self.everyone(phase)
        if phase.spec.schedule == "changed":
            frontier = Frontier.from_words(self.num_nodes, changed, count, edges)
        return StepResult(mode, senders.count, senders.edges, count, frontier)

    def _take_totals(self, phase: PhasePlan, parts: Array) -> tuple[int, int]:
        """Reduce the chunks' parts in their order; keep the aggregators' totals.

        An empty graph has totals too: ``until`` and ``answer`` read them.
        """
        with np.errstate(over="ignore"):  # a total may grow to infinity; until() sees it
            sums = parts.sum(axis=0).tolist()
        if phase.functions["aggregate"] is None:
            return int(sums[0]), int(sums[1])
        for i, (name, kind) in enumerate(self.arrays.plan.spec.aggregators.items()):
            total = sums[i + 2]
            if kind.operation != "sum":
                column = parts[:, i + 2]
                least = kind.operation == "minimum"
                total = column.min(initial=np.inf) if least else column.max(initial=-np.inf)
            self.launcher.totals[name] = float(total)
        return int(sums[0]), int(sums[1])
