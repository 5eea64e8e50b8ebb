"""Fits of any distribution within bounds, and how good a fit is."""

from __future__ import annotations

import collections
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.optimize.evolution import differential_evolution
from fxflow.scipy.stats._betas import beta
from fxflow.scipy.stats._continuous import Continuous
from fxflow.scipy.stats._discrete import Discrete
from fxflow.scipy.stats._domains import INSIDE_UNIT, PROBABILITY
from fxflow.scipy.stats._fitting import require_sample
from fxflow.scipy.stats._normals import norm
from fxflow.scipy.stats._samples import require_choice
from fxflow.scipy.stats.resampling import _many, _program, _pvalue, _require_count
from fxflow.scipy.stats.results import Result


class FitResult(Result):
    """What `fit` returns.

    Attributes:
      params: a named tuple of the parameters.
      success: whether the search ended as it should.
      fun: what was minimized, there.
    """

    params: Any
    success: Array
    fun: Array
    _data: Array
    _dist: Any
    _fixed = ("_dist",)
    _unpacked = 3

    @property
    def message(self) -> str:
        """Whether the search ended as it should, in words."""
        if bool(self.success):
            return "The search ended as it should."
        return "The search took all the generations it may, or no parameters fit."

    def nllf(
        self, params: tuple[ArrayLike, ...] | None = None, data: ArrayLike | None = None
    ) -> Array:
        """Returns the negative logarithm of the likelihood.

        Args:
          params: the parameters; None is those that were found.
          data: the sample; None is that which was fitted.
        """
        given = self.params if params is None else params
        x = self._data if data is None else data
        name = "logpdf" if isinstance(self._dist, Continuous) else "logpmf"
        return -fnp.sum(getattr(self._dist, name)(x, *given))


def _require_distribution(name: str, dist: Any, kinds: tuple[type, ...]) -> None:
    if not isinstance(dist, kinds):
        raise ArgumentError(
            f"{name}: dist must be a distribution such as fxflow.scipy.stats.norm, got "
            f"{dist!r}"
        )


def _by_name(name: str, what: str, dist: Any, given: Any) -> dict[str, Any]:
    """Returns entries for parameters, given in a mapping or in their order."""
    names = dist.parameters
    if given is None:
        return {}
    if isinstance(given, Mapping):
        if unknown := sorted(set(given) - set(names)):
            raise ArgumentError(
                f"{name}: {what} has an entry {unknown[0]!r}, and the parameters of "
                f"{dist.name} are {', '.join(names)}"
            )
        return dict(given)
    entries = list(given)
    count = len(dist.domains)
    if not count <= len(entries) <= len(names):
        raise ArgumentError(
            f"{name}: {what} must have {count} to {len(names)} entries, for "
            f"{', '.join(names)}, got {len(entries)}"
        )
    return dict(zip(names, entries, strict=False))


def _box(dist: Any, bounds: Any) -> dict[str, tuple[float, float]]:
    """Returns the bounds of every parameter."""
    given = _by_name("fit", "bounds", dist, bounds)
    known = {"loc": (0.0, 0.0), "scale": (1.0, 1.0)}
    for name, domain in dist.domains.items():
        if domain.words in (PROBABILITY.words, INSIDE_UNIT.words):
            known[name] = (0.0, 1.0)
    box = {}
    for name in dist.parameters:
        pair = given.get(name, known.get(name))
        if pair is None:
            raise ArgumentError(
                f"fit: bounds must have an entry for {name} of {dist.name}, which may "
                "be arbitrarily large"
            )
        try:
            low, high = (float(end) for end in pair)
        except (TypeError, ValueError):
            raise ArgumentError(
                f"fit: bounds of {name} must be a pair of numbers, got {pair!r}"
            ) from None
        if not -math.inf < low <= high < math.inf:
            raise ArgumentError(
                f"fit: bounds of {name} must be finite, the lower first, got {pair!r}"
            )
        if name in known and name in dist.domains:
            low, high = max(low, known[name][0]), min(high, known[name][1])
        if name == "scale" and high <= 0:
            raise ArgumentError(f"fit: bounds of scale must be positive, got {pair!r}")
        box[name] = (low, high)
    return box


def _whole(dist: Any) -> set[str]:
    """Returns which parameters are integers."""
    names = {n for n, d in dist.domains.items() if d.line is None}
    return names | ({"loc"} if isinstance(dist, Discrete) else set())


def _spacings(dist: Any, x: Any, given: Any) -> Any:
    """Returns the sum of logarithms of how much lies between neighbors."""
    x = fnp.sort(x)
    heights = dist.cdf(x, *given)
    # Each of equal elements counts the distance from the one before all of them.
    before = fnp.searchsorted(x, x, side="left") - 1
    lower = fnp.where(before >= 0, heights[fnp.maximum(before, 0)], 0)
    return _penalized(fnp.append(heights - lower, 1 - heights[-1]), log=False)


