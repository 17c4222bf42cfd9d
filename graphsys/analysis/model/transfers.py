"""Copies between host and GPU that a run over rows would make, by who drives it.

Three styles. ``host-driven`` is that of the applications the paper looked at: arrays are
copied once, and around every superstep the host clears a flag on the device and reads it
back. ``ours`` copies arrays once and reads 64 bytes of counters after a superstep; where
supersteps are fused it looks less often, so the count is an upper bound. ``unified`` maps
the arrays: the first touch of a page faults, and the flag's page does twice a superstep.

Times are a model: each transfer takes a latency, and its bytes the link's rate. Latency and
rate are assumed, see :class:`Link`.
"""

from dataclasses import dataclass

from graphsys.core.errors import unknown_name

STYLES = ("host-driven", "ours", "unified")
FLAG_BYTES = 4
COUNTER_BYTES = 64
PAGE_BYTES = 64 << 10
"""What a fault of the device brings: the granule of the driver's migration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """What is assumed of the way between host and GPU; nothing of it was measured.

    Attributes:
        bytes_per_s: Rate of a long copy: PCIe's, less a fifth for its headers.
        copy_s: What a copy takes however short it is.
        fault_s: What a page fault takes besides its bytes.
    """

    bytes_per_s: float
    copy_s: float = 10e-6
    fault_s: float = 30e-6


LINKS = {
    "H100 SXM": Link(bytes_per_s=51e9),  # PCIe 5.0 x16, 64 GB/s
    "H200": Link(bytes_per_s=51e9),
    "A100": Link(bytes_per_s=25e9),  # PCIe 4.0 x16
    "Fermi M2050": Link(bytes_per_s=6.4e9),  # PCIe 2.0 x16
}
"""By the GPU's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfers:
    """What a run copies.

    Attributes:
        count: Copies, or faults.
        num_bytes: Their bytes.
        per_superstep: Of the copies, those of every superstep.
        seconds: By the link's model.
    """

    count: int
    num_bytes: int
    per_superstep: int
    seconds: float


def copies_seconds(count: int, num_bytes: int, link: Link) -> float:
    """Return how long explicit copies take, one after the other.

    Examples:
        >>> copies_seconds(2, 1000, Link(bytes_per_s=1e9, copy_s=1e-6))
        3e-06
    """
    return count * link.copy_s + num_bytes / link.bytes_per_s


def predicted_transfers(
    style: str, arrays: tuple[int, ...], result_bytes: int, supersteps: int, link: Link
) -> Transfers:
    """Return what a run of so many supersteps copies.

    Args:
        style: One of :data:`STYLES`.
        arrays: Bytes of each array that the device needs.
        result_bytes: Bytes that the host reads in the end.
        supersteps: How many there were.
        link: Between host and device.

    Raises:
        UnknownNameError: no such style.
    """
    if style not in STYLES:
        raise unknown_name("style of transfers", style, STYLES)
    total = sum(arrays) + result_bytes
    if style == "unified":
        pages = sum(-(-size // PAGE_BYTES) for size in (*arrays, result_bytes))
        count = pages + 2 * supersteps
        moved = count * PAGE_BYTES
        seconds = count * link.fault_s + moved / link.bytes_per_s
        return Transfers(count=count, num_bytes=moved, per_superstep=2, seconds=seconds)
    each, size = (2, 2 * FLAG_BYTES) if style == "host-driven" else (1, COUNTER_BYTES)
    count = len(arrays) + 1 + each * supersteps
    moved = total + size * supersteps
    seconds = copies_seconds(count, moved, link)
    return Transfers(count=count, num_bytes=moved, per_superstep=each, seconds=seconds)
