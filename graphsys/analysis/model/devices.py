"""GPUs that the SIMT model knows, and how many CTAs fit on one of their SMs."""

from dataclasses import dataclass

from graphsys.core.errors import ConfigError, unknown_name

WARP = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """What of a GPU decides where CTAs go.

    Attributes:
        name: As people write it.
        num_sms: Streaming multiprocessors.
        max_threads: Resident threads of an SM.
        max_ctas: Resident CTAs of an SM.
        registers: 32-bit registers of an SM.
        register_unit: Registers are given to a warp in multiples of this.
        shared_bytes: Shared memory of an SM.
        reserved_bytes: Of it, taken by the system for every CTA.
    """

    name: str
    num_sms: int
    max_threads: int
    max_ctas: int
    registers: int
    register_unit: int
    shared_bytes: int
    reserved_bytes: int


GPUS = {
    "h100": Gpu(
        name="H100 SXM",
        num_sms=132,
        max_threads=2048,
        max_ctas=32,
        registers=65536,
        register_unit=256,
        shared_bytes=228 << 10,
        reserved_bytes=1024,
    ),
    "h200": Gpu(
        name="H200",
        num_sms=132,
        max_threads=2048,
        max_ctas=32,
        registers=65536,
        register_unit=256,
        shared_bytes=228 << 10,
        reserved_bytes=1024,
    ),
    "a100": Gpu(
        name="A100",
        num_sms=108,
        max_threads=2048,
        max_ctas=32,
        registers=65536,
        register_unit=256,
        shared_bytes=164 << 10,
        reserved_bytes=1024,
    ),
    "m2050": Gpu(
        name="Fermi M2050",
        num_sms=14,
        max_threads=1536,
        max_ctas=8,
        registers=32768,
        register_unit=64,
        shared_bytes=48 << 10,
        reserved_bytes=0,
    ),
}
"""By the name that ``--gpu-model`` takes.

Limits per SM: CUDA C++ Programming Guide, technical specifications per compute capability
(9.0, 9.0, 8.0 and 2.0); SMs: NVIDIA's data sheets of the boards.
"""


def gpu_of(name: str) -> Gpu:
    """Return a GPU by name.

    Raises:
        UnknownNameError: there is none; the message lists the known ones.
    """
    if name.lower() not in GPUS:
        raise unknown_name("GPU model", name, GPUS)
    return GPUS[name.lower()]


@dataclass(frozen=True, slots=True)
class Occupancy:
    """How full an SM can be.

    Attributes:
        ctas: CTAs that fit at once.
        fraction: Their warps as a share of the most that the SM holds.
        limit: What keeps it from more: ``threads``, ``CTAs``, ``registers`` or ``shared
            memory``.
    """

    ctas: int
    fraction: float
    limit: str


def occupancy(
    gpu: Gpu, *, threads: int = 256, registers: int = 32, shared_bytes: int = 0
) -> Occupancy:
    """Return the theoretical occupancy of a kernel.

    Args:
        gpu: The GPU.
        threads: Threads of a CTA, a multiple of 32.
        registers: Registers of a thread.
        shared_bytes: Shared memory of a CTA.

    Raises:
        ConfigError: a CTA does not fit on an SM, or is no multiple of 32 threads.

    Examples:
        >>> occupancy(GPUS["h100"], threads=256, registers=32)
        Occupancy(ctas=8, fraction=1.0, limit='threads')
        >>> occupancy(GPUS["h100"], threads=256, registers=64)
        Occupancy(ctas=4, fraction=0.5, limit='registers')
    """
    if threads < WARP or threads % WARP:
        raise ConfigError(f"a CTA has 32, 64 ... threads, got {threads}")
    unit, warps = gpu.register_unit, threads // WARP
    per_warp = -(-max(registers, 1) * WARP // unit) * unit
    fits = {
        "threads": gpu.max_threads // threads,
        "CTAs": gpu.max_ctas,
        "registers": gpu.registers // per_warp // warps,
        "shared memory": gpu.shared_bytes // max(shared_bytes + gpu.reserved_bytes, 1),
    }
    limit = min(fits, key=lambda name: fits[name])
    ctas = fits[limit]
    if ctas < 1:
        raise ConfigError(
            f"a CTA of {threads} threads with {registers} registers each and "
            f"{shared_bytes} bytes of shared memory does not fit on an SM of the "
            f"{gpu.name}: {limit} run out"
        )
    return Occupancy(ctas, ctas * threads / gpu.max_threads, limit)