def _penalized(values: Any, log: bool) -> Any:
    """Returns a sum of logarithms, in which what is impossible is very unlikely."""
    known = (values > -math.inf) if log else (values > 0)
    logs = fnp.where(known, values, 0.0 if log else 1.0)
    logs = logs if log else lax.log(logs)
    worst = -100 * math.log(float(fnp.finfo(values.dtype).max))
    return fnp.sum(fnp.where(known & (logs == logs), logs, worst))


def fit(
    dist: Any,
    data: ArrayLike,
    bounds: Any = None,
    *,
    guess: Any = None,
    method: str = "mle",
    optimizer: Callable[..., Any] | None = None,
    key: Array | None = None,
) -> FitResult:
    """Fits a distribution, continuous or discrete, to a sample within bounds.

    `dist.fit` is quicker where a local search is enough: it needs no bounds.

    Args:
      dist: a distribution of `fxflow.scipy.stats`.
      data: real array-like[n]: the sample.
      bounds: a mapping from names of parameters to pairs of finite numbers, or a
        sequence of pairs for the shapes, `loc` and `scale`; without an entry `loc` is
        0, `scale` is 1, and a probability is from 0 to 1.
      guess: numbers from which the search starts: a mapping or a sequence likewise.
      method: "mle", maximum likelihood, or "mse", the maximum product of spacings.
      optimizer: called with a function of a vector of the parameters that are not
        fixed, and with `bounds=`, a list of their pairs; returns what has `x`, `fun`
        and `success`. None is `fxflow.scipy.optimize.differential_evolution`.
      key: a key of `fxflow.random`, for the search; None is always the same one.

    Returns:
      A `FitResult` with `params`, a named tuple, `success`, `message` and `nllf()`.
      With the default optimizer the parameters have derivatives with
      respect to the sample.

    Raises:
      ArgumentError: unknown method or parameter, bounds are missing or not finite, or
        the sample is empty or not finite.
      ShapeError: the sample is not a row.

    Example:
      >>> from fxflow.scipy import stats
      >>> x = np.array([3.0, 1.0, 4.0, 1.0, 5.0, 2.0])
      >>> found = stats.fit(stats.binom, x, {"n": (5, 5)})
      >>> found.params.p.round(3)
      Array(0.533, dtype=float32)

    Source: `scipy.stats.fit`; its `plot` is left to `probplot` and a plotting library.
    """
    _require_distribution("fit", dist, (Continuous, Discrete))
    require_choice("fit", "method", str(method).lower(), ("mle", "mse"))
    require_sample(dist.name, data)
    (x,) = promote_inexact("fit", data)
    if x.aval.ndim != 1:
        raise ShapeError(f"fit: data must be a row, got {x.aval}")
    box = _box(dist, bounds)
    free = [n for n, (low, high) in box.items() if low < high]
    if guesses := _by_name("fit", "guess", dist, guess):
        middle = [guesses.get(n, sum(box[n]) / 2) for n in free]
        ends = np.array([box[n] for n in free]).reshape(-1, 2)
        start: Any = np.clip(np.array(middle, float), ends[:, 0], ends[:, 1])
    else:
        start = None
    settings: dict[str, Any] = {
        "dist": dist,
        "box": tuple(box.items()),
        "method": str(method).lower(),
    }
    if optimizer is None:
        chosen = random.key(0) if key is None else key
        parameters, value, success = _program(_search, (x, chosen, start), **settings)
    else:
        place, cost = _objective(**settings)
        pairs = [box[n] for n in free]
        found = optimizer(lambda u: cost(u, x), bounds=pairs)
        parameters, value, success = place(found.x), found.fun, found.success
    params = _named(dist)(*(fnp.asarray(v, x.dtype) for v in parameters))
    value, success = fnp.asarray(value), fnp.asarray(success)
    return FitResult(params, success, value, _data=x, _dist=dist)


def _named(dist: Any) -> Any:
    return collections.namedtuple("FitParams", dist.parameters)


def _objective(dist: Any, box: Any, method: str) -> tuple[Any, Any]:
    """Returns the parameters of a vector of those that vary, and the cost of it."""
    box, whole = dict(box), _whole(dist)
    free = [n for n, (low, high) in box.items() if low < high]
    density = dist.logpdf if isinstance(dist, Continuous) else dist.logpmf

    def place(u: Any) -> list[Any]:
        values = {n: u[i] for i, n in enumerate(free)}
        given = {n: values.get(n, box[n][0]) for n in dist.parameters}
        return [fnp.round(v) if n in whole else v for n, v in given.items()]

    def cost(u: Any, x: Any) -> Any:
        given = place(u)
        if method == "mse":
            return -_spacings(dist, x, given)
        return -_penalized(density(x, *given), log=True)

    return place, cost


