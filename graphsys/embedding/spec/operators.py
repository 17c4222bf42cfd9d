"""Operators: how a relation changes a row before it is compared.

One of another package is two functions of one row and the relation's parameters, given as
an entry point of the group ``graphsys.operators``. See the guide of
embeddings.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError
from graphsys.core.registry import SpecRegistry
from graphsys.embedding.spec.functions import Function, address_in

GROUP: Final = "graphsys.operators"

Floats = npt.NDArray[np.float32]
Sized = Callable[[int], int]
Made = Callable[[int], Floats]
Drawn = Callable[[int, np.random.Generator], Floats]


def _draw_small(size: int, rng: np.random.Generator) -> Floats:
    return rng.normal(scale=0.1, size=size).astype(np.float32)


def _zeros(size: int) -> Floats:
    return np.zeros(size, dtype=np.float32)


@dataclass(frozen=True, kw_only=True)
class OperatorSpec:
    """One operator; of another package with ``apply`` and ``gradient``.

    Attributes:
        name: What ``operator`` names it in a config.
        apply: From ``(parameters, row, out)``, float32 ``[P]``, ``[D]``, ``[D]``: writes
            the row's image.
        gradient: From ``(parameters, row, dout, drow, dparameters)``: writes the gradient
            at the row, given that at its image, and adds that at the parameters.
        num_parameters: Given D, how many it has; by default D.
        identity: Given D, parameters that change no row, float32 ``[P]``; by default
            zeros.
        draw: Given D and a generator, the first parameters with ``operator_init =
            random``; by default the identity's with small numbers added.
        code: Of ours, what kernels know it by.
        is_affine: Whether the image is an affine function of the row.
        undone_by: What on the other row has the same effect where distances, or cosines,
            are compared: its ``adjoint``, a ``shift`` back, ``identity`` of what changes
            nothing; None if nothing has.
        is_complex: Whether rows are complex: real parts, then as many imaginary ones.
        has_device: Whether a device has kernels for it.
    """

    name: str
    apply: Function | None = None
    gradient: Function | None = None
    num_parameters: Sized = lambda dim: dim
    identity: Made = _zeros
    draw: Drawn | None = None
    code: int | None = None
    is_affine: bool = False
    undone_by: Literal["identity", "shift", "adjoint"] | None = None
    is_complex: bool = False
    has_device: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be applied.

        Raises:
            ConfigError: A function is missing.
        """
        if self.is_custom and not (callable(self.apply) and callable(self.gradient)):
            raise ConfigError(
                f"operator {self.name!r}: expected the functions apply and gradient"
            )

    @property
    def is_custom(self) -> bool:
        """Whether it is two functions of another package."""
        return self.code is None

    def first(self, dim: int, rng: np.random.Generator | None) -> Floats:
        """Return the first parameters, float32 ``[P]``.

        Args:
            dim: Length of a row.
            rng: Draws them; None for those that change no row.

        Raises:
            ConfigError: There are not as many as it says.
        """
        if rng is None:
            values = self.identity(dim)
        elif self.draw is not None:
            values = self.draw(dim, rng)
        else:
            values = self.identity(dim) + _draw_small(self.num_parameters(dim), rng)
        if values.shape != (self.num_parameters(dim),):
            raise ConfigError(
                f"operator {self.name!r}: its first parameters have the shape "
                f"{values.shape}, expected ({self.num_parameters(dim)},), its "
                "num_parameters"
            )
        return values.astype(np.float32)

    @cached_property
    def addresses(self) -> tuple[int, int]:
        """Addresses of ``apply`` and ``gradient``, compiled; zeros for ours.

        Raises:
            ConfigError: One does not compile.
        """
        if self.apply is None or self.gradient is None:
            return 0, 0
        from graphsys.kernels.cpu.embedding.calls import call_apply, call_apply_gradient

        owner = f"operator {self.name!r}"
        return (
            address_in(owner, "apply", self.apply, call_apply),
            address_in(owner, "gradient", self.gradient, call_apply_gradient),
        )


OPERATORS = SpecRegistry("operator", GROUP, OperatorSpec)
register = OPERATORS.add
operator_of = OPERATORS.get


def _ones(dim: int) -> Floats:
    return np.ones(dim, dtype=np.float32)


def _draw_signs(dim: int, rng: np.random.Generator) -> Floats:
    return rng.choice(np.array([-1.0, 1.0], dtype=np.float32), dim)


def _eye(dim: int) -> Floats:
    return np.eye(dim, dtype=np.float32).reshape(-1)


def _draw_turn(dim: int, rng: np.random.Generator) -> Floats:
    turn = np.linalg.qr(rng.normal(size=(dim, dim))).Q.reshape(-1)
    return turn.astype(np.float32)


def _draw_affine(dim: int, rng: np.random.Generator) -> Floats:
    turn = _draw_turn(dim, rng)
    return np.concatenate([turn, rng.normal(scale=0.1, size=dim)]).astype(np.float32)


def _complex_one(dim: int) -> Floats:
    return np.repeat(np.array([1.0, 0.0], dtype=np.float32), dim // 2)


def _draw_complex(dim: int, rng: np.random.Generator) -> Floats:
    angle = rng.uniform(0, 2 * np.pi, dim // 2)
    return np.concatenate([np.cos(angle), np.sin(angle)]).astype(np.float32)


def _draw_angles(dim: int, rng: np.random.Generator) -> Floats:
    return rng.uniform(-np.pi, np.pi, dim // 2).astype(np.float32)


for _spec in (
    OperatorSpec(
        name="identity",
        code=0,
        num_parameters=lambda dim: 0,
        identity=lambda dim: _zeros(0),
        draw=lambda dim, rng: _zeros(0),
        is_affine=True,
        undone_by="identity",
        has_device=True,
    ),
    OperatorSpec(
        name="translation",
        code=1,
        draw=_draw_small,
        is_affine=True,
        undone_by="shift",
        has_device=True,
    ),
    OperatorSpec(
        name="diagonal",
        code=2,
        identity=_ones,
        draw=_draw_signs,
        is_affine=True,
        has_device=True,
    ),
    OperatorSpec(
        name="linear",
        code=3,
        num_parameters=lambda dim: dim * dim,
        identity=_eye,
        draw=_draw_turn,
        is_affine=True,
        has_device=True,
    ),
    OperatorSpec(
        name="complex_diagonal",
        code=4,
        identity=_complex_one,
        draw=_draw_complex,
        is_affine=True,
        is_complex=True,
        has_device=True,
    ),
    OperatorSpec(
        name="affine",
        code=5,
        num_parameters=lambda dim: dim * dim + dim,
        identity=lambda dim: np.concatenate([_eye(dim), _zeros(dim)]),
        draw=_draw_affine,
        is_affine=True,
    ),
    OperatorSpec(
        name="rotation",
        code=6,
        num_parameters=lambda dim: dim // 2,
        identity=lambda dim: _zeros(dim // 2),
        draw=_draw_angles,
        is_affine=True,
        undone_by="adjoint",
        is_complex=True,
    ),
):
    register(_spec)
