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
      base: of the logarithm; None is e.

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
      base: of the logarithm; None is e.
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
