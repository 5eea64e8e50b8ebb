"""`jax.lax`."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as _np

from fxflow import lax as _lax
from fxflow import numpy as _numpy
from fxflow.compat.jax._composed import (
    after_all,
    create_token,
    dce_sink,
    rng_uniform,
    shape_as_value,
    stage,
)
from fxflow.compat.jax._mirror import mirror
from fxflow.compat.jax._primitives import by_name
from fxflow.core import tree as _tree
from fxflow.core.arrays import is_arraylike, typeof
from fxflow.core.ir.discharge import REFS as _REFS
from fxflow.devices.clients import default_backend
from fxflow.errors import ArgumentError as _ArgumentError

_NONE: Any = object()

_Precision = str | _lax.Precision
PrecisionLike = (
    _Precision
    | tuple[_Precision, _Precision]
    | _lax.DotAlgorithm
    | _lax.DotAlgorithmPreset
    | None
)


def cond(
    pred: Any,
    true_fun: Any,
    false_fun: Any,
    *operands: Any,
    operand: Any = _NONE,
    linear: Any = None,
) -> Any:
    """Calls one of two functions; see `fxflow.lax.cond`.

    Args:
      pred: bool[].
      true_fun: called if `pred` holds.
      false_fun: called if not.
      *operands: what they are called with. `cond(pred, x, f, y, g)`, JAX's old form,
        calls `f(x)` or `g(y)`.
      operand: the one operand, by name.
      linear: has no effect.

    Returns:
      The result of the one or the other.
    """
    if operand is not _NONE:
        operands = (*operands, operand)
    if not callable(true_fun) and len(operands) == 2 and callable(operands[1]):
        x, f, (y, g) = true_fun, false_fun, operands
        return _lax.cond(pred, lambda a, b: f(a), lambda a, b: g(b), x, y)
    return _lax.cond(pred, true_fun, false_fun, *operands)


def switch(
    index: Any,
    branches: Sequence[Callable[..., Any]],
    *operands: Any,
    operand: Any = _NONE,
) -> Any:
    """Calls one of several functions; see `fxflow.lax.switch`.

    Args:
      index: integer[]; clamped.
      branches: the functions.
      *operands: what they are called with.
      operand: the one operand, by name.

    Returns:
      The result of `branches[index]`.
    """
    if operand is not _NONE:
        operands = (*operands, operand)
    return _lax.switch(index, branches, *operands)


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> Any:
    """Loops over the leading axis of arrays; see `fxflow.lax.scan`.

    Args:
      f: takes the carry and a slice, returns the next carry and a result.
      init: the first carry.
      xs: pytree of arrays, or None.
      length: how often, if `xs` does not say.
      reverse: whether to begin at the end.
      unroll: how many rounds to write out; 0 is as 1.
      _split_transpose: has no effect.

    Returns:
      The last carry and the stacked results.
    """
    return _lax.scan(f, init, xs, length, reverse, 1 if unroll == 0 else unroll)


def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Any], Any],
    init_val: Any,
    **options: Any,
) -> Any:
    """Calls a function with each integer of a range; see `fxflow.lax.fori_loop`.

    Args:
      lower, upper: the bounds.
      body_fun: of an integer and the carry, which it returns.
      init_val: the first carry; references in it are passed on as they are.
      **options: see `fxflow.lax.fori_loop`.

    Returns:
      The last carry.

    Raises:
      ArgumentError: the function returns another reference than it was given.
    """
    leaves, structure = _tree.flatten(init_val)
    held = [type(x) in _REFS for x in leaves]
    if not any(held):
        return _lax.fori_loop(lower, upper, body_fun, init_val, **options)

    def joined(values: Sequence[Any]) -> Any:
        rest = iter(values)
        parts = zip(leaves, held, strict=True)
        return structure.unflatten([x if is_ref else next(rest) for x, is_ref in parts])

    def body(i: Any, values: Sequence[Any]) -> list[Any]:
        new = _tree.leaves(body_fun(i, joined(values)))
        if len(new) != len(leaves) or any(
            is_ref and y is not x
            for x, y, is_ref in zip(leaves, new, held, strict=False)
        ):
            raise _ArgumentError(
                "fori_loop: the function must return the references of its carry in "
                "the places where it got them"
            )
        return [y for y, is_ref in zip(new, held, strict=True) if not is_ref]

    values = [x for x, is_ref in zip(leaves, held, strict=True) if not is_ref]
    return joined(_lax.fori_loop(lower, upper, body, values, **options))


def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """Applies a function to each slice along the leading axis; see `fxflow.lax.map`.

    Args:
      f: takes a slice of `xs`.
      xs: pytree of arrays.
      batch_size: how many slices to work on at a time; 0 is as None.

    Returns:
      The results, stacked.
    """
    return _lax.map(f, xs, batch_size=batch_size or None)


def dtype(x: Any) -> Any:
    """Returns the dtype of a value.

    Args:
      x: array, what may stand for one, or a dtype in any form.

    Returns:
      A `numpy.dtype`, or the dtype of keys.
    """
    if isinstance(x, _np.dtype | str | type) or not is_arraylike(x):
        return _numpy.dtype(x)
    return typeof(x).dtype


def platform_dependent(
    *args: Any, default: Callable[..., Any] | None = None, **per_platform: Any
) -> Any:
    """Calls the function for the default platform.

    Args:
      *args: of the function.
      default: for platforms that are not named.
      **per_platform: functions by the name of a platform.

    Returns:
      What the function returns.

    Raises:
      NotImplementedError: there is no function for the platform.
    """
    platform = default_backend()
    names = ("cuda", "rocm", "gpu") if platform == "gpu" else (platform,)
    function = next((per_platform[n] for n in names if n in per_platform), default)
    if function is None:
        raise NotImplementedError(
            f"platform_dependent: no function for {platform}, and no default"
        )
    return function(*args)


__all__ = mirror(globals(), "fxflow.lax")
__all__ += [
    "PrecisionLike", "after_all", "create_token", "dce_sink", "dtype",
    "platform_dependent", "rng_uniform", "shape_as_value", "stage",
]  # fmt: skip

# Not fxflow's, which has the same name.
import fxflow.compat.jax.lax.linalg as linalg  # noqa: E402, F401

_absent: Any = globals()["__getattr__"]


def __getattr__(name: str) -> Any:
    found = by_name(name)
    return _absent(name) if found is None else found
