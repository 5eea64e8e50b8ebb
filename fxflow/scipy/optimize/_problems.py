"""A user's function, point and derivatives as functions of one vector."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, dtypes, is_arraylike, typeof
from fxflow.core.ir.trace import Tracer
from fxflow.errors import ArgumentError, NotDifferentiableError, ShapeError
from fxflow.lax.checking import debug_check
from fxflow.numpy._operands import convert, promote_inexact
from fxflow.optim.implicit_derivatives import dense_solve, solved
from fxflow.optim.vectors import joined, like_parts
from fxflow.scipy._callbacks import showing
from fxflow.scipy.sparse.linalg import gmres
from fxflow.transforms.grad import grad, jacfwd, value_and_grad
from fxflow.transforms.jvp import jvp

#: SciPy's words for estimated derivatives: here they are computed.
_COMPUTED = ("2-point", "3-point", "cs")
#: The number of unknowns up to which a solution's derivative factorizes a matrix.
_DENSE = 1024


class Problem(NamedTuple):
    """A function to minimize.

    Attributes:
      x: float[n], the initial guess.
      value: function of x.
      both: function of x that returns the value and the gradient.
      slope: function of x that returns the gradient.
      product: function of x and a vector that returns the Hessian times the vector.
      hessian: function of x.
      unravel: function from a vector to a point as the user gave it.
      watched: function from a step of a loop, whose state has the point `x`, to one
        that calls the user's callback, too.
    """

    x: Array
    value: Callable[[Any], Any]
    both: Callable[[Any], Any]
    slope: Callable[[Any], Any]
    product: Callable[[Any, Any], Any]
    hessian: Callable[[Any], Any]
    unravel: Callable[[Any], Any]
    watched: Callable[..., Any]


def vector_of(name: str, x0: Any) -> tuple[Array, Callable[[Any], Any]]:
    """Returns a point as a vector, and the function from vectors to such points.

    Args:
      name: of the function, for messages.
      x0: a vector or a number, a list of numbers, or a pytree of arrays.

    Raises:
      ShapeError: it is an array of two or more dimensions, or complex.
    """
    if isinstance(x0, list | tuple) and all(
        isinstance(v, int | float) or (is_arraylike(v) and not typeof(v).ndim)
        for v in x0
    ):
        x0 = fnp.stack([fnp.asarray(v) for v in x0]) if x0 else fnp.zeros(0)
    single = is_arraylike(x0)
    parts = tree.map(lambda v: _real(name, v), x0)
    if single and parts.aval.ndim > 1:
        raise ShapeError(
            f"{name}: x0 must be a real vector, or a pytree of arrays, got {parts.aval}"
        )
    if single and parts.aval.ndim == 0:
        parts = fnp.reshape(parts, (1,))
    if single:
        return parts, lambda v: v
    return joined(parts), lambda v: like_parts(name, v, parts)


def _real(name: str, value: Any) -> Array:
    (x,) = promote_inexact(name, value)
    if dtypes.is_complex(x.aval.dtype):
        raise ShapeError(
            f"{name}: x0 must be a real vector, or a pytree of arrays, got {x.aval}"
        )
    # No weak type in a loop, and no solver in 16 bits.
    return lax.convert_element_type(x, fnp.promote_types(x.aval.dtype, "float32"))


def arguments(name: str, args: Any) -> tuple[Any, ...]:
    """Returns the arguments of the user's function as a tuple.

    Raises:
      ArgumentError: they are not a tuple.
    """
    if not isinstance(args, tuple):
        raise ArgumentError(f"{name}: args must be a tuple, got {args!r}")
    return args


def options_of(
    name: str, method: str, options: Mapping[str, Any] | None, known: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns the options with defaults.

    Args:
      name: of the function, for messages.
      method: likewise.
      options: the user's.
      known: the defaults; None as the user's value means the default. `disp` is always
        accepted, and has no effect.

    Raises:
      ArgumentError: unknown option.
    """
    given = {k: v for k, v in dict(options or {}).items() if k != "disp"}
    unknown = sorted(given.keys() - known.keys())
    if unknown:
        raise ArgumentError(
            f"{name}: {method} has no options {', '.join(unknown)}: there are "
            f"{', '.join(sorted(known))}"
        )
    return {**known, **{k: v for k, v in given.items() if v is not None}}


def number_of(name: str, value: Any, dtype: Any) -> Array:
    """Returns what the user's function returns as a number.

    Raises:
      ShapeError: it is not a real number.
    """
    (out,) = promote_inexact(name, value)
    if out.aval.size != 1 or out.aval.ndim > 1 or dtypes.is_complex(out.aval.dtype):
        raise ShapeError(f"{name}: fun must return a number, got {out.aval}")
    return convert(fnp.reshape(out, ()), dtype)


