"""`jax.experimental.pallas` on `fxflow.kernels`: compiled on CPUs, too."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels, lax
from fxflow.compat.jax._mirror import listen
from fxflow.compat.jax.experimental.pallas._call import pallas_call, run_scoped
from fxflow.compat.jax.experimental.pallas._memory import (
    MemoryRef,
    MemorySpace,
    SemaphoreType,
    allocate,
    ds,
    semaphore_read,
    semaphore_signal,
    semaphore_wait,
)
from fxflow.compat.jax.experimental.pallas._pipeline import run_state
from fxflow.compat.jax.experimental.pallas._specs import (
    BlockDim,
    Blocked,
    BlockSpec,
    BoundedSlice,
    Buffered,
    CompilerParams,
    CostEstimate,
    Element,
    GridSpec,
    Indirect,
    RevisitMode,
    Squeezed,
    no_block_spec,
    squeezed,
)
from fxflow.core.arrays import Array
from fxflow.core.ir.ref_index import Slice
from fxflow.kernels import cdiv, num_programs, program_id

ANY, HOST = MemorySpace.ANY, MemorySpace.HOST
semaphore = SemaphoreType.REGULAR
dslice = ds
broadcast_to = fnp.broadcast_to
empty, empty_like = fnp.empty, fnp.empty_like


class DeviceIdType(enum.Enum):
    """How a device is named."""

    MESH = "mesh"
    LOGICAL = "logical"


# -- the body --------------------------------------------------------------------------


def when(condition: Any) -> Callable[[Callable[[], None]], None]:
    """Runs a function of no arguments if a condition holds; a decorator.

    Args:
      condition: bool[].

    Returns:
      The decorator.
    """

    def run(function: Callable[[], None]) -> None:
        if isinstance(condition, bool):
            if condition:
                function()
            return
        kernels.when(condition)(function)

    return run


def loop(
    lower: Any,
    upper: Any,
    *,
    init_carry: Any = None,
    step: Any = 1,
    unroll: int | bool | None = None,
) -> Callable[[Callable[..., Any]], Any]:
    """Calls a function with each integer of a range; a decorator.

    Args:
      lower, upper: the bounds.
      init_carry: what the first call gets besides; each gets what the one before
        returned.
      step: the distance of the integers.
      unroll: has no effect.

    Returns:
      The decorator, which returns the last carry.
    """

    def run(function: Callable[..., Any]) -> Any:
        has_carry = init_carry is not None

        def body(i: Any, carry: Any) -> Any:
            at = lower + i * step
            if has_carry:
                return function(at, carry)
            function(at)
            return carry

        return lax.fori_loop(0, cdiv(upper - lower, step), body, init_carry)

    return run


def with_scoped(
    *types: Any, collective_axes: Any = (), **named: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Gives a function new references after its arguments; a decorator.

    Args:
      *types: of the references.
      collective_axes: has no effect.
      **named: types of those that are passed by name.

    Returns:
      The decorator.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def run(*args: Any) -> Any:
            return run_scoped(functools.partial(function, *args), *types, **named)

        return run

    return decorate


def debug_print(fmt: str, *args: Any) -> None:
    """Prints while a program runs.

    Args:
      fmt: a format with a `{}` for each array, or a prefix.
      *args: arrays.
    """
    fmt = fmt if "{" in fmt or not args else fmt + " {}" * len(args)
    fxflow.debug.print(fmt, *args)


def debug_check(condition: Any, message: str) -> None:
    """Checks a condition under `checkify`, else does nothing.

    Args:
      condition: bool[].
      message: of the error.
    """
    fxflow.checkify.debug_check(condition, message)


def delay(nanos: Any) -> None:
    """Does nothing.

    Args:
      nanos: has no effect.
    """


def multiple_of(x: Any, values: Any) -> Any:
    """Returns its first argument.

    Args:
      x: an integer, or integers.
      values: has no effect.

    Returns:
      `x`.
    """
    return x


def reciprocal(x: Any, *, approx: bool = False, full_range: bool = True) -> Array:
    """Returns `1 / x`.

    Args:
      x: float array.
      approx, full_range: have no effect: the result is exact.

    Returns:
      An array like `x`.
    """
    return fnp.reciprocal(x)


# -- sizes -----------------------------------------------------------------------------


def next_power_of_2(x: int) -> int:
    """Returns the least power of two that is not less.

    Args:
      x: an int.

    Returns:
      An int.

    Raises:
      ValueError: it is negative.

    Example:
      >>> next_power_of_2(5)
      8
    """
    if x < 0:
        raise ValueError(f"`next_power_of_2` requires a non-negative integer, got {x}")
    return 1 if x == 0 else 1 << (x - 1).bit_length()


def align_to(a: Any, alignment: Any) -> Any:
    """Returns the least multiple of a number that is not less.

    Args:
      a: an integer.
      alignment: the number.

    Returns:
      An integer.

    Example:
      >>> align_to(5, 4)
      8
    """
    return cdiv(a, alignment) * alignment


def strides_from_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the distance of neighbours along each axis, in elements.

    Args:
      shape: shape of an array in row-major order.

    Returns:
      Ints.

    Example:
      >>> strides_from_shape((2, 3, 4))
      (12, 4, 1)
    """
    found: list[int] = []
    total = 1
    for n in reversed(shape):
        found.insert(0, total)
        total *= n
    return tuple(found)


