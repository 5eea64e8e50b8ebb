"""Entropies, of probabilities and of samples; distances between distributions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import ArrayLike
from fxflow.optim.assignment import hungarian_algorithm
from fxflow.scipy.optimize.linear_programs import linprog
from fxflow.scipy.special.entropies import entr, rel_entr
from fxflow.scipy.stats._samples import operands, require_choice, statistic, taken


def _require_base(name: str, base: Any) -> None:
    if base is not None and (not isinstance(base, int | float) or base <= 0):
        raise ArgumentError(f"{name}: base must be a positive number, got {base!r}")


@statistic("base", "axis", "keepdims")
def entropy(
    pk: ArrayLike,
    qk: ArrayLike | None = None,
    base: float | None = None,
    axis: Any = 0,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Array:
    """Returns the entropy of probabilities, or how far they are from others.

    Args:
      pk: real array-like[...]: probabilities, which are divided by their sum.
      qk: others, likewise: the result is then the Kullback–Leibler divergence.
      base: base of the logarithm; None is e.

    Example:
      >>> entropy(np.array([1.0, 1.0]), base=2)
      Array(1., dtype=float32)
    """
    _require_base("entropy", base)
    given = (pk,) if qk is None else (pk, qk)
    (p, *rest), done = taken("entropy", given, axis, nan_policy, keepdims, paired=True)
    share = p.values / p.sum()
    if rest:
        (q,) = rest
        parts = rel_entr(share, q.values / q.sum())
    else:
        parts = entr(share)
    value = p.sum(parts)
    return done(value if base is None else value / math.log(base))


def _padded(x: Any, m: int) -> Any:
    shape = (*x.aval.shape[:-1], m)
    first, last = x[..., :1], x[..., -1:]
    return fnp.concatenate(
        [fnp.broadcast_to(first, shape), x, fnp.broadcast_to(last, shape)], axis=-1
    )


def _vasicek(x: Any, m: int) -> Any:
    n = x.aval.shape[-1]
    x = _padded(x, m)
    return fnp.mean(lax.log(n / (2 * m) * (x[..., 2 * m :] - x[..., : -2 * m])), -1)


def _van_es(x: Any, m: int) -> Any:
    n = x.aval.shape[-1]
    logs = lax.log((n + 1) / m * (x[..., m:] - x[..., :-m]))
    head = math.fsum(1 / k for k in range(m, n + 1))
    return fnp.sum(logs, -1) / (n - m) + (head + math.log(m) - math.log(n + 1))


def _ebrahimi(x: Any, m: int) -> Any:
    n = x.aval.shape[-1]
    i = np.arange(1, n + 1)
    c = np.where(i <= m, 1 + (i - 1) / m, 2.0)
    c = np.where(i >= n - m + 1, 1 + (n - i) / m, c)
    weight = fnp.asarray(n / (c * m), x.aval.dtype)
    x = _padded(x, m)
    return fnp.mean(lax.log((x[..., 2 * m :] - x[..., : -2 * m]) * weight), -1)


def _correa(x: Any, m: int) -> Any:
    n = x.aval.shape[-1]
    x = _padded(x, m)
    step = np.arange(-m, m + 1)
    windows = x[..., np.arange(n)[:, None] + m + step]
    apart = windows - fnp.mean(windows, -1, keepdims=True)
    slope = fnp.sum(apart * fnp.asarray(step, x.aval.dtype), -1)
    return -fnp.mean(lax.log(slope / (n * fnp.sum(apart * apart, -1))), -1)


_ESTIMATES = {
    "vasicek": _vasicek,
    "van es": _van_es,
    "ebrahimi": _ebrahimi,
    "correa": _correa,
}


@statistic("window_length", "base", "axis", "keepdims")
def differential_entropy(
    values: ArrayLike,
    *,
    window_length: int | None = None,
    base: float | None = None,
    axis: Any = 0,
    method: str = "auto",
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Array:
    """Returns an estimate of the differential entropy, from spacings of the sample.

    Args:
      values: real array-like[...]: the sample.
      window_length: how many places apart spacings are; None is the root of n.
      base: base of the logarithm; None is e.
      method: "vasicek", "van es", "ebrahimi", "correa", or "auto", which is "van es" to
        10 elements, "ebrahimi" to 1000, then "vasicek".
      nan_policy: "propagate" or "raise".

    Example:
      >>> differential_entropy(np.array([0.0, 1.0, 2.0, 4.0, 7.0])).round(4)
      Array(2.4171, dtype=float32)
    """
    name = "differential_entropy"
    method = str(method).lower()
    require_choice(name, "method", method, ("auto", *_ESTIMATES))
    require_choice(name, "nan_policy", nan_policy, ("propagate", "raise"))
    _require_base(name, base)
    (x,), done = taken(name, (values,), axis, nan_policy, keepdims)
    n = x.size
    m = math.floor(math.sqrt(n) + 0.5) if window_length is None else window_length
    if not 2 <= 2 * m < n:
        raise ArgumentError(
            f"{name}: window_length must be positive and less than half of the "
            f"{n} elements, got {m}"
        )
    if method == "auto":
        method = "van es" if n <= 10 else "ebrahimi" if n <= 1000 else "vasicek"
    value = _ESTIMATES[method](x.sorted(), int(m))[..., None]
    value = value if base is None else value / math.log(base)
    return done(fnp.where(x.lost, math.nan, value))


# -- distances -------------------------------------------------------------------------


def _distance(name: str, u: Any, v: Any, weights: tuple[Any, Any], p: int) -> Any:
    """Returns the integral of |U - V|ᵖ, of distribution functions of two samples."""
    arrays = [a for a in (u, v, *weights) if a is not None]
    found, dtype = operands(name, *arrays)
    u, v, *rest = found
    shares = []
    for values, w in ((u, weights[0]), (v, weights[1])):
        if values.aval.ndim != 1 or not values.aval.size:
            raise ShapeError(
                f"{name}: a sample must be a row of at least one element, got "
                f"{values.aval}"
            )
        if w is None:
            n = values.aval.shape[0]
            shares.append(fnp.full((n,), 1 / n, values.aval.dtype))
            continue
        w = rest.pop(0)
        if w.aval.shape != values.aval.shape:
            raise ShapeError(
                f"{name}: weights must be one for each element, got {w.aval} for "
                f"{values.aval}"
            )
        shares.append(w / fnp.sum(w))
    both = fnp.concatenate([u, v])
    jumps = fnp.concatenate([shares[0], -shares[1]])
    order = fnp.argsort(both)
    both, height = both[order], fnp.cumsum(jumps[order])[:-1]
    wide = fnp.diff(both)
    if p == 1:
        value = fnp.sum(abs(height) * wide)
    else:
        area = fnp.sum(height * height * wide)
        flat = area <= 0
        value = fnp.where(flat, 0, lax.sqrt(fnp.where(flat, 1, area)))
    lost = fnp.any(both != both)
    return fnp.where(lost, math.nan, value).astype(dtype)


_docs_of_distances = shared("""
    Args:
      u_values: real array-like[n].
      v_values: real array-like[m].
      u_weights: non-negative real array-like[n]; None is equal ones.
      v_weights: non-negative real array-like[m]; None is equal ones.

    Returns:
      A float.
