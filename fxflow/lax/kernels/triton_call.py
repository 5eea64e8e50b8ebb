"""Kernels as calls that XLA compiles by Triton, for NVIDIA GPUs."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fxflow.core.arrays import Aval
from fxflow.devices.clients import TRITON
from fxflow.lax.foreign_calls import attributes_text
from fxflow.lax.kernels.compiled import caller, module_or_why
from fxflow.lax.kernels.params import KernelParams

if TYPE_CHECKING:
    from fxflow.lax.kernels.triton import TritonModule


def triton_call(
    params: KernelParams, in_avals: Sequence[Aval], free: Collection[int] = ()
) -> Callable[..., list[Any]] | None:
    """Returns a function that runs a kernel by Triton, or None.

    Args:
      params: of the kernel.
      in_avals: types of the operands.
      free: operands whose memory a result may take; not used on GPUs.

    Returns:
      A function of the operands; None if the compiler does not know the kernel (see
      `why_no_triton`).
    """
    module = _module(params, tuple(in_avals))
    if isinstance(module, str):
        return None
    number = np.int32
    config = attributes_text(
        {
            "name": module.name,
            "ir": module.text,
            "num_stages": number(module.stages),
            "num_warps": number(module.warps),
            "grid_x": number(module.programs),
            "grid_y": number(1),
            "grid_z": number(1),
        }
    )
    return caller(params, in_avals, module.parts, TRITON, config)


def triton_text(params: KernelParams, in_avals: Sequence[Aval]) -> str:
    """Returns the text of a kernel's module; empty if there is none."""
    module = _module(params, tuple(in_avals))
    return "" if isinstance(module, str) else module.text


def why_no_triton(params: KernelParams, in_avals: Sequence[Aval]) -> str:
    """Returns why a kernel is not compiled for GPUs; empty if it is."""
    module = _module(params, tuple(in_avals))
    return module if isinstance(module, str) else ""


def _module(params: KernelParams, in_avals: tuple[Aval, ...]) -> TritonModule | str:
    """Returns a kernel's module, or why there is none."""

    def made() -> TritonModule | str:
        if "gpu" not in params.platforms:
            return "it is not for GPUs"

        def compile() -> TritonModule:
            # The compiler is large, and most processes have no GPU.
            triton = importlib.import_module("fxflow.lax.kernels.triton")
            return triton.triton_module(params, in_avals)  # type: ignore[no-any-return]

        return module_or_why(params, in_avals, compile)

    return params.graph.remembered(("triton call", params, in_avals), made)
