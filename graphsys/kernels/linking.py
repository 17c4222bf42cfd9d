"""Machine code that stands alone: a kernel calls its own copies of what it calls.

numba puts what a kernel calls into the kernel's module, as symbols that all modules of the
process share: whichever copy was loaded first answers every call. Copies are optimized
apart, each in its caller, and where multiply-adds may be fused they may round differently:
the bits of a result depended on which other kernels the process had loaded, above all on
whether it had just compiled them. Here the copies are local to the machine code. What other
kernels take in is kept apart, as it was before it was optimized.

What only kernels call needs no machine code of its own, and is optimized where it is
called: a third of the time to compile went into code that nobody ran.
"""

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class _Library(JITCodeLibrary):  # type: ignore[misc]
    """Code of one kernel, all it calls included."""

    _codegen: Any
    _shared_module: Any
    _final_module: Any

    def _optimize_functions(self, module: Any) -> None:
        """Run numba's passes over what a module defines.

        numba makes a pass manager for each of the functions that are only declared, too.
        """
        module.data_layout = self._codegen._data_layout
        for function in module.functions:
            if not function.is_declaration:
                manager, builder = self._codegen._function_pass_manager()
                manager.run(function, builder)

    def _finalize_final_module(self) -> None:
        """Make what was linked in local, then generate machine code."""
        if self._shared_module is None:  # else loaded from the cache, where it is local
            self._shared_module = _with_linkage(
                self._final_module.clone(), llvm.Linkage.external, "linkonce_odr"
            )
            _with_linkage(self._final_module, llvm.Linkage.linkonce_odr, "internal")
        super()._finalize_final_module()


class _InnerLibrary(_Library):
    """Code of a kernel for other kernels: not optimized, no machine code."""

    def _optimize_functions(self, module: Any) -> None:
        """Leave that to the callers, too."""
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        """Leave that to the callers."""

    def _finalize_final_module(self) -> None:
        """Keep for the callers what was linked, and a module of hardly anything for numba.

        Environments are what a process fills in, by symbols, wherever code refers to them.
        """
        if self._shared_module is None:
            self._shared_module = _with_linkage(
                self._final_module, llvm.Linkage.external, "linkonce_odr"
            )
            self._final_module = _environments_of(self._final_module, self._codegen)
        super()._finalize_final_module()


def _environments_of(module: Any, codegen: Any) -> Any:
    """Return a module that defines a module's environments and nothing else."""
    made = llvm.parse_assembly(str(codegen._create_empty_module(module.name)))
    found = [
        variable
        for variable in module.global_variables
        if variable.name.startswith("_ZN08NumbaEnv") and not variable.is_declaration
    ]
    text = "\n".join(f"@{variable.name} = common global ptr null" for variable in found)
    made.link_in(llvm.parse_assembly(text))
    return made


def _with_linkage(module: Any, found: llvm.Linkage, wanted: str) -> Any:
    """Change the linkage of the functions that a module defines."""
    for function in module.functions:
        if not function.is_declaration and function.linkage == found:
            function.linkage = wanted
    return module


class SelfContained(Compiler):  # type: ignore[misc]
    """numba's compiler, whose machine code calls no copies of other kernels'."""

    library = _Library
    cache_suffix = ""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """Compile a function, for the types this was made for."""
        if self.state.library is None:
            codegen = self.state.targetctx.codegen()
            self.state.library = self.library(codegen, func.__qualname__)
            self.state.library.enable_object_caching()
        return super().compile_extra(func)


class ForKernels(SelfContained):
    """numba's compiler for what kernels take in."""

    library = _InnerLibrary
    cache_suffix = ".inner"
