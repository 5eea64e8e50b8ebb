"""Rotations between rotations whose rate and acceleration are continuous."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.library import library
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.numpy.selection import choose_between
from fxflow.scipy.interpolate import PPoly
from fxflow.scipy.spatial.transform._quaternions import (
    _polynomial,
    screwed,
    unscrewed,
)
from fxflow.scipy.spatial.transform.rotation import Rotation

#: Steps of the solver, SciPy's number; each gains a digit or two.
_STEPS = 10
#: What divides 0 by 0 where angles are small, in powers of their squares.
_SERIES = (
    [(-1) ** k * (2 * k + 2) / math.factorial(2 * k + 4) for k in range(8)],
    [-((-1) ** k) * (2 * k + 2) / math.factorial(2 * k + 5) for k in range(8)],
    [(-1) ** k / math.factorial(2 * k + 3) for k in range(8)],
)


def _rates(v: Any, way: Any) -> Any:
    """Returns the angular rate, in turned axes, of a rotation vector that moves."""
    return screwed(-v, way)


def _ways(v: Any, rate: Any) -> Any:
    """Returns how a rotation vector moves that turns at an angular rate."""
    return unscrewed(-v, rate)


def _bends(v: Any, way: Any) -> Any:
    """Returns the part of the angular acceleration that the rate makes, [..., 3]."""
    square = fnp.sum(v * v, -1, keepdims=True)
    near = square < 0.5
    low = choose_between(near, square, 0 * square)
    a = fnp.sqrt(choose_between(near, 1 + 0 * square, square))
    sine, cosine = fnp.sin(a), fnp.cos(a)
    # The derivatives of (1 - cos a) / a² and of (a - sin a) / a³, divided by a.
    far = [
        (2 - 2 * cosine - a * sine) / a**4,
        (3 * sine - 2 * a - a * cosine) / a**5,
        (a - sine) / a**3,
    ]
    first, second, third = (
        choose_between(near, _polynomial(low, *series), other)
        for series, other in zip(_SERIES, far, strict=True)
    )
    along = fnp.sum(v * way, -1, keepdims=True)
    turned = fnp.cross(v, way)
    twice = fnp.cross(v, turned)
    return along * (first * turned + second * twice) + third * fnp.cross(way, turned)


def _matrices(function: Any, v: Any) -> Any:
    """Returns the matrices of linear functions of rotation vectors, [n, 3, 3]."""
    columns = [
        function(v, fnp.broadcast_to(fnp.asarray(row, v.dtype), v.shape))
        for row in np.eye(3)
    ]
    return fnp.stack(columns, -1)


@library()
def _cubics(times: Array, v: Array) -> Array:
    """Returns the coefficients of the rotation vectors of intervals, [4, n, 3].

    The angular rates w at the inner times are such that accelerations are continuous:
    a block-tridiagonal system but for a term that is quadratic in the rates, which is
    put in from the step before.

    Source: SciPy's `RotationSpline`.
    """
    dt = fnp.diff(times)[:, None]
    n = v.aval.shape[0]
    rates = v / dt
    ways = rates
    if n > 1:
        forth, back = _matrices(_ways, v), _matrices(_rates, v)
        width = dt[:, :, None]
        inner = n - 1
        eye = fnp.eye(3, dtype=v.dtype)
        middle = 4 * (1 / width[:-1] + 1 / width[1:]) * eye
        # Rows of the rates at inner times 1 … n - 1: what is before and after them.
        before = 2 * back[:-1] / width[:-1]
        after = 2 * forth[1:] / width[1:]
        right = 6 * (v[:-1] / dt[:-1] ** 2 + v[1:] / dt[1:] ** 2)

        def apply(matrix: Any, vector: Any) -> Any:
            return fnp.sum(matrix * vector[..., None, :], -1)

        right = right.at[0].add(-apply(before[0], rates[0]))
        right = right.at[-1].add(-apply(after[-1], rates[-1]))

        def down(carry: Any, row: Any) -> Any:
            reach = carry
            low, mid, up = row
            inverse = fnp.linalg.inv(mid - fnp.matmul(low, reach, precision="highest"))
            reach = fnp.matmul(inverse, up, precision="highest")
            return reach, (inverse, reach)

        zero = fnp.zeros((3, 3), v.dtype)
        _, (inverses, reaches) = lax.scan(down, zero, (before, middle, after))

        def solve(rhs: Any) -> Any:
            def forward(last: Any, row: Any) -> Any:
                inverse, low, value = row
                out = apply(inverse, value - apply(low, last))
                return out, out

            start = fnp.zeros(3, v.dtype)
            _, parts = lax.scan(forward, start, (inverses, before, rhs))

            def backward(later: Any, row: Any) -> Any:
                reach, part = row
                out = part - apply(reach, later)
                return out, out

            found: Array = lax.scan(backward, start, (reaches, parts), reverse=True)[1]
            return found

        def step(inside: Any, _: Any) -> Any:
            own = fnp.concatenate([inside, rates[-1:]])
            moved = _ways(v, own)
            return solve(right - _bends(v[:-1], moved[:-1])), None

        inside, _ = lax.scan(step, rates[:inner], None, length=_STEPS)
        ends = fnp.concatenate([inside, rates[-1:]])
        ways = _ways(v, ends)
        rates = fnp.concatenate([rates[:1], inside])
    cubic = (-2 * v + dt * rates + dt * ways) / dt**3
    square = (3 * v - 2 * dt * rates - dt * ways) / dt**2
    return fnp.stack([cubic, square, rates, fnp.zeros_like(rates)])


_rate = library()(_rates)


@library()
def _acceleration(v: Array, way: Array, bend: Array) -> Array:
    return fnp.asarray(_rates(v, bend) + _bends(v, way))


@register_pytree_node_class
class RotationSpline:
    """Rotation as a smooth function of time, known at some times.

    Between two times the rotation vector is a cubic; the angular rate and the angular
    acceleration are continuous. It is a pytree, so it passes through `jit`, `grad` and
    `vmap`.

    Args:
      times: real array-like[n], strictly ascending, n ≥ 2.
      rotations: n rotations.

    Attributes:
      times: the times.
      rotations: the rotations.
      interpolator: `PPoly` of the rotation vectors from each rotation on.

    Raises:
      ArgumentError: times do not ascend.
      ShapeError: there are fewer than two times, or not as many as rotations.

    Example:
      >>> turns = Rotation.from_euler("z", np.array([[0.0], [0.5], [2.0]]))
      >>> path = RotationSpline(np.array([0.0, 1.0, 2.0]), turns)
      >>> path(1.0).magnitude().round(3), path(1.0, 1).round(3)
      (Array(0.5, dtype=float32), Array([0., 0., 1.], dtype=float32))

    Source: `scipy.spatial.transform.RotationSpline`.
    """

    times: Array
    rotations: Rotation
    interpolator: PPoly

    def __init__(self, times: ArrayLike, rotations: Rotation) -> None:
        name = "RotationSpline"
        (t,) = promote_inexact(name, fnp.asarray(times))
        count = 1 if rotations.single else len(rotations)
        if t.aval.shape != (count,) or count < 2:
            raise ShapeError(
                f"{name}: expected a time for each of at least two rotations, got "
                f"{t.aval} for {count}"
            )
        if not isinstance(t, Tracer) and not (np.diff(np.asarray(t)) > 0).all():
            raise ArgumentError(f"{name}: times must be strictly ascending, got {t}")
        self.times, self.rotations = t, rotations
        vectors = (rotations[:-1].inv() * rotations[1:]).as_rotvec()
        t, vectors = promote_inexact(name, t, vectors)
        self.interpolator = PPoly.construct_fast(_cubics(t, vectors), t)

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """Returns the arrays."""
        return (self.times, self.rotations, self.interpolator), None

    @classmethod
    def tree_unflatten(cls, aux: None, children: Any) -> RotationSpline:
        """Rebuilds a spline from its parts."""
        out = object.__new__(cls)
        out.times, out.rotations, out.interpolator = children
        return out

    def __call__(self, times: ArrayLike, order: int = 0) -> Any:
        """Returns rotations, angular rates or angular accelerations at times.

        Args:
          times: real array-like[] or [m]. Before the first and after the last time the
            outermost cubic goes on.
          order: 0, rotations; 1, rates in radians; 2, accelerations.

        Returns:
          Rotation, or float array[3] or [m, 3], in the axes that turn along.

        Raises:
          ArgumentError: unknown order.
          ShapeError: times have more than one axis.
        """
        name = "RotationSpline"
        if order not in (0, 1, 2):
            raise ArgumentError(f"{name}: order must be 0, 1 or 2, got {order!r}")
        t, known = promote_inexact(name, fnp.asarray(times), self.times)
        if t.aval.ndim > 1:
            raise ShapeError(f"{name}: times have at most one axis, got {t.aval}")
        v = self.interpolator(t)
        if order == 0:
            i = fnp.searchsorted(known, t, side="right") - 1
            i = fnp.clip(i, 0, known.aval.size - 2)
            return self.rotations[i] * Rotation.from_rotvec(v)
        way = self.interpolator(t, 1)
        if order == 1:
            return _rate(v, way)
        return _acceleration(v, way, self.interpolator(t, 2))
