"""The loop over work that threads share: each claims the next chunk by an atomic counter.

A kernel that several threads run at once writes ``for node in claimed_rows(bounds,
counter)`` and states what is to be done for one node. Chunks are claimed in order, and
every number is one thread's; a thread whose chunks were light claims more of them (the
dynamic schedule of OpenMP). The counter, int64 ``[1]``, is zero when the first begins.

The loops are iterators of numba's own, lowered in the kernel's code as ``range`` is: a call
or a generator that holds arrays would count references in the loop (DEVELOPERS.md, Traps).
Rows are known not to be negative: numba need not ask whether an index counts from the end.
Numbers of a range are not, as this made loops over listed nodes 5 % slower.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.imputils import RefType, iternext_impl, lower_builtin
from numba.core.types.common import SimpleIteratorType
from numba.core.types.misc import CPointer, EphemeralPointer
from numba.extending import intrinsic, models, register_model

_WORD = ir.IntType(64)


class _Claims(SimpleIteratorType):
    """The type of the iterators.

    Args:
        kind: ``rows`` or ``words`` of 64 rows: chunks lie between bounds; ``range``: they
            are blocks of one size.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        super().__init__(f"claimed_{kind}", types.int64)


@register_model(_Claims)
class _ClaimsModel(models.StructModel):  # type: ignore[misc]
    """What a thread has in hand, and where more is; addresses need no reference."""

    def __init__(self, data_model_manager: Any, kind: Any) -> None:
        number = EphemeralPointer(types.int64)
        members = [
            ("following", number),  # the number that is next, in this function's frame
            ("end", number),  # of the chunk in hand
            ("counter", CPointer(types.int64)),
            ("bounds", CPointer(types.int64)),
            ("first", types.int64),
            ("stop", types.int64),  # first number, or chunk, that is nobody's
            ("block", types.int64),
        ]
        super().__init__(data_model_manager, kind, members)


@intrinsic
def claimed_rows(typing_context, bounds, counter):  # type: ignore[no-untyped-def]
    """Iterate over the rows of the chunks that this thread claims.

    ``bounds`` are those of the chunks, int64 ``[C + 1]``; ``counter`` the next chunk.
    """
    return _by_bounds("rows", bounds, counter)


@intrinsic
def claimed_words(typing_context, bounds, counter):  # type: ignore[no-untyped-def]
    """Iterate like :func:`claimed_rows` over words of the rows' bitmaps.

    All bounds but the last are multiples of 64.
    """
    return _by_bounds("words", bounds, counter)


@intrinsic
def claimed_range(typing_context, first, stop, block, counter):  # type: ignore[no-untyped-def]
    """Iterate over the numbers from ``first`` to ``stop - 1`` that this thread claims.

    It claims ``block`` of them at a time; ``counter`` is how many are claimed so far.
    """
    _check("counter", counter)
    kind = _Claims("range")

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        claims = _begin(context, builder, kind, signature.args[3], args[3])
        claims.first, claims.stop, claims.block = args[:3]
        return claims._getvalue()

    return kind(types.int64, types.int64, types.int64, counter), generate


def _by_bounds(name: str, bounds: Any, counter: Any) -> Any:
    _check("bounds", bounds)
    _check("counter", counter)
    kind = _Claims(name)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        claims = _begin(context, builder, kind, signature.args[1], args[1])
        array = context.make_array(signature.args[0])(context, builder, args[0])
        claims.bounds = array.data
        claims.stop = builder.sub(array.nitems, _WORD(1))
        return claims._getvalue()

    return kind(bounds, counter), generate


def _check(name: str, kind: Any) -> None:
    is_fit = isinstance(kind, types.Array) and kind.layout == "C" and kind.ndim == 1
    if not is_fit or kind.dtype != types.int64:
        raise TypingError(f"{name}: got {kind}, expected a contiguous int64 array")


def _begin(context: Any, builder: Any, kind: Any, counter_kind: Any, counter: Any) -> Any:
    """Return the state of an iterator that has no chunk in hand."""
    claims = cgutils.create_struct_proxy(kind)(context, builder)
    claims.following = cgutils.alloca_once_value(builder, _WORD(0))
    claims.end = cgutils.alloca_once_value(builder, _WORD(0))
    claims.counter = context.make_array(counter_kind)(context, builder, counter).data
    return claims


@lower_builtin("iternext", _Claims)  # type: ignore[untyped-decorator]
@iternext_impl(RefType.UNTRACKED)  # type: ignore[untyped-decorator]
def _next(context: Any, builder: Any, signature: Any, args: Any, result: Any) -> None:
    """Yield the next number of the chunk in hand; claim chunks until one has any."""
    kind = signature.args[0]
    claims = cgutils.create_struct_proxy(kind)(context, builder, args[0])
    in_hand = builder.load(claims.following)
    # The common way is a comparison and an addition, as of a plain loop.
    has_more = builder.icmp_signed("<", in_hand, builder.load(claims.end))
    before = builder.basic_block
    claim = builder.append_basic_block("claim")
    found = builder.append_basic_block("claim.found")
    following = builder.append_basic_block("claim.next")
    builder.cbranch(has_more, following, claim).set_weights([99, 1])

    builder.position_at_end(claim)
    is_range = kind.kind == "range"
    step = claims.block if is_range else _WORD(1)
    # Threads that come too late count on beyond the end, which nobody minds.
    chunk = builder.atomic_rmw("add", claims.counter, step, "seq_cst")
    if is_range:
        chunk = builder.add(chunk, claims.first)
    builder.cbranch(builder.icmp_signed("<", chunk, claims.stop), found, following)
    claimed = builder.basic_block

    builder.position_at_end(found)
    begin, end = _chunk(builder, claims, chunk, kind.kind)
    builder.store(end, claims.end)
    # A chunk may be empty: then the next one is claimed.
    builder.cbranch(builder.icmp_signed("<", begin, end), following, claim)
    fetched = builder.basic_block

    builder.position_at_end(following)
    number, is_valid = builder.phi(_WORD), builder.phi(ir.IntType(1))
    for value, valid, block in (
        (in_hand, 1, before),
        (begin, 1, fetched),
        (_WORD(0), 0, claimed),
    ):
        number.add_incoming(value, block)
        is_valid.add_incoming(ir.IntType(1)(valid), block)
    if not is_range:
        builder.assume(builder.icmp_signed(">=", number, _WORD(0)))
    builder.store(builder.add(number, _WORD(1), flags=["nsw"]), claims.following)
    result.set_valid(is_valid)
    result.yield_(number)


def _chunk(builder: Any, claims: Any, chunk: Any, kind: str) -> tuple[Any, Any]:
    """Return where a chunk begins and ends."""
    if kind == "range":
        end = builder.add(chunk, claims.block)
        is_last = builder.icmp_signed("<", claims.stop, end)
        return chunk, builder.select(is_last, claims.stop, end)
    begin = builder.load(builder.gep(claims.bounds, [chunk]))
    end = builder.load(builder.gep(claims.bounds, [builder.add(chunk, _WORD(1))]))
    if kind == "words":
        begin = builder.ashr(begin, _WORD(6))
        end = builder.ashr(builder.add(end, _WORD(63)), _WORD(6))
    return begin, end
