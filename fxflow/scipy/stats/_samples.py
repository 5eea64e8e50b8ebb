"""Samples along an axis, as every statistic takes them: axes, missing numbers, tails.

A function of samples moves its axis to the end, leaves missing numbers out by a mask
(a sample has one length, so that shapes are known), and puts the result back:

    (x,), done = taken("skew", (a,), axis, nan_policy, keepdims)
    return done(x.central(3) / x.central(2) ** 1.5)
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.library import library
from fxflow.errors import (
    ArgumentError,
    AxisError,
    ConcretizationError,
    DtypeError,
    ShapeError,
)
from fxflow.lax.axes import canonical_axes
from fxflow.numpy._operands import convert, promote_inexact
from fxflow.scipy.special.incomplete_beta import stdtr
from fxflow.scipy.special.normal import ndtr

F = TypeVar("F", bound=Callable[..., Any])

POLICIES = ("propagate", "omit", "raise")
ALTERNATIVES = ("two-sided", "less", "greater")

_COMMON = """
    Args:
      a: real array-like[...]: the sample.
      x: real array-like[...]: a sample.
      y: real array-like[...]: another one.
      *samples: real array-likes[...]: two or more samples.
      axis: an axis, several, or None, which flattens the array first.
      ddof: delta degrees of freedom: the variance divides by the number of elements
        minus this.
      alternative: "two-sided", "less" or "greater".
      method: how the p-value is found.
      nan_policy: "propagate": nan gives nan; "omit": nans are ignored; "raise": a nan
        raises an error, which needs concrete values.
      keepdims: whether to keep the reduced axis, with length 1.

    Returns:
      {returns}

    Raises:
      ArgumentError: unknown option, or an argument is not an array.
      AxisError: an axis is out of range.
      DtypeError: a sample is complex.
      ShapeError: the shapes are incompatible.

    Source: `scipy.stats.{name}`.
