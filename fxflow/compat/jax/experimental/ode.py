"""`jax.experimental.ode`: `odeint`, with the adjoint equation as its derivative."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import fxflow
from fxflow import numpy as fnp
from fxflow.compat.jax._mirror import listen
from fxflow.core.arrays import dtypes, is_arraylike
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.flatten_util import ravel_pytree
from fxflow.scipy.integrate._ode.adjoint import marched
from fxflow.scipy.integrate._ode.explicit import RK45
from fxflow.scipy.integrate._ode.stepping import Controls, Given, Spec


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = math.inf,
    hmax: float = math.inf,
) -> Any:
    """Solves `dy/dt = func(y, t, *args)` by Dormand and Prince's steps of order 5.

    Derivatives of the result, in reverse mode, solve the adjoint equation backward.

    Args:
      func: function of the state, the time and `args` that gives the derivative.
      y0: state at `t[0]`: array or pytree of arrays.
      t: float[n]; times at which the state is wanted, increasing.
      *args: arrays or pytrees of them.
      rtol: relative tolerance of a step.
      atol: absolute one.
      mxstep: steps between two times at most.
      hmax: longest step.

    Returns:
      The states at `t`: `y0` with a first axis of length n.

    Raises:
      TypeError: one of `args` is not an array, or `y0` has no floats.
      ShapeError: `t` is not a vector, or is empty.
    """
    for leaf in fxflow.tree.leaves(args):
        if not is_arraylike(leaf):
            raise ArgumentError(
                f"odeint: the arguments of func must be arrays, got {leaf!r}: take it "
                "into the function instead"
            )
    flat, unravel = ravel_pytree(y0)
    if not dtypes.is_inexact(flat.dtype):
        raise DtypeError(f"odeint: y0 must be floats, got {flat.dtype}")
    times = fnp.asarray(t)
    if times.ndim != 1 or not times.size:
        raise ShapeError(f"odeint: t must be a vector of times, got {times.aval}")
    if not dtypes.is_inexact(times.dtype):
        times = times.astype(float)

    leaves, structure = fxflow.tree.flatten(args)
    flat_args = list(map(fnp.asarray, leaves))
    real = dtypes.to_real(flat.dtype)

    def slope(t: Any, y: Any, *leaves: Any) -> Any:
        out = func(unravel(y), t.astype(times.dtype), *structure.unflatten(leaves))
        return ravel_pytree(out)[0].astype(flat.dtype)

    at = times.astype(real)
    converted, captured = fxflow.closure_convert(slope, at[0], flat, *flat_args)
    count = 0 if math.isinf(mxstep) else int(mxstep)
    spec = Spec(RK45, converted, converted, None, (), (), count, True)
    # Steps may go beyond a time: the state there is that of the interpolant.
    end = fnp.asarray(math.inf, real)
    tolerances = [fnp.asarray(v, real) for v in (rtol, atol, hmax, -1.0)]
    given = Given(at[0], end, flat, (*flat_args, *captured))
    found = marched(spec, given, at, Controls(end, *tolerances), restarts=True)
    return fxflow.vmap(unravel)(found.ys)


__all__ = ["odeint"]

listen(globals())