def _search(
    x: Any, key: Any, start: Any, dist: Any, box: Any, method: str
) -> tuple[Any, Any, Any]:
    """Returns the parameters, the cost of them and whether they were found."""
    place, cost = _objective(dist, box, method)
    pairs = [pair for _, pair in box if pair[0] < pair[1]]
    if not pairs:
        return place([]), cost([], x), True
    found = differential_evolution(cost, pairs, (x,), x0=start, key=key)
    return place(found.x), found.fun, found.success


# -- how good a fit is -----------------------------------------------------------------


class GoodnessOfFitResult(Result):
    """What `goodness_of_fit` returns.

    Attributes:
      fit_result: a `FitResult` with the parameters of the hypothesis.
      statistic: of the sample.
      pvalue: how probable a statistic that is at least as extreme is.
      null_distribution: the statistics of the samples that were drawn.
    """

    fit_result: FitResult
    statistic: Array
    pvalue: Array
    null_distribution: Array
    _unpacked = 4


# The statistics take samples in ascending order.


def _anderson(law: Any, x: Any) -> Any:
    return _anderson_of(law.logcdf(x), law.logsf(x))


def _anderson_drawn(law: Any, x: Any) -> Any:
    # No tail of what is drawn underflows, and its logarithm takes half of the time.
    return _anderson_of(lax.log(law.cdf(x)), lax.log(law.sf(x)))


def _anderson_of(below: Any, above: Any) -> Any:
    n = below.shape[-1]
    ranks = fnp.asarray(2.0 * np.arange(1, n + 1) - 1, below.dtype) / n
    return -n - fnp.sum(ranks * (below + above[..., ::-1]), axis=-1)


def _kolmogorov(law: Any, x: Any) -> Any:
    n = x.shape[-1]
    steps = fnp.asarray(np.arange(n) / n, x.dtype)
    heights = law.cdf(x)
    apart = fnp.maximum(heights - steps, steps + 1 / n - heights)
    return fnp.max(apart, axis=-1)


def _cramer(law: Any, x: Any) -> Any:
    n = x.shape[-1]
    middles = fnp.asarray((np.arange(n) + 0.5) / n, x.dtype)
    apart = law.cdf(x) - middles
    return 1 / (12 * n) + fnp.sum(apart * apart, axis=-1)


def _filliben(law: Any, x: Any) -> Any:
    n = x.shape[-1]
    k = fnp.asarray(np.arange(1.0, n + 1), x.dtype)
    quantiles = law.ppf(beta.median(k, n + 1 - k))
    a, b = (v - fnp.mean(v, axis=-1, keepdims=True) for v in (x, quantiles))
    wide = lax.sqrt(fnp.sum(a * a, axis=-1) * fnp.sum(b * b, axis=-1))
    return fnp.sum(a * b, axis=-1) / wide


_STATISTICS: dict[str, Callable[..., Any]] = {
    "ad": _anderson,
    "ks": _kolmogorov,
    "cvm": _cramer,
    "filliben": _filliben,
}


#: Those that are found faster of samples that are drawn.
_DRAWN: dict[str, Callable[..., Any]] = {"ad": _anderson_drawn}


def _ordered_uniform(key: Any, n: int, dtype: Any) -> Any:
    """Returns n uniform numbers in ascending order.

    They are sums of n + 1 exponential numbers, over the sum of all.
    """
    sums = fnp.cumsum(random.exponential(key, (n + 1,), dtype))
    info = fnp.finfo(dtype)
    share = sums[:-1] / sums[-1]
    return fnp.clip(share, float(info.tiny), 1 - float(info.epsneg))