"""

_TUPLE = "A named tuple of `statistic` and `pvalue`."
#: What stands under Returns, by the annotation.
_RETURNS = {
    "Array": "Float array without the axis.",
    "ChisquareResult": _TUPLE,
    "CorrelationResult": _TUPLE,
    "CramerVonMisesResult": _TUPLE,
    "KstestResult": (
        "A `KstestResult` with `statistic`, `pvalue`, `statistic_location` and\n"
        "      `statistic_sign`."
    ),
    "SignificanceResult": _TUPLE,
    "TtestResult": (
        "A `TtestResult` with `statistic`, `pvalue`, `df` and `confidence_interval()`."
    ),
}


def statistic(*static: str, compiled: bool = True) -> Callable[[F], F]:
    """Makes a function of samples one plan when eager, with the common docstring.

    Its argument `nan_policy="raise"` is answered here: the function itself sees
    "propagate".

    Args:
      *static: names of the arguments that are not arrays.
      compiled: whether an eager call is one plan: not one that calls the user's
        functions.
    """

    def decorate(body: F) -> F:
        result = _RETURNS.get(body.__annotations__["return"], _RETURNS["Array"])
        body = shared(_COMMON.replace("{returns}", result))(body)
        planned = library(*static)(body) if compiled else body
        if "nan_policy" not in body.__code__.co_varnames:
            return planned

        @functools.wraps(body)
        def call(*args: Any, **kwargs: Any) -> Any:
            if kwargs.get("nan_policy") == "raise":
                kwargs = {**kwargs, "nan_policy": "propagate"}
                require_no_nan(body.__name__, (*args, *kwargs.values()))
            elif any(type(a) is str and a == "raise" for a in args):
                require_no_nan(body.__name__, (*args, *kwargs.values()))
                args = tuple(
                    "propagate" if type(a) is str and a == "raise" else a for a in args
                )
            return planned(*args, **kwargs)

        return cast(F, call)

    return decorate


def require_no_nan(name: str, values: Sequence[Any]) -> None:
    """Raises an error if an array has a nan.

    Args:
      name: of the function.
      values: its arguments.

    Raises:
      ArgumentError: there is a nan.
      ConcretizationError: an array is traced.
    """
    for value in values:
        if isinstance(value, Tracer):
            raise ConcretizationError(
                f'{name}: nan_policy="raise" needs values that are known, and {value} '
                'is traced: use "propagate" or "omit", or look for nan by `checkify`'
            )
        if isinstance(value, Array | np.ndarray | float):
            host = np.asarray(value)
            if host.dtype.kind not in "biu" and bool((host != host).any()):
                raise ArgumentError(
                    f'{name}: the input has nan, and nan_policy is "raise"'
                )


def require_choice(name: str, argument: str, given: Any, known: Sequence[Any]) -> None:
    """Raises an error for an option that is not one of those known.

    Args:
      name: of the function.
      argument: of the option.
      given: what the user chose.
      known: the choices.

    Raises:
      ArgumentError: it is not one of them.
    """
    try:
        found = given in known
    except Exception:
        found = False
    if not found:
        listed = ", ".join(f'"{k}"' if isinstance(k, str) else str(k) for k in known)
        raise ArgumentError(
            f"{name}: {argument} must be one of {listed}, got {given!r}"
        )


class Sample:
    """Numbers along the last axis, some of which may be left out.

    Attributes:
      values: float[..., n]; 1 where an element is left out.
      kept: bool[..., n], or None: all are kept.
      size: n.
      count: how many are kept: an int, or float[..., 1].
    """

    def __init__(self, values: Any, kept: Any = None) -> None:
        self.size: int = values.aval.shape[-1]
        self.kept = kept
        self.count: Any = self.size
        if kept is not None:
            self.count = fnp.sum(kept, axis=-1, keepdims=True, dtype=values.aval.dtype)
            values = fnp.where(kept, values, 1)
        self.values = values

    @property
    def dtype(self) -> Any:
        return self.values.aval.dtype

    @property
    def lost(self) -> Any:
        """Whether there is a nan that was not left out: bool[..., 1]."""
        return fnp.any(self.values != self.values, axis=-1, keepdims=True)

    @property
    def n(self) -> Any:
        """The count as a float array that broadcasts with float[..., 1]."""
        return fnp.asarray(self.count, self.dtype)

    def but(self, values: Any) -> Sample:
        """Returns other values at the same places."""
        return Sample(values, self.kept)

    def where(self, kept: Any) -> Sample:
        """Returns the sample without further elements."""
        return Sample(self.values, kept if self.kept is None else kept & self.kept)

    def only(self, v: Any, otherwise: Any = 0) -> Any:
        """Returns numbers at the kept places, another one elsewhere."""
        return v if self.kept is None else fnp.where(self.kept, v, otherwise)

    def sum(self, v: Any = None) -> Any:
        """Returns the sum of numbers at the kept places: float[..., 1]."""
        v = self.values if v is None else v
        return fnp.sum(self.only(v), axis=-1, keepdims=True)

    def mean(self, v: Any = None) -> Any:
        """Returns the mean of numbers at the kept places: float[..., 1]."""
        return self.sum(v) / self.n

    def min(self) -> Any:
        return self._extreme(fnp.min, math.inf)

    def max(self) -> Any:
        return self._extreme(fnp.max, -math.inf)

    def _extreme(self, function: Any, none: float) -> Any:
        if not self.size:
            shape = (*self.values.aval.shape[:-1], 1)
            return lax.full(shape, math.nan, self.dtype)
        out = function(self.only(self.values, none), axis=-1, keepdims=True)
        return out if self.kept is None else fnp.where(self.n > 0, out, math.nan)

    def apart(self) -> Any:
        """Returns the differences from the mean, 0 at places left out."""
        return self.only(self.values - self.mean())

    def central(self, order: int) -> Any:
        """Returns a central moment: float[..., 1]."""
        return self.mean(self.apart() ** order)

    def var(self, ddof: Any = 1) -> Any:
        """Returns the variance: float[..., 1]."""
        d = self.apart()
        return self.sum(d * d) / (self.n - ddof)

    def sorted(self) -> Any:
        """Returns the values in order, those left out being inf at the end."""
        return fnp.sort(self.only(self.values, math.inf), axis=-1)

    def quantile(self, q: Any, method: str = "linear") -> Any:
        """Returns quantiles: float[..., 1], or one more axis in front for several."""
        if not self.size:
            shape = (*np.shape(q), *self.values.aval.shape[:-1], 1)
            return lax.full(shape, math.nan, self.dtype)
        if self.kept is None:
            return fnp.quantile(self.values, q, axis=-1, method=method, keepdims=True)
        holed = fnp.where(self.kept, self.values, math.nan)
        return fnp.nanquantile(holed, q, axis=-1, method=method, keepdims=True)

    def median(self) -> Any:
        return self.quantile(0.5)


def operands(name: str, *arrays: Any) -> tuple[list[Any], Any]:
    """Returns real float arrays of at least 32 bits, and the dtype of results.

    Args:
      name: of the function.
      *arrays: array-likes.

    Raises:
      ArgumentError: one is not an array.
      DtypeError: one is complex.
    """
    out: list[Any] = list(promote_inexact(name, *arrays))
    dtype = out[0].aval.dtype
    if dtypes.is_complex(dtype):
        raise DtypeError(f"{name}: takes real numbers, got {out[0].aval}")
    if dtypes.bits(dtype) < 32:
        out = [convert(a, dtypes.float32) for a in out]
    return out, dtype


def taken(
    name: str,
    arrays: Sequence[Any],
    axis: Any,
    nan_policy: str = "propagate",
    keepdims: bool = False,
    paired: bool = False,
) -> tuple[list[Sample], Callable[[Any], Array]]:
    """Returns samples along an axis, and what puts results in place.

    Args:
      name: of the function.
      arrays: the samples.
      axis: an axis, several, or None.
      nan_policy: "propagate" or "omit".
      keepdims: whether results keep the axis.
      paired: whether the samples have as many elements, and lose them together.

    Returns:
      Samples whose other axes are broadcast together, and a function of float[..., 1].

    Raises:
      ArgumentError: unknown policy.
      AxisError: an axis is out of range.
      ShapeError: the shapes are incompatible.
    """
    require_choice(name, "nan_policy", nan_policy, POLICIES)
    found, dtype = operands(name, *arrays)
    ndim = max((a.aval.ndim for a in found), default=1) or 1
    rows = []
    where: tuple[int, ...] = ()
    for a in found:
        if axis is None:
            rows.append(fnp.ravel(a))
            continue
        a = a if a.aval.ndim else a[None]
        where = canonical_axes(name, axis, a.aval.ndim)
        if not where:
            raise AxisError(f"{name}: axis must name an axis, got {axis!r}")
        # Counted from the end, samples of different ranks have the same axes.
        rest = [i for i in range(a.aval.ndim) if i not in where]
        a = fnp.transpose(a, (*rest, *where))
        if len(where) > 1:
            a = fnp.reshape(a, (*a.aval.shape[: len(rest)], -1))
        rows.append(a)
    if len(rows) > 1:
        rows = together(name, rows, paired)
    kept: list[Any] = [None] * len(rows)
    if nan_policy == "omit":
        kept = [a == a for a in rows]
        if paired:
            kept = [functools.reduce(lambda p, q: p & q, kept)] * len(rows)

    def done(value: Any) -> Array:
        """Puts a result of one number for each sample in its place."""
        value = fnp.asarray(value)
        value = fnp.broadcast_to(value, (*rows[0].aval.shape[:-1], 1))
        value = fnp.squeeze(value, -1)
        if keepdims:
            places = tuple(range(ndim)) if axis is None else where
            value = fnp.expand_dims(value, places)
        if dtypes.is_inexact(value.aval.dtype) and value.aval.dtype != dtype:
            value = convert(value, dtype)
        found: Array = value
        return found

    return [Sample(a, k) for a, k in zip(rows, kept, strict=True)], done


def together(name: str, rows: list[Any], paired: bool) -> list[Any]:
    """Returns rows whose other axes are broadcast; paired ones have one length."""
    try:
        batch = fnp.broadcast_shapes(*(a.aval.shape[:-1] for a in rows))
    except (ShapeError, ValueError):
        listed = ", ".join(str(a.aval) for a in rows)
        raise ShapeError(
            f"{name}: the axes beside that of the samples do not broadcast: {listed}"
        ) from None
    lengths = {a.aval.shape[-1] for a in rows}
    if paired and len(lengths) > 1:
        listed = " and ".join(str(a.aval.shape[-1]) for a in rows)
        raise ShapeError(
            f"{name}: the samples are pairs, and must have as many elements: {listed}"
        )
    return [fnp.broadcast_to(a, (*batch, a.aval.shape[-1])) for a in rows]


# -- p-values --------------------------------------------------------------------------


def normal_pvalue(z: Any, alternative: str) -> Any:
    """Returns the p-value of a statistic that is normal."""
    if alternative == "less":
        return ndtr(z)
    if alternative == "greater":
        return ndtr(-z)
    return 2 * ndtr(-abs(z))


def student_pvalue(t: Any, df: Any, alternative: str) -> Any:
    """Returns the p-value of a statistic that has Student's distribution."""
    if alternative == "less":
        return stdtr(df, t)
    if alternative == "greater":
        return stdtr(df, -t)
    return 2 * stdtr(df, -abs(t))


def one_of(alternative: str, less: Any, greater: Any) -> Any:
    """Returns the p-value of two tails: that of an alternative, or twice the less."""
    if alternative == "less":
        return less
    if alternative == "greater":
        return greater
    return fnp.minimum(2 * fnp.minimum(less, greater), 1)


def require_alternative(name: str, alternative: str) -> None:
    """Raises an error if there is no such alternative."""
    require_choice(name, "alternative", alternative, ALTERNATIVES)
