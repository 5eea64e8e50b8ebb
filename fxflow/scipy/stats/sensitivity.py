"""Sensitivity: which part of a function's variance comes from which argument."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from fxflow import numpy as fnp
from fxflow import random
from fxflow.core.arrays import Array
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import natural
from fxflow.numpy._operands import promote_inexact
from fxflow.scipy.stats._laws import law_of
from fxflow.scipy.stats._samples import require_choice, statistic
from fxflow.scipy.stats.qmc import Sobol
from fxflow.scipy.stats.results import (
    BootstrapResult,
    ConfidenceInterval,
    Result,
    require_level,
)
from fxflow.transforms.vmap import vmap


def saltelli_2010(f_A: Any, f_B: Any, f_AB: Any) -> tuple[Array, Array]:
    """Returns the indices of first and of total order.

    Args:
      f_A: float[s, n]: the function's values at the first points.
      f_B: float[s, n]: those at the second ones.
      f_AB: float[d, s, n]: those where one argument is that of the second points.

    Returns:
      Two float[s, d].

    Source: A. Saltelli and others 2010; M. J. W. Jansen 1999.
    """
    both = fnp.concatenate([f_A, f_B], axis=-1)
    spread = fnp.var(both, axis=-1)
    first = fnp.mean(f_B * (f_AB - f_A), axis=-1) / spread
    total = 0.5 * fnp.mean((f_A - f_AB) ** 2, axis=-1) / spread
    return first.T, total.T


class BootstrapSobolResult(NamedTuple):
    """What `SobolResult.bootstrap` returns.

    Attributes:
      first_order: a confidence interval and standard error of each.
      total_order: the same.
    """

    first_order: BootstrapResult
    total_order: BootstrapResult


class SobolResult(Result):
    """What `sobol_indices` returns.

    Attributes:
      first_order: float[s, d], or float[d]: the part that an argument has alone.
      total_order: the part in which it has a share.
    """

    first_order: Array
    total_order: Array
    _f_A: Array
    _f_B: Array
    _f_AB: Array
    _method: Any
    _fixed: ClassVar[tuple[str, ...]] = ("_method",)

    def bootstrap(
        self,
        key: Array,
        confidence_level: float = 0.95,
        n_resamples: int = 999,
    ) -> BootstrapSobolResult:
        """Returns confidence intervals by resampling the points.

        Args:
          key: a key of `fxflow.random`.
          confidence_level: a probability.
          n_resamples: the number of resamples.

        Returns:
          A named tuple of `first_order` and `total_order`, as `bootstrap` returns them.
        """
        name = "SobolResult.bootstrap"
        require_level(name, confidence_level)
        natural(name, "n_resamples", n_resamples, 2)
        n = self._f_A.aval.shape[-1]

        def one(k: Any) -> Any:
            places = random.randint(k, (n,), 0, n)
            parts = (self._f_A, self._f_B, self._f_AB)
            return self._method(*(f[..., places] for f in parts))

        found = vmap(one)(random.split(key, int(n_resamples)))
        tail = (1 - confidence_level) / 2
        made = []
        for spread, shown in zip(
            found, (self.first_order, self.total_order), strict=True
        ):
            spread = fnp.moveaxis(fnp.reshape(spread, (-1, *shown.aval.shape)), 0, -1)
            low, high = (fnp.quantile(spread, q, axis=-1) for q in (tail, 1 - tail))
            error = fnp.std(spread, ddof=1, axis=-1)
            made.append(BootstrapResult(ConfidenceInterval(low, high), spread, error))
        return BootstrapSobolResult(*made)


@statistic(compiled=False)
def sobol_indices(
    *,
    func: Callable[[Any], Any] | Mapping[str, Any],
    n: int,
    dists: Sequence[Any] | None = None,
    method: Any = "saltelli_2010",
    key: Array | None = None,
) -> SobolResult:
    """Returns Sobol's indices: which part of a variance comes from which argument.

    Args:
      func: a function of float[d, n], n points of d arguments, that returns float[n] or
        float[s, n]; or a dict of its values "f_A", "f_B" (float[s, n]) and "f_AB"
        (float[d, s, n]).
      n: the number of points: a power of 2.
      dists: the distributions of the arguments, with a `ppf`.
      method: "saltelli_2010", or a function of the values at three sets of points that
        returns two float[s, d].
      key: a key of `fxflow.random`: the points are a scrambled Sobol sequence.

    Returns:
      A `SobolResult` with `first_order` and `total_order`, float[d] or float[s, d], and
      `bootstrap()`.

    Raises:
      ArgumentError: `n` is not a power of 2, there are no distributions or no key, or
        values are missing.
      ShapeError: values do not have these shapes.

    Example:
      >>> from fxflow import random
      >>> from fxflow.scipy import stats
      >>> found = sobol_indices(
      ...     func=lambda x: x[0] + 2 * x[1],
      ...     n=256,
      ...     dists=[stats.uniform(), stats.uniform()],
      ...     key=random.key(0),
      ... )
      >>> found.first_order.round(1)
      Array([0.2, 0.8], dtype=float32)

    Source: `scipy.stats.sobol_indices`; I. M. Sobol 1993.
    """
    name = "sobol_indices"
    if not isinstance(n, int | np.integer) or n < 1 or n & (n - 1):
        raise ArgumentError(f"{name}: n must be a power of 2, got {n!r}")
    if not callable(method):
        require_choice(name, "method", method, ("saltelli_2010",))
        method = saltelli_2010
    if isinstance(func, Mapping):
        wanted = ("f_A", "f_B", "f_AB")
        if set(wanted) - set(func):
            raise ArgumentError(
                f"{name}: func must have the values f_A, f_B and f_AB, got {[*func]}"
            )
        a, b, ab = promote_inexact(name, *(func[k] for k in wanted))
        a, b = (fnp.atleast_2d(v) for v in (a, b))
        if ab.aval.ndim == 2:
            ab = ab[:, None]
    else:
        a, b, ab = _evaluated(name, func, int(n), dists, key)
    s = a.aval.shape[0]
    if a.aval.shape != (s, n) or b.aval.shape != (s, n) or ab.aval.shape[1:] != (s, n):
        raise ShapeError(
            f"{name}: values must be [s, {n}] and [d, s, {n}], got {a.aval}, {b.aval} "
            f"and {ab.aval}"
        )
    mean = fnp.mean(fnp.concatenate([a, b], axis=-1), axis=-1, keepdims=True)
    a, b, ab = a - mean, b - mean, ab - mean
    first, total = (fnp.asarray(v) for v in method(a, b, ab))
    if s == 1:
        first, total = (v[0] if v.aval.ndim > 1 else v for v in (first, total))
    return SobolResult(first, total, a, b, ab, method)


def _evaluated(name: str, func: Any, n: int, dists: Any, key: Any) -> Any:
    """Returns values at two sets of points, and with one argument exchanged."""
    if not callable(func):
        raise ArgumentError(f"{name}: func must be a function or a dict, got {func!r}")
    if not isinstance(dists, tuple | list) or not dists:
        raise ArgumentError(
            f"{name}: dists must be a sequence of distributions, got {dists!r}"
        )
    if key is None:
        raise ArgumentError(f"{name}: key must be given: a key of fxflow.random")
    laws = [law_of(name, dist) for dist in dists]
    d = len(laws)
    points = Sobol(2 * d, key=key).random(n).T
    a, b = (
        fnp.stack([law.ppf(u) for law, u in zip(laws, half, strict=True)])
        for half in (points[:d], points[d:])
    )

    def values(x: Any) -> Any:
        found = fnp.asarray(func(x))
        if found.aval.ndim not in (1, 2) or found.aval.shape[-1] != n:
            raise ShapeError(
                f"{name}: of float[{d}, {n}], func must return [{n}] or [s, {n}], got "
                f"{found.aval}"
            )
        return fnp.atleast_2d(found)

    return (
        values(a),
        values(b),
        fnp.stack([values(a.at[i].set(b[i])) for i in range(d)]),
    )
