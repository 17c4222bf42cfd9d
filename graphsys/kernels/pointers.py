"""Calls through addresses: kernels that are compiled apart, and only where they are wanted.

numba puts the code of all that a kernel calls into the kernel and optimizes it there anew,
and again in what calls that: at the bottom of ten levels the same loop is optimized ten
times. What is called through its address is compiled once, and not at all where nobody asks
for the address; the caller knows its signature only. Such a call costs a few nanoseconds
and is never inlined: it is for work on whole matrices.

    call_loss = pointer_call(types.float64, FLOATS, types.float32)   # beside the callers

    @jit
    def step(scores, margin, loss):
        return call_loss(loss, scores, margin)

    step(scores, margin, address_of(softmax_loss, call_loss))
"""

from collections.abc import Callable
from typing import Any, cast

from numba.core import cgutils, types
from numba.core.typing import signature
from numba.extending import intrinsic


def pointer_call(returns: Any, *arguments: Any) -> Any:
    """Return what calls kernels of one signature, inside kernels.

    Args:
        returns: Their numba type of the result.
        arguments: Their numba types of arguments. What is passed is cast to them, as far
            as numba casts implicitly; else the caller does not compile.

    Returns:
        A function for kernels: an address of :func:`address_of`, then the arguments. An
        address of 0 crashes the process.
    """
    packed = cast("Any", types).StarArgTuple(arguments)

    def call(_: Any, address: Any, *rest: Any) -> Any:
        """Call a kernel by its address."""

        def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
            convention = context.call_conv
            kind = convention.get_function_type(returns, arguments).as_pointer()
            status, result = convention.call_function(
                builder,
                builder.inttoptr(values[0], kind),
                returns,
                arguments,
                cgutils.unpack_tuple(builder, values[1], len(arguments)),
            )
            with cgutils.if_unlikely(builder, status.is_error):
                convention.return_status_propagate(builder, status)
            return result

        return returns(types.intp, packed), generate

    made = intrinsic(call)
    made.signature = signature(returns, *arguments)
    return made


def address_of(kernel: Callable[..., Any], call: Any) -> int:
    """Compile a kernel, or load it, for what calls it; return its address.

    Args:
        kernel: A kernel of the decorators in ``jit.py``; it stays in memory for good.
        call: What :func:`pointer_call` returned.

    Raises:
        TypingError: The kernel does not take such arguments, or returns what numba does not
            cast to the type of the result.
    """
    compiled = kernel.get_compile_result(call.signature)  # type: ignore[attr-defined]
    name = compiled.fndesc.llvm_func_name
    return int(compiled.library.get_pointer_to_function(name))
