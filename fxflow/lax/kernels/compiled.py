"""What the compilers of kernels share: why there is no module, and the call of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from fxflow.core.arrays import Aval
from fxflow.core.source import describe
from fxflow.lax.foreign_calls import FfiCall
from fxflow.lax.kernels.errors import UnsupportedError
from fxflow.lax.kernels.params import KernelParams
from fxflow.lax.reduction import reduce_sum

M = TypeVar("M")


def module_or_why(
    params: KernelParams, in_avals: Sequence[Aval], compile: Callable[[], M]
) -> M | str:
    """Returns what compiling a kernel gives, or why it cannot be compiled.

    Args:
      params: of the kernel.
      in_avals: types of the operands.
      compile: makes the module; it may raise `UnsupportedError`.
    """
    if params.pure.effects:
        return "the body has effects"
    if 0 in params.grid or any(0 in a.shape for a in (*in_avals, *params.outs)):
        return "an array is empty"
    try:
        return compile()
    except UnsupportedError as error:
        where = f": {describe(error.source)}" if error.source else ""
        return f"the compiler does not know {error}{where}"


def caller(
    params: KernelParams,
    in_avals: Sequence[Aval],
    parts: Sequence[int],
    target: str,
    config: str,
    pairs: Sequence[tuple[int, int]] = (),
) -> Callable[..., list[Any]]:
    """Returns a function of the operands that calls a compiled kernel.

    Args:
      params: of the kernel.
      in_avals: types of the operands.
      parts: for each result the number of its partial sums, which are added here; 0 if
        it is not divided.
      target: of the call.
      config: attributes of the call.
      pairs: operands, and the results that have their memory.
    """
    outs = [
        a.update(shape=(n, *a.shape)) if n else a
        for a, n in zip(params.outs, parts, strict=True)
    ]

    def call(*operands: Any) -> list[Any]:
        results = FfiCall.bind(
            *operands,
            target=target,
            out_avals=tuple(outs),
            has_side_effect=False,
            vmap_method=None,
            in_layouts=tuple(tuple(range(a.ndim)) for a in in_avals),
            out_layouts=tuple(tuple(range(a.ndim)) for a in outs),
            aliases=tuple(pairs),
            config=config,
            api_version=4,
        )
        return [
            reduce_sum(x, (0,)) if n else x for x, n in zip(results, parts, strict=True)
        ]

    return call
