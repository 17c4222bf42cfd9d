"""Enqueueing one superstep: which kernels, over which rows, in which order."""

from typing import Any

import numpy as np

from graphsys.engine.codegen.plan import PhasePlan
from graphsys.engine.cuda.arrays import COMPACTED, SENDERS, TOUCHED, WIDTH
from graphsys.engine.cuda.counters import Counters
from graphsys.engine.cuda.frontier import DeviceFrontier
from graphsys.engine.cuda.launch import DeviceLaunch, DeviceLauncher
from graphsys.engine.cuda.mappings import Mappings
from graphsys.engine.cuda.profile_events import tell
from graphsys.engine.cuda.rows import DeviceBlock, DeviceBlocks
from graphsys.engine.execute.directions import pull_directions, push_directions

_TWC = ("thread", "warp", "block")


class Enqueuer:
    """Enqueues the kernels of supersteps; reads nothing back unless asked.

    Args:
        launcher: Launches kernels.
        rows: The graph's rows.
        strategy: Who visits a row.
        max_fused: Supersteps between two looks of the host, at most.

    Attributes:
        last_mapping: Who visited the rows of the last superstep.
        mappings: Who visits which rows.
    """

    def __init__(
        self, launcher: DeviceLauncher, rows: DeviceBlocks, strategy: str, max_fused: int
    ) -> None:
        self.launcher = launcher
        self.device = launcher.device
        self.memory = launcher.memory
        self.rows = rows
        self.topology = launcher.arrays.topology
        self.num_nodes = launcher.arrays.num_nodes
        self.last_mapping = ""
        self.counters = Counters(launcher, max_fused)
        self._counts = self.counters.counts
        self._bin_sizes = self.memory.full(3, 0, np.int64)
        self._scan_blocks = min(128, launcher.shape.max_blocks)
        self._epoch = 0
        self._touch_epoch = 0
        self._used_parts = 0
        self.mappings = Mappings(launcher, strategy)

    def totals(self, phase: PhasePlan) -> None:
        """Compute the aggregators on the states as they are."""
        common = self._update_arguments(0, listing=False)
        mapping = self.mappings.of_nodes
        self._update("totals", phase, None, mapping, self.num_nodes, common)
        self._reduce_totals(phase)

    # ---- one superstep

    def superstep(
        self, phase: PhasePlan, senders: DeviceFrontier, mode: str, at: int
    ) -> None:
        """Enqueue one superstep whose counters stand at ``at``."""
        self._used_parts = 0
        if mode == "local":
            self._local(phase, senders, at)
        elif mode == "pull":
            self._pull(phase, senders, at)
        elif mode == "push":
            self._push(phase, senders, at)
        else:
            self._pull_rows(phase, senders, at)
        self._reduce_totals(phase)

    def next_frontier(self, phase: PhasePlan, mode: str, at: int) -> DeviceFrontier:
        """Return the frontier that the last superstep left; its counts are not known."""
        frontier = DeviceFrontier(self.num_nodes, size_at=at)
        if phase.spec.schedule == "all":
            frontier.everyone = True
        elif mode in ("pull", "local"):
            frontier.epoch = self._epoch
        else:
            frontier.is_listed = True
        return frontier

    def active_senders(self, phase: PhasePlan, frontier: DeviceFrontier) -> DeviceFrontier:
        """List and stamp the nodes of a frontier that may send."""
        arguments = self._sender_arguments(frontier)
        self._epoch += 1
        arguments |= {
            "senders": self.device.stamps("changed"),
            "senders_epoch": self._epoch,
            "senders_list": self.device.node_list("next"),
            "counts": self._counts,
            "senders_at": SENDERS,
        }
        self.launcher.launch(
            DeviceLaunch(
                kernel="active",
                phase=phase,
                mapping=self.mappings.of_nodes,
                items=self.num_nodes,
                arguments=arguments,
            )
        )
        self.device.swap_named("stamps", "active", "changed")
        self.device.swap_named("list", "frontier", "next")
        return DeviceFrontier(
            self.num_nodes, epoch=self._epoch, is_listed=True, size_at=SENDERS
        )

    def _local(self, phase: PhasePlan, senders: DeviceFrontier, at: int) -> None:
        arguments = self._sender_arguments(senders)
        arguments |= self._update_arguments(at, listing=False)
        mapping = self.mappings.of_nodes
        self._update("apply", phase, None, mapping, self.num_nodes, arguments)
        self._end_dense(phase)

    def _pull(self, phase: PhasePlan, senders: DeviceFrontier, at: int) -> None:
        arguments = self._sender_arguments(senders)
        if phase.kind in ("node", "mode"):
            self._send(phase, arguments)
        self.device.start_storing(phase)
        arguments |= self._update_arguments(at, listing=False)
        directions = pull_directions(self.topology, phase)
        mapping = self.mappings.dense(phase)
        self.last_mapping = mapping
        if phase.kind == "mode":
            self._mode(phase, mapping, arguments)
        elif len(directions) == 1 and mapping != "edge":
            for block in self.rows.blocks(directions[0]):
                self._over_rows("pull", phase, block, mapping, arguments)
        else:
            self._gather(phase, mapping, at, arguments)
        self.device.swap(phase.buffered)
        self.device.keep_stored(phase)
        self._end_dense(phase)

    def _gather(
        self, phase: PhasePlan, mapping: str, at: int, arguments: dict[str, Any]
    ) -> None:
        """Combine the messages of all rows first, then update all nodes."""
        self._touch_epoch += 1
        arguments = arguments | self._touch_arguments(at, touching=False)
        for direction in pull_directions(self.topology, phase):
            for block in self.rows.blocks(direction):
                if mapping == "edge":
                    tell(self.launcher, "gather", phase, block, mapping, arguments)
                    self.launcher.launch(
                        DeviceLaunch(
                            kernel="gather_edge",
                            phase=phase,
                            items=block.num_edges,
                            block=block,
                            arguments=arguments,
                        )
                    )
                else:
                    self._over_rows("gather", phase, block, mapping, arguments)
        mapping = self.mappings.of_nodes
        self._update("apply", phase, None, mapping, self.num_nodes, arguments)

    def _push(self, phase: PhasePlan, senders: DeviceFrontier, at: int) -> None:
        self._ensure_listed(senders)
        self._touch_epoch += 1
        arguments = self._touch_arguments(at, touching=True)
        arguments |= {
            "nodes": self.device.node_list("frontier"),
            "sizes": self._counts,
            "size_at": senders.size_at,
            "listed": True,
        }
        mapping = self.mappings.sparse(phase)
        self.last_mapping = mapping
        for direction in push_directions(self.topology, phase):
            block = self.rows.block(direction)
            if mapping == "edge":
                arguments["offsets"] = self._offsets(arguments, block)
            name = {"edge": "push_edge"}.get(mapping, "push")
            self._over_rows(name, phase, block, mapping, arguments)
        copied = phase.buffered & phase.read_at
        self._update_touched("apply", phase, None, "thread", at, copied, {})

    def _pull_rows(self, phase: PhasePlan, senders: DeviceFrontier, at: int) -> None:
        """Pull the rows of all nodes that hear from the frontier."""
        self._ensure_listed(senders)
        arguments = self._sender_arguments(senders)
        if phase.kind == "node":
            self._send(phase, arguments)
        self._touch_epoch += 1
        for direction in push_directions(self.topology, phase):
            block = self.rows.block(direction)
            self.launcher.launch_common(
                "mark_neighbors",
                self.num_nodes,
                self.device.node_list("frontier"),
                self._counts,
                senders.size_at,
                block.row_base,
                block.indptr,
                block.indices,
                self.device.stamps("touched"),
                self._touch_epoch,
                self.device.node_list("touched"),
                at + TOUCHED,
                mapping="warp",
            )
        block = self.rows.block(pull_directions(self.topology, phase)[0])
        mapping = self.mappings.sparse(phase)
        mapping = "warp" if mapping == "edge" else mapping
        self.last_mapping = mapping
        self._update_touched("pull", phase, block, mapping, at, phase.buffered, arguments)

    def _update_touched(
        self,
        kernel: str,
        phase: PhasePlan,
        block: DeviceBlock | None,
        mapping: str,
        at: int,
        copied: frozenset[str],
        arguments: dict[str, Any],
    ) -> None:
        """Update the touched nodes; those that change are the next list."""
        for name in copied:
            self.memory.copy(self.device.states[name], self.device.next_of(name))
        arguments = arguments | self._update_arguments(at, listing=True)
        arguments |= {
            "nodes": self.device.node_list("touched"),
            "sizes": self._counts,
            "size_at": at + TOUCHED,
            "listed": True,
        }
        arguments |= self._touch_arguments(at, touching=False)
        in_place = phase.buffered - copied
        if block is None:
            self._update(kernel, phase, None, mapping, self.num_nodes, arguments, in_place)
        else:
            self._over_rows(kernel, phase, block, mapping, arguments, in_place)
        self.device.swap(copied)
        self.device.swap_named("list", "frontier", "next")

    def _mode(self, phase: PhasePlan, mapping: str, arguments: dict[str, Any]) -> None:
        directions = pull_directions(self.topology, phase)
        dtype = phase.message_dtypes[0]
        if len(directions) == 1:
            for block in self.rows.blocks(directions[0]):
                nothing = {"other_indptr": block.indptr, "other_indices": block.indices}
                scratch = self.device.scratch("mode", block.num_edges, dtype)
                more = {"both": False, "scratch": scratch, **nothing}
                self._over_rows("pull", phase, block, mapping, arguments | more)
            return
        first, second = (self.rows.block(direction) for direction in directions)
        more = {
            "both": True,
            "other_indptr": second.indptr,
            "other_indices": second.indices,
            "scratch": self.device.scratch(
                "mode", first.num_edges + second.num_edges, dtype
            ),
        }
        tell(self.launcher, "pull", phase, second, mapping, arguments)
        self._over_rows("pull", phase, first, mapping, arguments | more)

    def _send(self, phase: PhasePlan, arguments: dict[str, Any]) -> None:
        self.launcher.launch(
            DeviceLaunch(
                kernel="send",
                phase=phase,
                mapping=self.mappings.of_nodes,
                items=self.num_nodes,
                arguments=arguments,
            )
        )

    def _end_dense(self, phase: PhasePlan) -> None:
        if phase.kind == "local":
            self.device.swap(phase.buffered)
        if phase.spec.schedule == "changed":
            self._epoch += 1
            self.device.swap_named("stamps", "active", "changed")

    # ---- over rows by a mapping

    def _over_rows(
        self,
        kernel: str,
        phase: PhasePlan,
        block: DeviceBlock,
        mapping: str,
        arguments: dict[str, Any],
        in_place: frozenset[str] = frozenset(),
    ) -> None:
        """Run a kernel over the rows of a block, or over those listed in ``nodes``."""
        listed = "size_at" in arguments
        arguments = self._listing() | arguments
        items = self.num_nodes if listed else block.num_rows
        tell(self.launcher, kernel, phase, block, mapping, arguments)
        if mapping == "edge":
            items = block.num_edges
            self._update(kernel, phase, block, "thread", items, arguments, in_place)
            return
        if mapping != "twc":
            name = f"{kernel}_{mapping}"
            self._update(name, phase, block, mapping, items, arguments, in_place)
            return
        sizes = self._binned(block, arguments)
        mappings = ("thread", "block", "block") if phase.kind == "mode" else _TWC
        for i, (bin_name, by) in enumerate(zip(_TWC, mappings, strict=True)):
            part = arguments | {
                "nodes": self.device.node_list(f"bin {bin_name}"),
                "sizes": sizes,
                "size_at": i,
                "listed": True,
            }
            self._update(f"{kernel}_{by}", phase, block, by, items, part, in_place)

    def _binned(self, block: DeviceBlock, arguments: dict[str, Any]) -> Any:
        """Sort nodes into three lists by the length of their rows; return the sizes."""
        self.memory.write(np.zeros(3, dtype=np.int64), self._bin_sizes)
        bins = [self.device.node_list(f"bin {name}") for name in _TWC]
        self.launcher.launch_common(
            "bin_nodes",
            self.num_nodes,
            arguments["nodes"],
            arguments["sizes"],
            arguments["size_at"],
            arguments["listed"],
            block.row_base,
            block.num_rows,
            block.indptr,
            self.launcher.shape.block,
            *bins,
            self._bin_sizes,
            0,
        )
        return self._bin_sizes

    def _listing(self) -> dict[str, Any]:
        """Return what says which nodes are listed, where a kernel takes all rows."""
        return {
            "nodes": self.device.node_list("frontier"),
            "sizes": self._counts,
            "size_at": 0,
            "listed": False,
        }

    def _update(
        self,
        kernel: str,
        phase: PhasePlan,
        block: DeviceBlock | None,
        mapping: str,
        items: int,
        arguments: dict[str, Any],
        in_place: frozenset[str] = frozenset(),
    ) -> None:
        """Launch a kernel; its warps' parts of the totals come after those before."""
        arguments = self._listing() | arguments
        arguments["part_base"] = self._used_parts
        if self.counters.num_totals:
            warps = self.launcher.shape.max_blocks * self.launcher.shape.block // 32
            length = (self._used_parts + warps) * self.counters.num_totals
            arguments["partial"] = self._partial(length)
        used = self.launcher.launch(
            DeviceLaunch(
                kernel=kernel,
                phase=phase,
                mapping=mapping,
                items=items,
                block=block,
                in_place=in_place,
                arguments=arguments,
            )
        )
        if self.launcher.takes(kernel, phase, "partial"):
            self._used_parts += used

    def _partial(self, length: int) -> Any:
        old = self.device.scratch("parts", 1, np.float64)
        if len(old) >= length:
            return old
        grown = self.device.scratch("parts", 4 * length, np.float64)
        if self._used_parts:
            used = self._used_parts * self.counters.num_totals
            grown[:used].copy_to_device(old[:used], stream=self.memory.stream)
        return grown

    def _reduce_totals(self, phase: PhasePlan) -> None:
        if phase.functions["aggregate"] is None or not self._used_parts:
            return
        self.launcher.launch_common(
            "reduce_totals",
            1,
            self._partial(1),
            self._used_parts,
            self.counters.num_totals,
            self.counters.operations,
            self.counters.totals,
            blocks=1,
        )
        self._used_parts = 0

    def _offsets(self, arguments: dict[str, Any], block: DeviceBlock) -> Any:
        """Return where each listed row begins among all their entries."""
        offsets = self.device.scratch(
            "offsets", self.num_nodes + 1 + self._scan_blocks, np.int64
        )
        segments = offsets[self.num_nodes + 1 :]
        which = (
            arguments["nodes"],
            arguments["sizes"],
            arguments["size_at"],
            block.row_base,
            block.indptr,
            segments,
        )
        n = self.num_nodes
        self.launcher.launch_common("sum_segments", n, *which, blocks=self._scan_blocks)
        self.launcher.launch_common(
            "scan_segments", 1, segments, self._scan_blocks, blocks=1
        )
        self.launcher.launch_common(
            "write_offsets", n, *which, offsets, blocks=self._scan_blocks
        )
        return offsets

    # ---- forms of the frontier

    def _ensure_listed(self, frontier: DeviceFrontier) -> None:
        if frontier.is_listed:
            return
        listed = self.device.node_list("frontier")
        self.launcher.launch_common(
            "list_stamped",
            self.num_nodes,
            self.device.stamps("active"),
            frontier.epoch,
            self.num_nodes,
            listed,
            self._counts,
            COMPACTED,
        )
        frontier.is_listed, frontier.size_at = True, COMPACTED

    def _sender_arguments(self, frontier: DeviceFrontier) -> dict[str, Any]:
        """Return what kernels need to know who sends; stamps a listed frontier."""
        if not frontier.everyone and frontier.epoch is None:
            self._epoch += 1
            self.launcher.launch_common(
                "stamp_listed",
                self.num_nodes,
                self.device.node_list("frontier"),
                self._counts,
                frontier.size_at,
                self.device.stamps("active"),
                self._epoch,
            )
            frontier.epoch = self._epoch
        epoch = -2 if frontier.everyone else frontier.epoch
        active = self.device.stamps("active")
        return {"everyone": frontier.everyone, "active": active, "epoch": epoch}

    def _update_arguments(self, at: int, *, listing: bool) -> dict[str, Any]:
        return {
            "counts": self._counts,
            "at": at,
            "next_at": at + WIDTH,
            "listing": listing,
            "changed": self.device.stamps("changed"),
            "next_epoch": self._epoch + 1,
            "next_list": self.device.node_list("next"),
            "totals": self.counters.totals,
        }

    def _touch_arguments(self, at: int, *, touching: bool) -> dict[str, Any]:
        return {
            "touched": self.device.stamps("touched"),
            "touch_epoch": self._touch_epoch,
            "touching": touching,
            "touched_list": self.device.node_list("touched"),
            "counts": self._counts,
            "at": at,
        }