def _simulated(
    x: Any,
    key: Any,
    hypothesis: Any,
    known: Any,
    guessed: Any,
    dist: Any,
    statistic: Any,
    n: int,
    batch: Any,
) -> tuple[Any, Any, Any, Any]:
    """Returns the hypothesis, the statistic, its p-value and what it is when drawn."""
    of = _STATISTICS[statistic] if isinstance(statistic, str) else statistic
    guesses = {name: v for name, v in guessed.items() if name not in known}

    def fitted(x: Any, held: Any) -> list[Any]:
        """Returns the parameters of a sample, of which some may be held fixed."""
        if len(held) == len(dist.parameters):
            return [held[name] for name in dist.parameters]
        if dist is norm and not held:
            return [fnp.mean(x), fnp.std(x, ddof=1)]  # as SciPy has it here
        rest = {name: v for name, v in guesses.items() if name not in held}
        return list(dist.fit(x, **rest, **{f"f{k}": v for k, v in held.items()}))

    def value(x: Any, ordered: bool = False) -> Any:
        law = dist(*fitted(x, known))
        if ordered:
            return _DRAWN.get(statistic, of)(law, x)
        if isinstance(statistic, str):
            return of(law, fnp.sort(x, axis=-1))
        return of(law, x, axis=-1)

    parameters = fitted(x, {**known, **hypothesis})

    def one(k: Any) -> Any:
        if not isinstance(statistic, str) or not (dist.has("ppf") or dist.has("isf")):
            drawn = dist.rvs(k, *parameters, shape=x.shape)
            return value(drawn.astype(x.dtype))
        # In order already, so that nothing is sorted.
        drawn = dist.ppf(_ordered_uniform(k, x.shape[0], x.dtype), *parameters)
        return value(drawn.astype(x.dtype), ordered=True)

    null = _many(one, random.split(key, n), x.shape[0], batch)
    observed = value(x)
    side = "less" if statistic == "filliben" else "greater"
    return parameters, observed, _pvalue(null, observed, side, 1), null


def goodness_of_fit(
    dist: Any,
    data: ArrayLike,
    *,
    key: Array,
    known_params: Mapping[str, ArrayLike] | None = None,
    fit_params: Mapping[str, ArrayLike] | None = None,
    guessed_params: Mapping[str, ArrayLike] | None = None,
    statistic: str | Callable[..., Any] = "ad",
    n_mc_samples: int = 9999,
    batch: int | None = None,
) -> GoodnessOfFitResult:
    """Tests whether a sample is of a family of distributions, by simulation.

    The family is fitted to the sample, samples are drawn of the fit, and the family is
    fitted to each of them, all in one compiled program. Fits are those of `dist.fit`,
    but the variance of a normal distribution is that with n - 1.

    Args:
      dist: a continuous distribution of `fxflow.scipy.stats`.
      data: real array-like[n]: the sample.
      key: a key of `fxflow.random`, in place of SciPy's generator.
      known_params: names and values of parameters that the hypothesis fixes.
      fit_params: those of the distribution that samples are drawn of, if they have
        been fitted already.
      guessed_params: where the searches for parameters begin.
      statistic: "ad" (Anderson and Darling), "ks" (Kolmogorov and Smirnov), "cvm"
        (Cramér and von Mises) or "filliben" (correlation of a probability plot); or a
        function `statistic(law, data, axis)` of a distribution with its parameters,
        which is greater for a worse fit.
      n_mc_samples: how many samples are drawn.
      batch: how many of them are worked on at a time; None is what 262,144 numbers
        make.

    Returns:
      A `GoodnessOfFitResult` with `fit_result`, `statistic`, `pvalue` and
      `null_distribution`.

    Raises:
      ArgumentError: unknown statistic or parameter, `dist` is not a continuous
        distribution, or a number is out of range.
      ShapeError: the sample is not a row.

    Example:
      >>> from fxflow import random
      >>> from fxflow.scipy import stats
      >>> x = np.array([0.1, 0.2, 0.2, 0.4, 0.9, 1.1, 2.5, 9.0])
      >>> found = stats.goodness_of_fit(
      ...     stats.norm, x, key=random.key(0), n_mc_samples=499
      ... )
      >>> bool(found.pvalue < 0.05)
      True

    Source: `scipy.stats.goodness_of_fit`; W. Stute, W. Manteiga and M. Quindimil, 1993.
    """
    name = "goodness_of_fit"
    _require_distribution(name, dist, (Continuous,))
    if not callable(statistic):
        require_choice(name, "statistic", statistic, tuple(_STATISTICS))
    _require_count(name, n_mc_samples, batch)
    require_sample(dist.name, data)
    (x,) = promote_inexact(name, data)
    if x.aval.ndim != 1:
        raise ShapeError(f"{name}: data must be a row, got {x.aval}")
    given = []
    for what, entries in (
        ("known_params", known_params),
        ("fit_params", fit_params),
        ("guessed_params", guessed_params),
    ):
        if not isinstance(entries, Mapping | None):
            raise ArgumentError(f"{name}: {what} must be a mapping, got {entries!r}")
        found = _by_name(name, what, dist, entries)
        given.append({k: fnp.asarray(v, x.dtype) for k, v in found.items()})
    known, fixed, guessed = given
    parameters, observed, pvalue, null = _program(
        _simulated,
        (x, key, fixed, known, guessed),
        dist=dist,
        statistic=statistic,
        n=int(n_mc_samples),
        batch=batch,
    )
    nllf = -fnp.sum(dist.logpdf(x, *parameters))
    result = FitResult(
        _named(dist)(*parameters), fnp.asarray(True), nllf, _data=x, _dist=dist
    )
    return GoodnessOfFitResult(result, observed, pvalue, null)
