"""`fwd_and_bwd`: the two passes of reverse mode as functions of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fxflow.core.boundary import boundary, require_callable
from fxflow.core.source import name_of
from fxflow.transforms.arguments import (
    as_indices,
    normalize_indices,
    pick,
)
from fxflow.transforms.jit import jit
from fxflow.transforms.vjp import VJPFunction, vjp


@boundary
def fwd_and_bwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool = False,
    jitted: bool = True,
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Makes two functions of one: its forward pass and its backward pass.

    What `vjp` returns is another function at each call, which `jit` would compile anew;
    these two are compiled once, apart from one another.

    Args:
      fun: function of arrays (or pytrees of them).
      argnums: which positional arguments to differentiate with respect to.
      has_aux: whether `fun` returns `(result, aux)`, `aux` not being differentiated.
      jitted: whether both are compiled.

    Returns:
      `fwd(*args)`, which gives `(result, residuals)` or `(result, residuals, aux)`, and
      `bwd(residuals, cotangents)`, which gives a tuple with the cotangent of each of
      these arguments. Residuals are a pytree.

    Raises:
      ArgumentError: `argnums` is out of range, or an argument or result is not an
        array.

    Example:
      >>> fwd, bwd = fxflow.fwd_and_bwd(lambda x, w: x * w, argnums=(0, 1))
      >>> y, residuals = fwd(2.0, 3.0)
      >>> [float(cotangent) for cotangent in bwd(residuals, 1.0)]
      [3.0, 2.0]

    Source: reverse mode; see `vjp`.
    """
    require_callable(fun, "fwd_and_bwd")
    indices, name = as_indices(argnums, "argnums"), name_of(fun)

    def fwd(*args: Any) -> Any:
        positions = normalize_indices(indices, len(args), "argnums", name)
        chosen, put_back = pick(args, positions)
        return vjp(lambda *given: fun(*put_back(given)), *chosen, has_aux=has_aux)

    def bwd(residuals: VJPFunction, cotangents: Any) -> tuple[Any, ...]:
        return residuals(cotangents)

    fwd.__name__, bwd.__name__ = f"fwd_{name}", f"bwd_{name}"
    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)
