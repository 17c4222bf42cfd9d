"""Message passing of one's own: a function makes a message per entry, rows reduce them.

What DGL calls ``update_all`` and ``apply_edges``, on the rows of any block and with
gradients. Messages by name (``copy_u``, ``u_mul_e``) are added up without being written;
those of a function take memory for every entry. Sums run by row, and gradients by source
or row, so results do not depend on the threads.

References:
    Wang et al., "Deep Graph Library: a graph-centric, highly-performant package for graph
    neural networks", 2019, for the two primitives.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from graphsys.core.errors import ConfigError, unknown_name
from graphsys.gnn.ops.adjacency import SparseRows
from graphsys.gnn.ops.functional import Reduce, spmm

Fields = Mapping[str, torch.Tensor]


class MessageEntries:
    """What a message reads: fields of the source, of the row, and of the entry itself.

    Args:
        rows: Where messages go.
        src: Tensors of the sources ``[S, ...]``, by name.
        dst: Of the rows ``[D, ...]``.
        edge: Of the entries ``[E, ...]``.
    """

    def __init__(self, rows: SparseRows, src: Fields, dst: Fields, edge: Fields) -> None:
        self.rows, self._src, self._dst, self._edge = rows, src, dst, edge

    def src(self, name: str) -> torch.Tensor:
        """Return a field of every entry's source ``[E, ...]``."""
        x = _field("src", self._src, name, self.rows.num_src)
        return _pick(self.rows, self.rows.indices, x)

    def dst(self, name: str) -> torch.Tensor:
        """Return a field of every entry's row ``[E, ...]``."""
        x = _field("dst", self._dst, name, self.rows.num_dst)
        return _pick(self.rows, _row_of(self.rows), x)

    def edge(self, name: str) -> torch.Tensor:
        """Return a field of the entries ``[E, ...]``."""
        return _field("edge", self._edge, name, self.rows.num_edges)

    def whole_src(self, name: str) -> torch.Tensor:
        """Return a field of all sources ``[S, ...]``."""
        return _field("src", self._src, name, self.rows.num_src)


@dataclass(frozen=True)
class CopyU:
    """The source's field ``u``."""

    u: str

    def __call__(self, entries: MessageEntries) -> torch.Tensor:
        """Return the message of every entry."""
        return entries.src(self.u)


@dataclass(frozen=True)
class UMulE:
    """The source's field ``u`` times the entry's ``e``, a number or one per head."""

    u: str
    e: str

    def __call__(self, entries: MessageEntries) -> torch.Tensor:
        """Return the message of every entry."""
        x, factor = entries.src(self.u), entries.edge(self.e)
        return x * factor.reshape(*factor.shape, *[1] * (x.dim() - factor.dim()))


Message = Callable[[MessageEntries], torch.Tensor]


def copy_u(u: str) -> CopyU:
    """Return the message that is the source's field ``u``."""
    return CopyU(u)


def u_mul_e(u: str, e: str) -> UMulE:
    """Return the message that is the source's field ``u`` times the entry's ``e``."""
    return UMulE(u, e)


def apply_edges(
    rows: SparseRows,
    message: Message,
    *,
    src: Fields | None = None,
    dst: Fields | None = None,
    edge: Fields | None = None,
) -> torch.Tensor:
    """Return a function's value for every entry ``[E, ...]``.

    Args:
        rows: Where messages go.
        message: Takes :class:`MessageEntries`; ``lambda e: e.src("h") * e.dst("q")``.
        src: Tensors of the sources ``[S, ...]``, by name.
        dst: Of the rows ``[D, ...]``.
        edge: Of the entries ``[E, ...]``.

    Raises:
        ConfigError: A field or the value has another length than expected.
        UnknownNameError: The function asks for a field that was not given.
    """
    found = message(MessageEntries(rows, src or {}, dst or {}, edge or {}))
    if not isinstance(found, torch.Tensor) or found.shape[:1] != (rows.num_edges,):
        what = list(found.shape) if isinstance(found, torch.Tensor) else type(found)
        raise ConfigError(
            f"the message is {what}, expected a tensor of [{rows.num_edges}, ...], a row "
            "per entry"
        )
    return found


