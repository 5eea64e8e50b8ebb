"""Several p-values together: one of many, and which to believe."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.lax.axes import canonical_axis
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special.incomplete_beta import stdtr
from fxflow.scipy.special.inverses import chdtr, chdtrc
from fxflow.scipy.special.normal import ndtr, ndtri
from fxflow.scipy.stats._samples import operands, require_choice, statistic, taken
from fxflow.scipy.stats.results import SignificanceResult

_METHODS = ("fisher", "pearson", "mudholkar_george", "tippett", "stouffer")


@statistic("axis", "keepdims")
def combine_pvalues(
    pvalues: ArrayLike,
    method: str = "fisher",
    weights: ArrayLike | None = None,
    *,
    axis: Any = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> SignificanceResult:
    """Combines the p-values of independent tests of one hypothesis.

    Args:
      pvalues: real array-like[...].
      method: "fisher", "pearson", "mudholkar_george", "tippett" or "stouffer".
      weights: real array-like[...], for "stouffer"; None is equal ones.

    Example:
      >>> combine_pvalues(np.array([0.01, 0.05, 0.1])).pvalue.round(4)
      Array(0.003, dtype=float32)
    """
    name = "combine_pvalues"
    require_choice(name, "method", method, _METHODS)
    if weights is not None and fnp.ndim(weights) < fnp.ndim(pvalues):
        weights = fnp.broadcast_to(fnp.asarray(weights), fnp.shape(pvalues))
    given = (pvalues,) if weights is None else (pvalues, weights)
    found, done = taken(name, given, axis, nan_policy, keepdims, paired=True)
    x, n = found[0], found[0].n
    if method == "fisher":
        value = -2 * x.sum(lax.log(x.values))
        p = chdtrc(2 * n, value)
    elif method == "pearson":
        value = 2 * x.sum(lax.log1p(-x.values))
        p = chdtr(2 * n, -value)
    elif method == "mudholkar_george":
        value = x.sum(lax.log1p(-x.values) - lax.log(x.values))
        df = 5 * n + 4
        scale = lax.sqrt(3 / n) / math.pi * lax.sqrt(df / (df - 2))
        p = stdtr(df, -value * scale)
    elif method == "tippett":
        value = x.min()
        p = -lax.expm1(n * lax.log1p(-value))
    else:
        z = -ndtri(x.values)
        w = found[1].values if weights is not None else fnp.ones_like(z)
        value = x.sum(w * z) / lax.sqrt(x.sum(w * w))
        p = ndtr(-value)
    return SignificanceResult(done(value), done(p))


@statistic("axis")
def false_discovery_control(
    ps: ArrayLike, *, axis: int | None = 0, method: str = "bh"
) -> Array:
    """Adjusts p-values so that those below a level have that rate of false ones.

    Args:
      ps: real array-like[...], from 0 to 1.
      axis: axis of the p-values that belong together; None is all in one row.
      method: "bh" (Benjamini and Hochberg, for independent tests) or "by" (Benjamini
        and Yekutieli, for any).

    Returns:
      Float array of the shape of `ps`.

    Special cases:
      nan for a number that is not a probability.

    Example:
      >>> false_discovery_control(np.array([0.01, 0.04, 0.03])).round(4)
      Array([0.03, 0.04, 0.04], dtype=float32)
    """
    name = "false_discovery_control"
    require_choice(name, "method", str(method).lower(), ("bh", "by"))
    (x,), dtype = operands(name, ps)
    if axis is None:
        x, axis = fnp.ravel(x), 0
    if not x.aval.ndim:
        alone: Array = x.astype(dtype)
        return alone
    axis = canonical_axis(name, axis, x.aval.ndim)
    rows = fnp.moveaxis(fnp.where((x >= 0) & (x <= 1), x, math.nan), axis, -1)
    m = rows.aval.shape[-1]
    order = fnp.argsort(rows, axis=-1, stable=True)
    factor = m / np.arange(1, m + 1)
    if str(method).lower() == "by":
        factor = factor * (1 / np.arange(1, m + 1)).sum()
    ranked = fnp.take_along_axis(rows, order, axis=-1)
    ranked = ranked * fnp.asarray(factor, x.aval.dtype)
    least = lax.cummin(ranked, axis=ranked.aval.ndim - 1, reverse=True)
    back = fnp.take_along_axis(least, fnp.argsort(order, axis=-1), axis=-1)
    return fnp.moveaxis(fnp.clip(back, 0, 1), -1, axis).astype(dtype)
