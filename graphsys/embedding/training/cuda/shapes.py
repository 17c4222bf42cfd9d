"""Block sizes of the Triton kernels, by dimension and precision."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BlockShapes:
    """How work is cut into programs; every extent of a ``tl.dot`` is at least 16.

    Attributes:
        queries: Queries per program or turn of the score kernels.
        candidates: Candidates per program or turn of the score kernels.
        depth: Part of the dimension per product.
        columns: Part of the dimension per program.
        whole: A power of 2, at least the dimension.
        run: Positions per run.
        members: Positions per turn of the row update.
        precision: Of float32 products: three tf32 products give nearly float32.
        warps: Warps per program of the score kernels.
        stages: Loads in flight in the score kernels.
    """

    queries: int
    candidates: int
    depth: int
    columns: int
    whole: int
    run: int = 16
    members: int = 8
    precision: str = "tf32x3"
    warps: int = 8
    stages: int = 2


def block_shapes(dim: int, *, is_bfloat16: bool) -> BlockShapes:
    """Return the shapes for rows of a length; no registers are spilled on sm_90."""
    whole = max(16, 1 << (dim - 1).bit_length())
    return BlockShapes(
        queries=64,
        candidates=64 if is_bfloat16 else 32,
        depth=min(whole, 64 if is_bfloat16 else 32),
        columns=min(whole, 128),
        whole=whole,
        members=max(1, min(16, 2048 // whole)),
    )