""")


@statistic()
@_docs_of_distances
def wasserstein_distance(
    u_values: ArrayLike,
    v_values: ArrayLike,
    u_weights: ArrayLike | None = None,
    v_weights: ArrayLike | None = None,
) -> Array:
    """Returns the Wasserstein-1 distance of two samples: how far mass has to move.

    Example:
      >>> wasserstein_distance(np.array([0.0, 1.0]), np.array([2.0, 3.0]))
      Array(2., dtype=float32)
    """
    found: Array = _distance(
        "wasserstein_distance", u_values, v_values, (u_weights, v_weights), 1
    )
    return found


@statistic()
@_docs_of_distances
def energy_distance(
    u_values: ArrayLike,
    v_values: ArrayLike,
    u_weights: ArrayLike | None = None,
    v_weights: ArrayLike | None = None,
) -> Array:
    """Returns the energy distance of two samples.

    It is the root of twice the integral of (U - V)², of the distribution functions.

    Example:
      >>> energy_distance(np.array([0.0]), np.array([2.0]))
      Array(2., dtype=float32)
    """
    value = _distance("energy_distance", u_values, v_values, (u_weights, v_weights), 2)
    found: Array = math.sqrt(2) * value
    return found


@statistic()
def wasserstein_distance_nd(
    u_values: ArrayLike,
    v_values: ArrayLike,
    u_weights: ArrayLike | None = None,
    v_weights: ArrayLike | None = None,
) -> Array:
    """Returns the Wasserstein-1 distance of two samples of points.

    Samples of as many points, without weights, are an assignment, others a linear
    program of n m variables. The distance has derivatives with respect to points and
    weights.

    Args:
      u_values: real array-like[n, d]; or [n], which is `wasserstein_distance`.
      v_values: real array-like[m, d]; or [m].
      u_weights: non-negative real array-like[n]; None is equal ones.
      v_weights: non-negative real array-like[m]; None is equal ones.

    Returns:
      A float.

    Raises:
      ShapeError: the samples are not points of one space, or weights are not one for
        each point.

    Example:
      >>> x = np.array([[0.0, 0.0], [1.0, 0.0]])
      >>> wasserstein_distance_nd(x, x + np.array([3.0, 4.0]))
      Array(5., dtype=float32)
    """
    name = "wasserstein_distance_nd"
    given = [a for a in (u_values, v_values, u_weights, v_weights) if a is not None]
    (u, v, *rest), dtype = operands(name, *given)
    if u.aval.ndim == v.aval.ndim == 1:
        near: Array = _distance(name, u, v, (u_weights, v_weights), 1)
        return near.astype(dtype)
    sizes = [a.aval.shape for a in (u, v)]
    if any(len(s) != 2 or not s[0] for s in sizes) or sizes[0][1] != sizes[1][1]:
        raise ShapeError(
            f"{name}: samples must be points of one space, f32[n, d] and f32[m, d], "
            f"got {u.aval} and {v.aval}"
        )
    square = fnp.sum((u[:, None, :] - v[None, :, :]) ** 2, axis=-1)
    none = square == 0
    cost = fnp.where(none, 0, lax.sqrt(fnp.where(none, 1, square)))
    shares = []
    for size, w in ((sizes[0][0], u_weights), (sizes[1][0], v_weights)):
        share = fnp.full((size,), 1 / size, cost.aval.dtype)
        if w is not None:
            w = rest.pop(0)
            if w.aval.shape != (size,):
                raise ShapeError(
                    f"{name}: weights must be one for each of {size} points, got "
                    f"{w.aval}"
                )
            share = fnp.where(fnp.all(w >= 0), w / fnp.sum(w), math.nan)
        shares.append(share)
    lost = fnp.any(square != square) | ~(fnp.sum(shares[0]) + fnp.sum(shares[1]) > 0)
    fixed = fnp.where(lost, 1, lax.stop_gradient(cost))
    if u_weights is None and v_weights is None and sizes[0][0] == sizes[1][0]:
        rows, columns = hungarian_algorithm(fixed)
        value = fnp.mean(cost[rows, columns])
    else:
        value = _transported(cost, fixed, shares, lost)
    return fnp.where(lost, math.nan, value).astype(dtype)


def _transported(cost: Any, fixed: Any, shares: Any, lost: Any) -> Any:
    """Returns the least cost of moving shares, with derivatives by costs and shares."""
    n, m = cost.aval.shape
    rows = np.kron(np.eye(n), np.ones((1, m)))
    columns = np.kron(np.ones((1, n)), np.eye(m))
    # The last equation follows from the others.
    matrix = fnp.asarray(np.concatenate([rows, columns])[:-1], fixed.dtype)
    ends = [fnp.where(lost, 1 / w.aval.size, lax.stop_gradient(w)) for w in shares]
    found = linprog(
        fnp.ravel(fixed), A_eq=matrix, b_eq=fnp.concatenate(ends)[:-1], bounds=(0, None)
    )
    plan = fnp.reshape(lax.stop_gradient(found.x), (n, m))
    prices = lax.stop_gradient(fnp.append(found.eqlin.marginals, 0.0))
    both = fnp.concatenate(shares)
    moved = both - lax.stop_gradient(both)
    return fnp.sum(plan * cost) + fnp.sum(prices.astype(moved.dtype) * moved)
