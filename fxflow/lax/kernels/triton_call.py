"""Kernels as calls that XLA compiles by Triton, for NVIDIA GPUs."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fxflow.core.arrays import Aval
from fxflow.core.source import describe
from fxflow.devices.clients import TRITON
from fxflow.lax.foreign_calls import FfiCall, attributes_text
from fxflow.lax.kernels.errors import UnsupportedError
from fxflow.lax.kernels.params import KernelParams
from fxflow.lax.reduction import reduce_sum

if TYPE_CHECKING:
    from fxflow.lax.kernels.triton import TritonModule


def triton_call(
    params: KernelParams, in_avals: Sequence[Aval]
) -> Callable[..., list[Any]] | None:
    """Returns a function that runs a kernel by Triton, or None.

    Args:
      params: of the kernel.
      in_avals: types of the operands.

    Returns:
      A function of the operands; None if the compiler does not know the kernel (see
      `why_no_triton`).
    """
    module = _module(params, tuple(in_avals))
    if isinstance(module, str):
        return None
    outs = [
        a.update(shape=(n, *a.shape)) if n else a
        for a, n in zip(params.outs, module.parts, strict=True)
    ]
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

    def call(*operands: Any) -> list[Any]:
        results = FfiCall.bind(
            *operands,
            target=TRITON,
            out_avals=tuple(outs),
            has_side_effect=False,
            vmap_method=None,
            in_layouts=tuple(tuple(range(a.ndim)) for a in in_avals),
            out_layouts=tuple(tuple(range(a.ndim)) for a in outs),
            aliases=(),
            config=config,
            api_version=4,
        )
        return [
            reduce_sum(x, (0,)) if n else x
            for x, n in zip(results, module.parts, strict=True)
        ]

    return call


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
        if params.pure.effects:
            return "the body has effects"
        if 0 in params.grid or any(0 in a.shape for a in (*in_avals, *params.outs)):
            return "an array is empty"
        # The compiler is large, and most processes have no GPU.
        triton = importlib.import_module("fxflow.lax.kernels.triton")
        try:
            return triton.triton_module(params, in_avals)  # type: ignore[no-any-return]
        except UnsupportedError as error:
            where = f": {describe(error.source)}" if error.source else ""
            return f"the compiler does not know {error}{where}"

    return params.graph.remembered(("triton call", params, in_avals), made)