def empty_ref_like(x: Any) -> Any:
    """Returns a new reference of the shape and dtype of another.

    Args:
      x: anything with a shape and a dtype.

    Returns:
      A reference; its contents are zeros.
    """
    return allocate(x)


def estimate_cost(
    function: Callable[..., Any], *args: Any, **static: Any
) -> CostEstimate:
    """Returns what a function costs.

    Args:
      function: of arrays.
      *args: arrays, or types.
      **static: other arguments.

    Returns:
      Numbers of operations and bytes.
    """
    called = functools.partial(function, **static)
    cost = fxflow.jit(called).lower(*args).cost_analysis()
    return CostEstimate(
        int(cost.get("flops", 0)),
        int(cost.get("transcendentals", 0)),
        int(cost.get("bytes accessed", 0)),
    )


# -- without effect --------------------------------------------------------------------


@contextmanager
def _without_effect(*options: Any) -> Iterator[None]:
    """Has no effect.

    Args:
      *options: any.

    Returns:
      A context manager.
    """
    yield


enable_debug_checks = _without_effect
enable_poison_buffers = _without_effect
pallas_export_experimental = _without_effect

_REFUSED = {
    "core_map": "kernels of several cores do not exist here: write pallas_call",
    "kernel": "kernels of several cores do not exist here: write pallas_call",
    "get_global": "memory that outlives a kernel does not exist here",
    "select_ref": "references have no address: write jax.lax.switch over reads",
    "lower_as_mlir": "kernels are not lowered by MLIR: jit(f).lower(x).as_text()",
}


def _refused(name: str, why: str) -> Callable[..., NoReturn]:
    def refuse(*args: Any, **options: Any) -> NoReturn:
        raise NotImplementedError(
            f"jax.experimental.pallas.{name}: {why} (docs/compat.md)"
        )

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"""Raises an error: {why}.

    Args:
      *args: any.
      **options: any.

    Raises:
      NotImplementedError: always.
    """
    return refuse


for _name, _why in _REFUSED.items():
    globals()[_name] = _refused(_name, _why)

__all__ = [
    "ANY", "BlockDim", "BlockSpec", "Blocked", "BoundedSlice", "Buffered",
    "CompilerParams", "CostEstimate", "DeviceIdType", "Element", "GridSpec", "HOST",
    "Indirect", "MemoryRef", "MemorySpace", "RevisitMode", "Slice", "Squeezed",
    "align_to", "broadcast_to", "cdiv", "debug_check", "debug_print", "delay", "ds",
    "dslice", "empty", "empty_like", "empty_ref_like", "enable_debug_checks",
    "enable_poison_buffers", "estimate_cost", "loop", "multiple_of", "next_power_of_2",
    "no_block_spec", "num_programs", "pallas_call", "pallas_export_experimental",
    "program_id", "reciprocal", "run_scoped", "run_state", "semaphore",
    "semaphore_read", "semaphore_signal", "semaphore_wait", "squeezed",
    "strides_from_shape", "when", "with_scoped", *_REFUSED,
]  # fmt: skip

listen(globals())
