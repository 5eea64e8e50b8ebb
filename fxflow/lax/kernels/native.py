"""Kernels as calls of machine code that LLVM compiles for this process's CPU."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from fxflow._config import config
from fxflow.core.arrays import Aval
from fxflow.devices.native import register_kernel, vector_lanes
from fxflow.lax.kernels.compiled import caller, module_or_why
from fxflow.lax.kernels.in_place import Pair, in_place
from fxflow.lax.kernels.llvm import kernel_module
from fxflow.lax.kernels.params import KernelParams

#: The name of the pass that puts these calls in place of kernels.
PASS = "compile_kernels"


def is_enabled() -> bool:
    """Returns whether `config.passes` lets kernels be compiled."""
    return config.passes == "all" or PASS in config.passes.split(",")


def native_call(
    params: KernelParams, in_avals: Sequence[Aval], free: Collection[int] = ()
) -> Callable[..., list[Any]] | None:
    """Returns a function that runs a kernel as machine code, or None.

    The kernel is compiled and registered.

    Args:
      params: of the kernel.
      in_avals: types of the operands.
      free: operands whose memory nothing reads after the kernel: a result may take it.

    Returns:
      A function of the operands; None without LLVM, or if the kernel has an operation
      or a dtype that the compiler does not know (see `why_not`).
    """
    pairs: tuple[Pair, ...] = ()
    if free:
        params, pairs = in_place(params, in_avals, free)
    found = _module(params, tuple(in_avals), pairs)
    if isinstance(found, str):
        return None
    target, chunks = found
    parts = [chunks if s and chunks > 1 else 0 for s in params.sums()]
    return caller(params, in_avals, parts, target, "{}", pairs)


def why_not(params: KernelParams, in_avals: Sequence[Aval]) -> str:
    """Returns why a kernel is not compiled; empty if it is."""
    found = _module(params, tuple(in_avals))
    return found if isinstance(found, str) else ""


def llvm_text(params: KernelParams, in_avals: Sequence[Aval]) -> str:
    """Returns the text of a kernel's module; empty if it is not compiled."""
    if why_not(params, in_avals):
        return ""
    return kernel_module(params, tuple(in_avals), vector_lanes()).text


def _module(
    params: KernelParams, in_avals: tuple[Aval, ...], pairs: tuple[Pair, ...] = ()
) -> tuple[str, int] | str:
    """Returns a compiled kernel's target and its chunks; or why there is none."""

    def compiled() -> tuple[str, int] | str:
        if "cpu" not in params.platforms:
            return "it is not for CPUs"
        lanes = vector_lanes()
        if not lanes:
            return "llvmlite is not installed (pip install fxflow[kernels])"

        def compile() -> tuple[str, int]:
            module = kernel_module(params, in_avals, lanes, pairs)
            register_kernel(module.target, module.text)
            return module.target, module.chunks

        return module_or_why(params, in_avals, compile)

    return params.graph.remembered(("native", params, in_avals, pairs), compiled)
