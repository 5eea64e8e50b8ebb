"""What polynomials between breakpoints have in common, whatever their basis."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.boundary import guard_methods
from fxflow.core.ir.trace import Tracer
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import canonical_axis, natural
from fxflow.numpy._operands import ArrayLike, promote_inexact

P = TypeVar("P")
S = TypeVar("S", bound="Piecewise[Any]")
#: What stands for the values beyond the breakpoints.
Extrapolate = bool | str | None


def extrapolation(name: str, value: Any) -> bool | str:
    if isinstance(value, str) and value != "periodic":
        raise ArgumentError(
            f'{name}: extrapolate must be a bool or "periodic", got {value!r}'
        )
    return value if isinstance(value, str) else bool(value)


def require_ascending(name: str, x: Array) -> None:
    if isinstance(x, Tracer):
        return
    if not np.all(np.diff(np.asarray(x)) > 0):
        raise ArgumentError(f"{name}: x must be strictly ascending")


def spread(values: Array, like: Array, at: int) -> Array:
    """Returns values with axes of length 1 behind, to broadcast against an array."""
    rest = like.aval.ndim - at - values.aval.ndim
    return fnp.reshape(values, (*values.aval.shape, *(1,) * rest))


def beyond(
    out: Array, low: Array, high: Array, at: Array, extrapolate: bool | str
) -> Array:
    """Returns values at points with nan beyond bounds, if nothing goes on there."""
    lost = at != at
    if extrapolate is False:
        lost = lost | (at < low) | (at > high)
    return fnp.where(spread(lost, out, 0), fnp.nan, out)


@guard_methods
class Piecewise(Generic[P]):
    """Polynomials between breakpoints; `P` is the class of their derivatives."""

    c: Array
    x: Array
    extrapolate: bool | str
    axis: int

    def __init__(
        self,
        c: ArrayLike,
        x: ArrayLike,
        extrapolate: Extrapolate = None,
        axis: int = 0,
    ) -> None:
        name = type(self).__name__
        (x,) = promote_inexact(name, x)
        c = promote_inexact(name, c, x)[0]
        if c.aval.ndim < 2 or x.aval.ndim != 1 or x.aval.size < 2:
            raise ShapeError(
                f"{name}: c must be array[k, m, ...] and x array[m + 1], m > 0, got "
                f"{c.aval} and {x.aval}"
            )
        axis = canonical_axis(name, axis, c.aval.ndim - 1)
        c = fnp.moveaxis(c, (axis, axis + 1), (0, 1))
        if c.aval.shape[1] != x.aval.size - 1 or not c.aval.shape[0]:
            raise ShapeError(
                f"{name}: c must have a polynomial for each of {x.aval.size - 1} "
                f"intervals, got {c.aval}"
            )
        require_ascending(name, x)
        how = extrapolation(name, True if extrapolate is None else extrapolate)
        self._set(c, x, how, axis)

    # What differs between the bases, of coefficients `c` and breakpoints `x`.

    @staticmethod
    def _at(c: Array, x: Array, at: Array, extrapolate: bool | str) -> Array:
        """Returns values at points."""
        raise NotImplementedError

    @staticmethod
    def _derived(c: Array, x: Array) -> Array:
        """Returns coefficients of the derivative."""
        raise NotImplementedError

    @staticmethod
    def _summed(c: Array, x: Array) -> Array:
        """Returns coefficients of the integral from the first breakpoint."""
        raise NotImplementedError

    def _like(self, c: Array, extrapolate: bool | str) -> P:
        """Returns polynomials on the same breakpoints."""
        raise NotImplementedError

    def _set(self, c: Any, x: Any, extrapolate: bool | str, axis: int) -> None:
        self.c, self.x, self.extrapolate, self.axis = c, x, extrapolate, axis

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        """Returns the arrays and the static data."""
        return (self.c, self.x), (self.extrapolate, self.axis)

    @classmethod
    def tree_unflatten(cls: type[S], aux: Any, children: Any) -> S:
        """Rebuilds polynomials from their parts."""
        out = object.__new__(cls)
        out._set(*children, *aux)
        return out

    def __call__(self, x: ArrayLike, nu: int = 0, extrapolate: Any = None) -> Array:
        """Returns values, or those of a derivative.

        Args:
          x: real array-like[*s].
          nu: the order of the derivative.
          extrapolate: in place of the object's own.

        Returns:
          Array with *s in place of the axis of the breakpoints.

        Raises:
          ArgumentError: `nu` is negative, or `extrapolate` is invalid.
        """
        name = type(self).__name__
        how = self.extrapolate if extrapolate is None else extrapolate
        how = extrapolation(name, how)
        f: Any = self.derivative(natural(name, "nu", nu, 0))
        at, points = promote_inexact(name, x, self.x)
        out = self._at(f.c, points, at, how)
        d = at.aval.ndim
        if self.axis and d:
            return fnp.moveaxis(out, range(d), range(self.axis, self.axis + d))
        return out

    def derivative(self, nu: int = 1) -> P:
        """Returns the polynomials of a derivative.

        Args:
          nu: its order; that of a negative one is an integral.

        Returns:
          Polynomials in the same basis.
        """
        if nu < 0:
            return self.antiderivative(-nu)
        c = self.c
        for _ in range(nu):
            c = self._derived(c, self.x)
        return self._like(c, self.extrapolate)

    def antiderivative(self, nu: int = 1) -> P:
        """Returns the polynomials of an integral, 0 at the first breakpoint.

        Args:
          nu: how often to integrate; a negative one differentiates.

        Returns:
          Polynomials in the same basis, which are nan beyond the breakpoints if the
          integrand was periodic.
        """
        if nu <= 0:
            return self.derivative(-nu)
        c = self.c
        for _ in range(nu):
            c = self._summed(c, self.x)
        how = False if self.extrapolate == "periodic" else self.extrapolate
        return self._like(c, how)

    def integrate(self, a: ArrayLike, b: ArrayLike, extrapolate: Any = None) -> Array:
        """Returns the integral from one point to another.

        Args:
          a: real number: the lower bound.
          b: real number: the upper bound.
          extrapolate: in place of the object's own; without it nan, if a bound is
            beyond the breakpoints.

        Returns:
          Array[...].

        Raises:
          ArgumentError: `extrapolate` is invalid.
        """
        name = type(self).__name__
        how = self.extrapolate if extrapolate is None else extrapolate
        how = extrapolation(name, how)
        c = self._summed(self.c, self.x)
        a, b, x = promote_inexact(name, a, b, self.x)
        bounds = fnp.stack([a, b])
        if how != "periodic":
            ends = self._at(c, x, bounds, how)
            return ends[1] - ends[0]
        period = x[-1] - x[0]
        turns = fnp.floor((bounds - x[0]) / period)
        whole = self._at(c, x, x[-1], True)
        ends = self._at(c, x, bounds - turns * period, True)
        return ends[1] - ends[0] + (turns[1] - turns[0]) * whole

    @classmethod
    def construct_fast(
        cls: type[S], c: Any, x: Any, extrapolate: Extrapolate = None, axis: int = 0
    ) -> S:
        """Returns polynomials without checks.

        Args:
          c: array[k, m, ...]: coefficients.
          x: array[m + 1]: breakpoints.
          extrapolate: as in the constructor.
          axis: where the points of a result stand.
        """
        out = object.__new__(cls)
        out._set(c, x, True if extrapolate is None else extrapolate, axis)
        return out
