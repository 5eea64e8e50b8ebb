"""Spherical harmonics."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, DtypeError
from fxflow.lax.axes import integer
from fxflow.numpy._operands import ArrayLike, array_of, convert
from fxflow.scipy.special._operands import operands
from fxflow.transforms.jvp import jvp


def _legendre(n: Any, m: Any, theta: Any, n_max: int) -> Any:
    """Returns normalized associated Legendre functions of cos θ.

    Up the diagonal to (m, m), then up in n (DLMF 14.10.3). All elements take all steps.
    """
    dtype = theta.aval.dtype
    sine, cosine = lax.sin(theta), lax.cos(theta)
    sine = fnp.where(sine < 0, -sine, sine)  # for angles beyond a half turn
    order = convert(lax.abs(m), dtype)
    degree = convert(n, dtype)

    def step(state: Any, k: Any) -> Any:
        before, here = state
        along = -sine * lax.sqrt((2 * k + 1) / (2 * k)) * here
        rising = k > order
        gap = fnp.where(rising, k * k - order * order, 1)
        less = fnp.maximum((k - 1) * (k - 1) - order * order, 0)
        under = fnp.maximum(4 * (k - 1) * (k - 1) - 1, 1)
        up = cosine * here - lax.sqrt(less / under) * before
        up = lax.sqrt((4 * k * k - 1) / gap) * up
        new = fnp.where(rising, up, along)
        live = k <= degree
        return (fnp.where(live, here, before), fnp.where(live, new, here)), None

    start = fnp.full_like(theta, 0.5 / math.sqrt(math.pi))
    steps = fnp.arange(1, n_max + 1, dtype=dtype)
    (_, out), _ = lax.scan(step, (0 * start, start), steps)
    odd = (m < 0) & (m % 2 != 0)
    return fnp.where(lax.abs(m) > n, 0, fnp.where(odd, -out, out))


@library("n_max", "diff_n")
def _values(n: Any, m: Any, theta: Any, phi: Any, *, n_max: int, diff_n: int) -> Any:
    a, b = operands("sph_harm_y", theta, phi)
    shape = fnp.broadcast_shapes(n.aval.shape, m.aval.shape, a.aval.shape)
    n, m, a, b = (fnp.broadcast_to(x, shape) for x in (n, m, a, b))
    dtype = a.aval.dtype
    if dtypes.bits(dtype) < 32:
        a, b = convert(a, dtypes.float32), convert(b, dtypes.float32)

    def part(a: Any) -> Any:
        return _legendre(n, m, a, n_max)

    def slope(a: Any) -> Any:
        return jvp(part, (a,), (fnp.ones_like(a),))[1]

    times = convert(m, b.aval.dtype)
    wave = lax.complex(lax.cos(times * b), lax.sin(times * b))
    turn = lax.complex(0 * times, times)
    height = part(a)
    value = height * wave
    if not diff_n:
        return value
    rise = slope(a)
    gradient = fnp.stack([rise * wave, turn * value], -1)
    if diff_n == 1:
        return value, gradient
    bend = jvp(slope, (a,), (fnp.ones_like(a),))[1]
    mixed = turn * rise * wave
    rows = [[bend * wave, mixed], [mixed, turn * turn * value]]
    hessian = fnp.stack([fnp.stack(row, -1) for row in rows], -2)
    return value, gradient, hessian


def sph_harm_y(
    n: ArrayLike,
    m: ArrayLike,
    theta: ArrayLike,
    phi: ArrayLike,
    diff_n: int | None = None,
    n_max: int | None = None,
) -> Any:
    """Spherical harmonic of degree `n` and order `m`.

    Args:
      n: non-negative integers, array-like: the degree.
      m: integers, array-like: the order.
      theta: real array-like: the angle from the pole.
      phi: real array-like: the angle around it.
      diff_n: 1 or 2 for derivatives with respect to both angles, too; None or 0 for
        none.
      n_max: no degree is above it. None is the largest of `n`, which may not be traced
        then.

    Returns:
      Complex array of the broadcast shape; with `diff_n` a tuple of it, the gradient
      [..., 2] and, for 2, the Hessian [..., 2, 2].

    Raises:
      ArgumentError: there is no such `diff_n`.
      DtypeError: `n` and `m` are not integers, or an angle is complex.
      ConcretizationError: `n` is traced and there is no `n_max`.

    Special cases:
      0 where abs(m) > n.

    Example:
      >>> sph_harm_y(2, 1, 0.3, 0.4).round(3)
      Array(-0.201-0.085j, dtype=complex64)

    Source: `scipy.special.sph_harm_y`, with the phase (-1)ᵐ; DLMF 14.30.
    """
    degree, order = array_of(n, "sph_harm_y"), array_of(m, "sph_harm_y")
    for x in (degree, order):
        if not dtypes.is_integer(x.aval.dtype):
            raise DtypeError(f"sph_harm_y: n and m must be integers, got {x.aval}")
    if n_max is None:
        n_max = int(np.max(np.asarray(degree), initial=0))
    kind = 0 if diff_n is None else integer("sph_harm_y", "diff_n", diff_n)
    if kind not in (0, 1, 2):
        raise ArgumentError(f"sph_harm_y: diff_n must be 0, 1 or 2, got {diff_n!r}")
    count = integer("sph_harm_y", "n_max", n_max)
    return _values(degree, order, theta, phi, n_max=count, diff_n=kind)