def problem_of(
    name: str,
    fun: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...],
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    callback: Any = None,
) -> Problem:
    """Returns a function to minimize; derivatives that are not given are computed.

    Raises:
      ArgumentError: a derivative is neither a function nor one of SciPy's words.
    """
    x, unravel = vector_of(name, x0)
    dtype = x.aval.dtype
    has_both = jac is True

    def value(x: Any) -> Any:
        out = fun(unravel(x), *args)
        return number_of(name, out[0] if has_both else out, dtype)

    slope: Callable[[Any], Any] = grad(value)
    both: Callable[[Any], Any] = value_and_grad(value)
    if has_both:

        def both(x: Any) -> Any:
            out = fun(unravel(x), *args)
            return number_of(name, out[0], dtype), convert(joined(out[1]), dtype)

        def slope(x: Any) -> Any:
            return both(x)[1]

    elif callable(jac):

        def slope(x: Any) -> Any:
            return convert(joined(jac(unravel(x), *args)), dtype)

        def both(x: Any) -> Any:
            return value(x), slope(x)

    elif jac not in (None, False, *_COMPUTED):
        raise ArgumentError(
            f"{name}: jac must be a function, True, or None to compute it, got {jac!r}"
        )

    def product(x: Any, v: Any) -> Any:
        return jvp(slope, (x,), (v,))[1]

    hessian: Callable[[Any], Any] = jacfwd(slope)
    if callable(hess):

        def hessian(x: Any) -> Any:
            return fnp.asarray(hess(unravel(x), *args), dtype)

        def product(x: Any, v: Any) -> Any:
            return hessian(x) @ v

    elif hess not in (None, *_COMPUTED):
        raise ArgumentError(
            f"{name}: hess must be a function, or None to compute it, got {hess!r}"
        )
    if callable(hessp):

        def product(x: Any, v: Any) -> Any:
            return convert(joined(hessp(unravel(x), unravel(v), *args)), dtype)

    elif hessp is not None:
        raise ArgumentError(f"{name}: hessp must be a function, got {hessp!r}")
    watched = watching(name, callback, unravel)
    return Problem(x, value, both, slope, product, hessian, unravel, watched)


def watching(
    name: str, callback: Any, unravel: Callable[[Any], Any], values: bool = False
) -> Callable[..., Any]:
    """Returns the function that makes a step call the user's callback, if there is one.

    Args:
      name: of the function, for messages.
      callback: called with the point of each iteration, on the host; or None.
      unravel: function from a vector to a point as the user gave it.
      values: whether the callback takes the state's `values`, too.

    Raises:
      ArgumentError: the callback is not a function.
    """
    shown = showing(name, callback)
    if shown is None:
        return lambda step, point=None: step

    def watched(step: Any, point: Any = lambda s: s.x) -> Any:
        def seen(state: Any) -> Any:
            new = step(state)
            more = (new.values,) if values else ()
            shown(unravel(point(new)), *more)
            return new

        return seen

    return watched


def listed(value: Any) -> Any:
    """Returns a list or a tuple as an array, and other values as they are."""
    return fnp.asarray(value) if isinstance(value, list | tuple) else value


def linear_solve(linear: Any, y: Any) -> Any:
    """Solves the linear system of a solution's derivative, by GMRES if it is large."""
    if sum(leaf.size for leaf in tree.leaves(y)) <= _DENSE:
        return dense_solve(linear, y)
    tiny = max(float(fnp.finfo(leaf.dtype).eps) for leaf in tree.leaves(y))
    return gmres(linear, y, tol=10 * tiny, restart=50)[0]


def at_solution(
    solver: Callable[[], Any],
    conditions: Callable[[Any], Any],
    like: Any,
    optional: bool = False,
) -> Any:
    """Runs a solver that returns a pair, the first part with an implicit derivative.

    Args:
      solver: returns the solution and the rest.
      conditions: function of the solution; 0 there.
      like: pytree of the shapes and dtypes of the solution.
      optional: whether a function without a derivative is accepted; its solution has
        no derivative.
    """
    run: Callable[[Any], Any] = functools.partial(
        solved, solver, like=like, solve=linear_solve, has_aux=True
    )
    if not optional:
        return run(conditions)
    try:
        return run(conditions)
    except NotDifferentiableError:
        return solver()


def within(x: Any, slope: Any, low: Any, high: Any) -> Any:
    """Returns the step of a projected gradient: 0 at a minimum within bounds."""
    return x - fnp.clip(x - slope, low, high)


def report(name: str, success: Any, status: Any) -> None:
    """Raises under `checkify` if a solver did not converge."""
    debug_check(
        fnp.all(success), name + ": did not converge: status {}", fnp.asarray(status)
    )


def is_traced(*values: Any) -> bool:
    """Returns whether any of the values is traced."""
    return any(isinstance(v, Tracer) for v in values)
