"""Probability plots: ordered samples beside the quantiles of a distribution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.optimize.scalar_minimization import minimize_scalar
from fxflow.scipy.special.combinatorics import boxcox as boxcox_of
from fxflow.scipy.stats._laws import law_of
from fxflow.scipy.stats._samples import operands, statistic
from fxflow.scipy.stats.power_transforms import order_medians, yeojohnson
from fxflow.transforms.vmap import vmap

_docs = shared("""
    Args:
      x: real array-like[n]: the sample.
      dist: a distribution of `fxflow.scipy.stats` or its name, or any object with a
        `ppf`.
      plot: axes of Matplotlib, or another object with a `plot`, on which the points are
        drawn; None draws nothing.
      N: how many values of the parameter there are.

    Raises:
      ArgumentError: there is no such distribution, or an argument is not an array.
      ShapeError: the sample is empty, or not a row.

    Source: `scipy.stats.{name}`; J. J. Filliben 1975.
""")


class Line(NamedTuple):
    """A line through the points of a probability plot.

    Attributes:
      slope: of the line.
      intercept: its height at 0.
      r: the correlation of the points.
    """

    slope: Array
    intercept: Array
    r: Array


def _row(name: str, x: Any) -> Any:
    (row,), _ = operands(name, x)
    if row.aval.ndim != 1 or not row.aval.size:
        raise ShapeError(
            f"{name}: the sample must be a row of at least one element, got {row.aval}"
        )
    return row


def _correlation(x: Any, y: Any) -> tuple[Any, Any, Any]:
    """Returns the correlation along the last axis, and two sums of products."""
    a, b = (v - fnp.mean(v, axis=-1, keepdims=True) for v in (x, y))
    both, square = fnp.sum(a * b, axis=-1), fnp.sum(a * a, axis=-1)
    return both / lax.sqrt(square * fnp.sum(b * b, axis=-1)), both, square


@statistic(compiled=False)
@_docs
def probplot(
    x: ArrayLike,
    sparams: Any = (),
    dist: Any = "norm",
    fit: bool = True,
    plot: Any = None,
    rvalue: bool = False,
) -> Any:
    """Returns the points of a probability plot, and a line through them.

    Args:
      sparams: parameters of the distribution, a tuple or a number.
      fit: whether a line is fitted by least squares.
      rvalue: whether the drawing shows the correlation.

    Returns:
      The quantiles and the ordered sample, float[n] each, as a tuple; with `fit` a
      tuple of this and a named tuple of `slope`, `intercept` and `r`.

    Example:
      >>> points, line = probplot(np.array([1.0, 2.0, 4.0, 7.0]))
      >>> line.r.round(4)
      Array(0.9752, dtype=float32)
    """
    name = "probplot"
    _require_plot(name, plot)
    row = _row(name, x)
    given = tuple(sparams) if isinstance(sparams, tuple | list) else (sparams,)
    medians = order_medians(row.aval.shape[0], row.aval.dtype)
    osm, osr = fnp.asarray(law_of(name, dist).ppf(medians, *given)), fnp.sort(row)
    r, both, square = _correlation(osm, osr)
    slope = both / square
    line = Line(slope, fnp.mean(osr) - slope * fnp.mean(osm), r)
    if plot is not None:
        x_, y = np.asarray(osm), np.asarray(osr)
        plot.plot(x_, y, "bo")
        if fit:
            plot.plot(x_, float(line.slope) * x_ + float(line.intercept), "r-")
        _titled(plot, "Theoretical quantiles", "Ordered values", "Probability plot")
        if fit and rvalue:
            at = (x_.min() + 0.7 * np.ptp(x_), y.min() + 0.01 * np.ptp(y))
            plot.text(*at, f"$R^2={float(r) ** 2:1.4f}$")
    return ((osm, osr), line) if fit else (osm, osr)


def _titled(plot: Any, *words: str) -> None:
    """Sets the labels and the title, where axes or `pyplot` have a way to."""
    for what, text in zip(("xlabel", "ylabel", "title"), words, strict=True):
        setter = getattr(plot, f"set_{what}", None) or getattr(plot, what, None)
        if setter is not None:
            setter(text)


def _ppcc(name: str, row: Any, dist: Any) -> Callable[[Any], Any]:
    """Returns the correlation of the plot as a function of a shape parameter."""
    law = law_of(name, dist)
    medians = order_medians(row.aval.shape[0], row.aval.dtype)
    ordered = fnp.sort(row)
    return lambda shape: _correlation(law.ppf(medians, shape), ordered)[0]


@statistic(compiled=False)
@_docs
def ppcc_max(x: ArrayLike, brack: Any = (0.0, 1.0), dist: Any = "tukeylambda") -> Array:
    """Returns the shape parameter for which the probability plot is the straightest.

    It has an implicit derivative with respect to the sample.

    Args:
      brack: two or three numbers where the search begins.

    Returns:
      A float.

    Example:
      >>> x = np.array([0.2, 0.5, 1.0, 1.1, 1.9, 2.4, 3.5])
      >>> ppcc_max(x, (1.0, 2.0), "weibull_min").round(2)
      Array(1.31, dtype=float32)
    """
    name = "ppcc_max"
    row = _row(name, x)
    if not isinstance(brack, tuple | list) or len(brack) not in (2, 3):
        raise ArgumentError(
            f"{name}: brack must be two or three numbers, got {brack!r}"
        )
    ends = tuple(fnp.asarray(end, row.aval.dtype) for end in brack)
    of = _ppcc(name, row, dist)
    found: Array = minimize_scalar(lambda shape: 1 - of(shape), bracket=ends).x
    return found


def _require_plot(name: str, plot: Any) -> None:
    """Checks that an argument can draw, or is None.

    Raises:
      ArgumentError: it is something else.
    """
    if plot is not None and not (
        callable(getattr(plot, "plot", None)) and not isinstance(plot, type)
    ):
        raise ArgumentError(
            f"{name}: plot must be `matplotlib.pyplot` or axes, got {plot!r}"
        )


def _curve(
    name: str, row: Any, of: Any, ends: tuple[Any, Any], n: Any, plot: Any, words: Any
) -> tuple[Array, Array]:
    """Returns values of a parameter and the correlations, which are drawn."""
    _require_plot(name, plot)
    if not isinstance(n, int | np.integer) or n < 1:
        raise ArgumentError(f"{name}: N must be a positive int, got {n!r}")
    a, b = ends
    if all(isinstance(v, int | float | np.number) for v in ends) and not b > a:
        raise ArgumentError(f"{name}: the second end must exceed the first, got {ends}")
    at = fnp.linspace(
        fnp.asarray(a, row.aval.dtype), fnp.asarray(b, row.aval.dtype), int(n)
    )
    found = vmap(of)(at)
    if plot is not None:
        plot.plot(np.asarray(at), np.asarray(found), "x")
        _titled(plot, *words)
    return at, found


@statistic(compiled=False)
@_docs
def ppcc_plot(
    x: ArrayLike,
    a: float,
    b: float,
    dist: Any = "tukeylambda",
    plot: Any = None,
    N: int = 80,
) -> tuple[Array, Array]:
    """Returns how straight probability plots are, for values of a shape parameter.

    Args:
      a: the least value.
      b: the greatest one.

    Returns:
      The values and the correlations: float[N] each.

    Example:
      >>> x = np.array([0.2, 0.5, 1.0, 1.1, 1.9, 2.4, 3.5])
      >>> ppcc_plot(x, 1.0, 2.0, "weibull_min", N=3)[1].round(3)
      Array([0.992, 0.995, 0.989], dtype=float32)
    """
    name = "ppcc_plot"
    row = _row(name, x)
    words = ("Shape", "Correlation", f"({dist}) PPCC plot")
    return _curve(name, row, _ppcc(name, row, dist), (a, b), N, plot, words)


def _normal_curve(
    name: str, transform: Any, x: Any, ends: Any, plot: Any, n: Any, title: str
) -> tuple[Array, Array]:
    row = _row(name, x)
    normal = law_of(name, "norm").ppf(order_medians(row.aval.shape[0], row.aval.dtype))

    def of(lmbda: Any) -> Any:
        return _correlation(normal, fnp.sort(transform(row, lmbda)))[0]

    words = ("$\\lambda$", "Correlation", title)
    return _curve(name, row, of, ends, n, plot, words)


@statistic(compiled=False)
@_docs
def boxcox_normplot(
    x: ArrayLike, la: float, lb: float, plot: Any = None, N: int = 80
) -> tuple[Array, Array]:
    """Returns how straight normal plots of Box–Cox transforms are.

    Args:
      la: the least parameter of the transformation.
      lb: the greatest one.

    Returns:
      The parameters and the correlations: float[N] each.

    Special cases:
      nan, if an element is not positive.

    Example:
      >>> boxcox_normplot(np.array([1.0, 2.0, 4.0, 8.0]), -1, 1, N=3)[1].round(3)
      Array([0.96 , 0.999, 0.96 ], dtype=float32)
    """
    name = "boxcox_normplot"
    transform = lambda row, lmbda: boxcox_of(fnp.where(row > 0, row, fnp.nan), lmbda)
    return _normal_curve(name, transform, x, (la, lb), plot, N, "Box-Cox plot")


@statistic(compiled=False)
@_docs
def yeojohnson_normplot(
    x: ArrayLike, la: float, lb: float, plot: Any = None, N: int = 80
) -> tuple[Array, Array]:
    """Returns how straight normal plots of Yeo–Johnson transforms are.

    Args:
      la: the least parameter of the transformation.
      lb: the greatest one.

    Returns:
      The parameters and the correlations: float[N] each.

    Example:
      >>> yeojohnson_normplot(np.array([-1.0, 0.5, 2.0, 8.0]), 0, 1, N=2)[1].round(3)
      Array([0.984, 0.938], dtype=float32)
    """
    name = "yeojohnson_normplot"
    title = "Yeo-Johnson plot"
    return _normal_curve(name, yeojohnson, x, (la, lb), plot, N, title)
