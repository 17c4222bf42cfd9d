"""Machine code that stands alone: a kernel calls its own copies of what it calls.

numba puts what a kernel calls into the kernel's module, as symbols that all modules of the
process share: whichever copy was loaded first answers every call. Copies are optimized
apart, each in its caller, and where multiply-adds may be fused they may round differently:
the bits of a result depended on which other kernels the process had loaded, above all on
whether it had just compiled them. Here the copies are local to the machine code. What other
kernels take in, to optimize it once more, is kept as it was before.
"""

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class _Library(JITCodeLibrary):  # type: ignore[misc]
    """Code of one kernel, all it calls included."""

    _shared_module: Any

    def _finalize_final_module(self) -> None:
        """Make what was linked in local, then generate machine code."""
        if self._shared_module is None:  # else loaded from the cache, where it is local
            self._shared_module = _with_linkage(
                self._final_module.clone(), llvm.Linkage.external, "linkonce_odr"
            )
            _with_linkage(self._final_module, llvm.Linkage.linkonce_odr, "internal")
        super()._finalize_final_module()


def _with_linkage(module: Any, found: llvm.Linkage, wanted: str) -> Any:
    """Change the linkage of the functions that a module defines."""
    for function in module.functions:
        if not function.is_declaration and function.linkage == found:
            function.linkage = wanted
    return module


class SelfContained(Compiler):  # type: ignore[misc]
    """numba's compiler, whose machine code calls no copies of other kernels'."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """Compile a function, for the types this was made for."""
        if self.state.library is None:
            self.state.library = _Library(self.state.targetctx.codegen(), func.__qualname__)
            self.state.library.enable_object_caching()
        return super().compile_extra(func)