def update_all(
    rows: SparseRows,
    message: Message,
    reduce: Reduce = "sum",
    *,
    src: Fields | None = None,
    dst: Fields | None = None,
    edge: Fields | None = None,
) -> torch.Tensor:
    """Send a message along every entry and reduce what arrives in each row.

    Args:
        rows: Where messages go.
        message: ``copy_u``, ``u_mul_e``, or a function as in :func:`apply_edges`.
        reduce: ``sum``, ``mean`` or ``max``; 0 for a row without entries.
        src: Tensors of the sources ``[S, ...]``, by name.
        dst: Of the rows ``[D, ...]``.
        edge: Of the entries ``[E, ...]``.

    Returns:
        ``[D, ...]``.

    Raises:
        ConfigError: A field or the message has another length than expected.
        UnknownNameError: The message asks for a field that was not given.
    """
    entries = MessageEntries(rows, src or {}, dst or {}, edge or {})
    if isinstance(message, CopyU):
        return _reduced(rows, entries.whole_src(message.u), None, reduce)
    if isinstance(message, UMulE) and reduce == "sum":
        x, factor = entries.whole_src(message.u), entries.edge(message.e)
        if factor.dim() == 1 or (factor.shape[1:] == x.shape[1:2] and x.dim() == 3):
            return _reduced(rows, x, factor, reduce)
    found = apply_edges(rows, message, src=src, dst=dst, edge=edge)
    return _reduced(_in_order(rows), found, None, reduce)


def _reduced(
    rows: SparseRows, x: torch.Tensor, factor: torch.Tensor | None, reduce: Reduce
) -> torch.Tensor:
    """Reduce fields of any number of dimensions."""
    if factor is not None and factor.dim() == 2:
        return spmm(rows, x, factor, reduce)
    return spmm(rows, _flat(x), factor, reduce).reshape(rows.num_dst, *x.shape[1:])


def _pick(rows: SparseRows, places: Any, x: torch.Tensor) -> torch.Tensor:
    """Return rows of ``x``; a sum of one entry each, whose gradient has no atomics."""
    if not x.is_floating_point():
        return x.index_select(0, torch.as_tensor(places))
    count = rows.num_edges
    one_each = _like(rows, _counting(rows, count + 1), places, len(x))
    return spmm(one_each, _flat(x)).reshape(count, *x.shape[1:])


def _flat(x: torch.Tensor) -> torch.Tensor:
    """Return a matrix with a row per row of ``x``, be there none."""
    return x[:, None] if x.dim() == 1 else x.flatten(1)


def _in_order(rows: SparseRows) -> SparseRows:
    """Return rows whose entries name themselves."""
    places = _counting(rows, rows.num_edges, np.int32)
    return _like(rows, rows.indptr, places, rows.num_edges)


def _row_of(rows: SparseRows) -> Any:
    entries: Any = rows.entries
    if rows.is_on_device:
        return entries.row_of
    return np.repeat(np.arange(rows.num_dst, dtype=np.int32), np.diff(rows.indptr))


def _counting(rows: SparseRows, count: int, dtype: Any = np.int64) -> Any:
    numbers = np.arange(count, dtype=dtype)
    return torch.from_numpy(numbers).to(rows.device) if rows.is_on_device else numbers


def _like(rows: SparseRows, indptr: Any, indices: Any, num_src: int) -> SparseRows:
    return type(rows)(indptr, indices, num_src, is_prefix=False)


def _field(kind: str, fields: Fields, name: str, length: int) -> torch.Tensor:
    if name not in fields:
        raise unknown_name(f"{kind} field", name, sorted(fields))
    if (found := fields[name]).shape[:1] != (length,):
        raise ConfigError(
            f"{kind} field {name!r} is {list(found.shape)}, expected [{length}, ...]"
        )
    return found
