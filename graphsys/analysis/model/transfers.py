"""Copies between host and GPU that a run over rows would make, by who drives it.

Three styles. ``host-driven`` is that of the applications the paper looked at: arrays are
copied once, and around every superstep the host clears a flag on the device and reads it
back. ``ours`` copies arrays once and reads 64 bytes of counters after a superstep; where
supersteps are fused it looks less often, so the count is an upper bound. ``unified`` maps
the arrays: the first touch of a page faults, and the flag's page does twice a superstep.
Pages of neighbors are counted in the superstep that touches them first; offsets and states
in the first one. A training copies the arrays of every batch, in whatever style.

Times are a model: each transfer takes a latency, and its bytes the link's rate. Latency and
rate are assumed, see :class:`HostLink`.
"""

from dataclasses import dataclass

from graphsys.core.errors import unknown_name

STYLES = ("host-driven", "ours", "unified")
FLAG_BYTES = 4
COUNTER_BYTES = 64
PAGE_BYTES = 64 << 10
"""What a fault of the device brings: the granule of the driver's migration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLink:
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
    "H100 SXM": HostLink(bytes_per_s=51e9),  # PCIe 5.0 x16, 64 GB/s
    "H200": HostLink(bytes_per_s=51e9),
    "A100": HostLink(bytes_per_s=25e9),  # PCIe 4.0 x16
    "Fermi M2050": HostLink(bytes_per_s=6.4e9),  # PCIe 2.0 x16
}
"""By the GPU's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfers:
    """What is copied.

    Attributes:
        count: Copies, or faults.
        num_bytes: Their bytes.
        seconds: By the link's model.
    """

    count: int
    num_bytes: int
    seconds: float

    def __add__(self, other: "Transfers") -> "Transfers":
        return Transfers(
            count=self.count + other.count,
            num_bytes=self.num_bytes + other.num_bytes,
            seconds=self.seconds + other.seconds,
        )


@dataclass(slots=True, kw_only=True)
class StepArrays:
    """What a superstep, or a batch of a training, brings to the device and takes back.

    Attributes:
        arrays: Bytes of each array that the device gets.
        results: Bytes of each array that the host reads.
        packed: Bytes of each copy where small arrays share one, as ours do; None: those of
            ``arrays``.
        row_bytes: Bytes of neighbors among the arrays.
        row_pages: Pages of those neighbors that are touched for the first time; None: all
            of their bytes are.
    """

    arrays: tuple[int, ...] = ()
    results: tuple[int, ...] = ()
    packed: tuple[int, ...] | None = None
    row_bytes: int = 0
    row_pages: int | None = None


def copies_seconds(count: int, num_bytes: int, link: HostLink) -> float:
    """Return how long explicit copies take, one after the other.

    Examples:
        >>> copies_seconds(2, 1000, HostLink(bytes_per_s=1e9, copy_s=1e-6))
        3e-06
    """
    return count * link.copy_s + num_bytes / link.bytes_per_s


def step_transfers(style: str, step: StepArrays, link: HostLink) -> Transfers:
    """Return what one superstep, or one batch, copies.

    Args:
        style: One of :data:`STYLES`.
        step: What it needs and gives.
        link: Between host and device.

    Raises:
        UnknownNameError: no such style.

    Examples:
        >>> link = HostLink(bytes_per_s=1e9, copy_s=1e-6)
        >>> step_transfers("ours", StepArrays(arrays=(1000, 500)), link).count
        3
    """
    if style not in STYLES:
        raise unknown_name("style of transfers", style, STYLES)
    is_packed = style == "ours" and step.packed is not None
    moved = ((step.packed or ()) if is_packed else step.arrays) + step.results
    if style == "unified":
        pages = sum(-(-size // PAGE_BYTES) for size in moved)
        pages += step.row_pages or 0
        if step.row_pages is None:
            pages += -(-step.row_bytes // PAGE_BYTES)
        count = pages + 2
        num_bytes = count * PAGE_BYTES
        seconds = count * link.fault_s + num_bytes / link.bytes_per_s
        return Transfers(count=count, num_bytes=num_bytes, seconds=seconds)
    each, size = (2, 2 * FLAG_BYTES) if style == "host-driven" else (1, COUNTER_BYTES)
    count = len(moved) + (step.row_bytes > 0) + each
    num_bytes = sum(moved) + step.row_bytes + size
    seconds = copies_seconds(count, num_bytes, link)
    return Transfers(count=count, num_bytes=num_bytes, seconds=seconds)
