"""Mixtures, truncated distributions and order statistics: made of other distributions.

Such a distribution is a pytree with the methods of a frozen one. What is given are the
density and both tails on a logarithmic scale; quantiles are solved for, and means are
integrated over quantiles, by the solver and the rule of the other distributions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, is_arraylike, not_an_array
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.library import library
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError
from fxflow.lax import sampling
from fxflow.lax.axes import integer, shape_or_length
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.random._arguments import float_dtype, key_data_of
from fxflow.scipy.special.exponential_sums import logsumexp
from fxflow.scipy.special.gammas import betaln
from fxflow.scipy.stats._betas import beta
from fxflow.scipy.stats._continuous import Continuous
from fxflow.scipy.stats._inverse import inverse_of
from fxflow.scipy.stats._positives import log_rest
from fxflow.scipy.stats._protocol import require_letters
from fxflow.scipy.stats._quadrature import expected, expected_between
from fxflow.scipy.stats.frozen import Frozen, Law
from fxflow.scipy.stats.histograms import rv_histogram


class Made(Law):
    """A continuous distribution that is made of others, with the methods of SciPy's.

    A kind of them has `_logpdf(x)`, `_logs(x)` and `support()`.
    """

    def _logpdf(self, x: Any) -> Any:
        raise AssertionError(f"{type(self).__name__} has no density")

    def _logs(self, x: Any) -> tuple[Any, Any]:
        raise AssertionError(f"{type(self).__name__} has no tails")

    def support(self) -> tuple[Array, Array]:
        """Returns the ends of the support."""
        raise AssertionError(f"{type(self).__name__} has no support")

    # -- densities and probabilities ---------------------------------------------------

    def pdf(self, x: ArrayLike) -> Array:
        """Returns the density."""
        return lax.exp(self.logpdf(x))

    def logpdf(self, x: ArrayLike) -> Array:
        """Returns the logarithm of the density."""
        return _evaluate(self, "_logpdf", self._operand("logpdf", x))

    def cdf(self, x: ArrayLike) -> Array:
        """Returns the cumulative distribution function, P(X ≤ x)."""
        return lax.exp(self.logcdf(x))

    def logcdf(self, x: ArrayLike) -> Array:
        """Returns the logarithm of the cumulative distribution function."""
        return _evaluate(self, "_logs", self._operand("logcdf", x))[0]

    def sf(self, x: ArrayLike) -> Array:
        """Returns the survival function, P(X > x)."""
        return lax.exp(self.logsf(x))

    def logsf(self, x: ArrayLike) -> Array:
        """Returns the logarithm of the survival function."""
        return _evaluate(self, "_logs", self._operand("logsf", x))[1]

    def _operand(self, name: str, x: Any) -> Any:
        if not is_arraylike(x):
            raise not_an_array(x, f"{type(self).__name__}.{name}: the argument is")
        return x

    # -- quantiles ---------------------------------------------------------------------

    def ppf(self, q: ArrayLike) -> Array:
        """Returns the quantile function; nan outside of 0 … 1."""
        return _evaluate(self, "_quantile", self._operand("ppf", q))

    def isf(self, q: ArrayLike) -> Array:
        """Returns the inverse of the survival function; nan outside of 0 … 1."""
        return _evaluate(self, "_upper_quantile", self._operand("isf", q))

    def _quantile(self, q: Any) -> Any:
        return self._at_ends(q, upper=False)

    def _upper_quantile(self, q: Any) -> Any:
        return self._at_ends(q, upper=True)

    def _at_ends(self, q: Any, upper: bool) -> Any:
        (q,) = promote_inexact("ppf", q)
        low, high = self.support()
        if upper:
            low, high = high, low
        value = self._solved(fnp.where((q > 0) & (q < 1), q, 0.5), upper)
        value = fnp.where(q == 0, low, fnp.where(q == 1, high, value))
        return fnp.where((q >= 0) & (q <= 1), value, math.nan)

    def _solved(self, q: Any, upper: bool) -> Any:
        """Returns quantiles of probabilities between 0 and 1."""
        leaves, structure = tree.flatten(self)
        q, *leaves = promote_inexact("ppf", q, *leaves)
        of: Any = lambda shapes: tree.unflatten(structure, shapes)
        find = inverse_of(
            lambda z, *shapes: of(shapes)._logs(z),
            (
                lambda z, *shapes: lax.exp(of(shapes)._logs(z)[0]),
                lambda z, *shapes: lax.exp(of(shapes)._logs(z)[1]),
            ),
            lambda z, *shapes: lax.exp(of(shapes)._logpdf(z)),
            lambda shapes: of(shapes).support(),
            upper,
        )
        return find(q, *leaves)

    def median(self) -> Array:
        """Returns the median."""
        return self.ppf(0.5)

    def interval(self, confidence: ArrayLike) -> tuple[Array, Array]:
        """Returns the interval around the median that has a given probability."""
        (given,) = promote_inexact("interval", self._operand("interval", confidence))
        tail = (1 - given) / 2
        return self.ppf(tail), self.isf(tail)

    # -- moments -----------------------------------------------------------------------

    def _mean_of(self, of: Callable[..., Any], *more: Any) -> Any:
        """Returns the mean of a function of the variable and of `more`."""
        leaves, structure = tree.flatten(self)
        leaves = promote_inexact("mean", *leaves)
        law: Any = lambda shapes: tree.unflatten(structure, shapes)
        return expected(
            of,
            lambda u, *shapes: law(shapes)._quantile(u),
            lambda u, *shapes: law(shapes)._upper_quantile(u),
            leaves,
            more,
        )

    def _mean(self) -> Any:
        return self._mean_of(lambda x: x)

    def _var(self) -> Any:
        return self._mean_of(lambda x, m: (x - m) ** 2, self._mean())

    def _raw(self, order: int) -> Any:
        return self._mean_of(lambda x: x**order)

    def _standard(self, order: int) -> Any:
        m, v = self._mean(), self._var()
        return self._mean_of(lambda x, m, v: ((x - m) / fnp.sqrt(v)) ** order, m, v)

    def _entropy(self) -> Any:
        leaves, structure = tree.flatten(self)
        wide = [fnp.expand_dims(a, -1) if fnp.ndim(a) else a for a in leaves]
        law: Any = tree.unflatten(structure, wide)
        return self._mean_of(lambda x: -law._logpdf(x))

    def mean(self) -> Array:
        """Returns the mean."""
        return _evaluate(self, "_mean")

    def var(self) -> Array:
        """Returns the variance."""
        return _evaluate(self, "_var")

    def std(self) -> Array:
        """Returns the standard deviation."""
        return lax.sqrt(self.var())

    def entropy(self) -> Array:
        """Returns the differential entropy, in nats."""
        return _evaluate(self, "_entropy")

    def moment(self, order: int) -> Array:
        """Returns the mean of a power, about 0.

        Args:
          order: a positive integer: the power.

        Returns:
          Float array of the parameters' shape.

        Raises:
          ArgumentError: `order` is not positive.
        """
        name = f"{type(self).__name__}.moment"
        order = integer(name, "order", order)
        if order < 1:
            raise ArgumentError(f"{name}: order must be positive, got {order}")
        return self.mean() if order == 1 else _powers(self, order, False)

    def stats(self, moments: str = "mv") -> tuple[Array, ...]:
        """Returns mean, variance, skewness, excess kurtosis: letters of "mvsk"."""
        require_letters(f"{type(self).__name__}.stats", moments)
        found: dict[str, Callable[[], Any]] = {
            "m": self.mean,
            "v": self.var,
            "s": lambda: _powers(self, 3, True),
            "k": lambda: _powers(self, 4, True) - 3,
        }
        return tuple(found[letter]() for letter in moments)

    def _expected(self, func: Any, lb: Any, ub: Any, conditional: bool) -> Any:
        if lb is None and ub is None:
            return fnp.asarray(self._mean_of(func))
        leaves, structure = tree.flatten(self)
        leaves = promote_inexact("expect", *leaves)
        law: Any = lambda shapes: tree.unflatten(structure, shapes)
        zero = fnp.zeros((), leaves[0].dtype)
        below = zero if lb is None else self.cdf(lb)
        above = zero if ub is None else self.sf(ub)
        value, mass = expected_between(
            func,
            lambda u, *shapes: law(shapes)._quantile(u),
            lambda u, *shapes: law(shapes)._upper_quantile(u),
            leaves,
            (),
            (below, above),
        )
        return fnp.asarray(value / mass if conditional else value)

    def _drawn(self, key: Any, shape: Any, dtype: Any) -> Any:
        # Through the quantile function, so that there are derivatives.
        name = f"{type(self).__name__}.rvs"
        chosen = float_dtype(name, dtype)
        own = fnp.shape(self.support()[0])
        full = own if shape is None else shape_or_length(name, shape)
        u = sampling.positive_uniform(key_data_of(name, key), full, chosen)
        return self.ppf(u).astype(chosen)


@library("structure", "order", "standard", quick=True)
def _plan(
    leaves: Any, x: Any, structure: Any, name: str, order: int, standard: bool
) -> Any:
    law = tree.unflatten(structure, leaves)
    if name == "power":
        return law._standard(order) if standard else law._raw(order)
    if x is None:
        return getattr(law, name)()
    return getattr(law, name)(*promote_inexact(name, x))


def _evaluate(law: Any, name: str, x: Any = None) -> Array:
    """Returns what a method gives: one plan for each kind of distribution."""
    leaves, structure = tree.flatten(law)
    found: Array = _plan(tuple(leaves), x, structure, name, 0, False)
    return found


def _powers(law: Any, order: int, standard: bool) -> Array:
    leaves, structure = tree.flatten(law)
    found: Array = _plan(tuple(leaves), None, structure, "power", order, standard)
    return found


def _require_law(name: str, what: str, law: Any) -> None:
    """Raises an error unless something is a continuous distribution, all given."""
    frozen = isinstance(law, Frozen) and isinstance(law.dist, Continuous)
    if not frozen and not isinstance(law, Made | rv_histogram):
        raise ArgumentError(
            f"{name}: {what} must be a continuous distribution with its parameters, "
            f"such as fxflow.scipy.stats.norm(0.0, 1.0), got {law!r}"
        )


def _shown(value: Any) -> str:
    return repr(value) if not is_arraylike(value) or np.ndim(value) else str(value)


# -- mixtures --------------------------------------------------------------------------


@register_pytree_node_class
class Mixture(Made):
    """A mixture: a variable of one of several distributions, chosen at random.

    It is a pytree of the distributions and the weights.

    Args:
      components: continuous distributions with their parameters.
      weights: the probability of each: non-negative numbers whose sum is 1; None
        means equal ones.

    Raises:
      ArgumentError: there are no distributions, one is not continuous, there is not one
        weight for each, or weights are known to be negative or not to add to 1.

    Example:
      >>> from fxflow.scipy import stats
      >>> law = stats.Mixture([stats.norm(-1.0), stats.norm(2.0)], weights=[0.25, 0.75])
      >>> law.cdf(0.0).round(4), float(law.mean())
      (Array(0.2274, dtype=float32), 1.25)

    Source: `scipy.stats.Mixture`.
    """

    def __init__(
        self,
        components: Sequence[Any],
        *,
        weights: Sequence[ArrayLike] | ArrayLike | None = None,
    ) -> None:
        if not isinstance(components, tuple | list) or not components:
            raise ArgumentError(
                f"Mixture: components must be a sequence of distributions, got "
                f"{components!r}"
            )
        for i, law in enumerate(components):
            _require_law("Mixture", f"components[{i}]", law)
        count = len(components)
        given: Any = [1 / count] * count if weights is None else weights
        if len(given) != count:
            raise ArgumentError(
                f"Mixture: weights must be {count} numbers, one for each component, "
                f"got {len(given)}"
            )
        parts = [given[i] for i in range(count)]
        if not any(isinstance(w, Tracer) for w in parts):
            known = np.array([float(w) for w in parts])
            if not (known >= 0).all() or abs(known.sum() - 1) > 1e-5:
                raise ArgumentError(
                    "Mixture: weights must not be negative and add to 1, got "
                    f"{known.tolist()}"
                )
        self.components: tuple[Any, ...] = tuple(components)
        self.weights: tuple[ArrayLike, ...] = tuple(parts)

    def __repr__(self) -> str:
        shown = ", ".join(map(_shown, self.weights))
        return f"Mixture({list(self.components)}, weights=[{shown}])"

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """Returns the distributions and the weights."""
        return (self.components, self.weights), None

    @classmethod
    def tree_unflatten(cls, _: None, children: Any) -> Mixture:
        """Returns a mixture of distributions with weights."""
        out = object.__new__(cls)
        out.components, out.weights = children
        return out

    def support(self) -> tuple[Array, Array]:
        """Returns the ends of the support: of all distributions together."""
        lows, highs = zip(*(law.support() for law in self.components), strict=True)
        low, high = lows[0], highs[0]
        for other, above in zip(lows[1:], highs[1:], strict=True):
            low, high = fnp.minimum(low, other), fnp.maximum(high, above)
        return low, high

    def _weighed(self, logs: list[Any]) -> Any:
        logs = list(fnp.broadcast_arrays(*logs))
        weights = fnp.broadcast_arrays(
            *logs, *promote_inexact("Mixture", *self.weights)
        )
        stacked = fnp.stack(logs, axis=-1)
        b = fnp.stack(weights[len(logs) :], axis=-1).astype(stacked.dtype)
        return logsumexp(stacked, axis=-1, b=b)

    def _logpdf(self, x: Any) -> Any:
        return self._weighed([law.logpdf(x) for law in self.components])

    def _logs(self, x: Any) -> tuple[Any, Any]:
        lower, upper = zip(*(_logs_of(law, x) for law in self.components), strict=True)
        # One of them may be rounded above 0.
        logs = (fnp.minimum(self._weighed(list(v)), 0) for v in (lower, upper))
        below, above = logs
        return below, above

    def _mean(self) -> Any:
        return sum(
            w * law.mean() for w, law in zip(self.weights, self.components, strict=True)
        )

    def _var(self) -> Any:
        middle = self._mean()
        return sum(
            w * (law.var() + (law.mean() - middle) ** 2)
            for w, law in zip(self.weights, self.components, strict=True)
        )

    def _mean_of(self, of: Callable[..., Any], *more: Any) -> Any:
        """Returns the sum of the means under each distribution."""
        total: Any = 0
        for w, law in zip(self.weights, self.components, strict=True):
            total = total + w * _mean_under(law, of, more)
        return total

    def _entropy(self) -> Any:
        def mean_of(law: Any) -> Any:
            leaves, structure = tree.flatten(self)
            wide = [fnp.expand_dims(a, -1) if fnp.ndim(a) else a for a in leaves]
            whole: Any = tree.unflatten(structure, wide)
            return _mean_under(law, lambda x: -whole._logpdf(x), ())

        return sum(
            w * mean_of(law)
            for w, law in zip(self.weights, self.components, strict=True)
        )


def _logs_of(law: Any, x: Any) -> tuple[Any, Any]:
    if isinstance(law, Made):
        return law._logs(x)
    return law.logcdf(x), law.logsf(x)


def _mean_under(law: Any, of: Callable[..., Any], more: Any) -> Any:
    """Returns the mean of a function of a variable of any distribution."""
    leaves, structure = tree.flatten(law)
    leaves = promote_inexact("mean", *leaves)
    made: Any = lambda shapes: tree.unflatten(structure, shapes)
    return expected(
        of,
        lambda u, *shapes: made(shapes).ppf(u),
        lambda u, *shapes: made(shapes).isf(u),
        leaves,
        more,
    )


# -- truncated distributions -----------------------------------------------------------


def _log_difference(a: Any, b: Any) -> Any:
    """Returns log(exp(a) - exp(b)); -inf where there is nothing."""
    some = b < a
    low = fnp.where(some & (b > -math.inf), b, a - 1)
    whole = a + log_rest(fnp.where(some, low - a, -1))
    found = fnp.where(b == -math.inf, a, whole)
    return fnp.where(some, found, -math.inf)


@register_pytree_node_class
class Truncated(Made):
    """A distribution between two numbers: what `truncate` returns.

    It is a pytree of the distribution and the numbers.

    Attributes:
      law: the distribution that is truncated.
      lb: the lower end.
      ub: the upper end.
    """

    def __init__(self, law: Any, lb: ArrayLike, ub: ArrayLike) -> None:
        self.law, self.lb, self.ub = law, lb, ub

    def __repr__(self) -> str:
        return f"truncate({self.law}, lb={_shown(self.lb)}, ub={_shown(self.ub)})"

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """Returns the distribution and the ends."""
        return (self.law, self.lb, self.ub), None

    @classmethod
    def tree_unflatten(cls, _: None, children: Any) -> Truncated:
        """Returns a truncated distribution."""
        return cls(*children)

    def support(self) -> tuple[Array, Array]:
        """Returns the ends of the support."""
        low, high = self.law.support()
        low, high, lb, ub = promote_inexact("truncate", low, high, self.lb, self.ub)
        # Ends beyond each other leave nothing.
        bad = lb >= ub
        low, high = fnp.maximum(low, lb), fnp.minimum(high, ub)
        return fnp.where(bad, math.nan, low), fnp.where(bad, math.nan, high)

    def _tails(self) -> Any:
        """Returns tails at both ends, the side that is smaller, and the mass."""
        lower, above = _logs_of(self.law, fnp.stack(self.support()))
        (below, under), (above, over) = lower, above
        upper = above < below
        mass = fnp.where(
            upper, _log_difference(above, over), _log_difference(under, below)
        )
        return below, above, under, over, upper, mass

    def _solved(self, q: Any, upper: bool) -> Any:
        below, above, under, over, _, mass = self._tails()
        share = lax.exp(mass)
        # From the end that the probability is measured from, by the smaller tail.
        if upper:
            low, high = lax.exp(under) - q * share, lax.exp(over) + q * share
            right = high <= 0.5
        else:
            low, high = lax.exp(below) + q * share, lax.exp(above) - q * share
            right = low > 0.5
        found = fnp.where(
            right,
            self.law.isf(fnp.where(right, high, 0.5)),
            self.law.ppf(fnp.where(right, 0.5, low)),
        )
        ends = self.support()
        found = fnp.where(share > 0, fnp.clip(found, *ends), math.nan)
        return fnp.where(ends[0] == ends[0], found, math.nan)

    def _logpdf(self, x: Any) -> Any:
        low, high = self.support()
        value = self.law.logpdf(x) - self._tails()[-1]
        value = fnp.where((x >= low) & (x <= high), value, -math.inf)
        return fnp.where((x == x) & (low == low), value, math.nan)

    def _logs(self, x: Any) -> tuple[Any, Any]:
        low, high = self.support()
        below, above, under, over, upper, mass = self._tails()
        inner, outer = _logs_of(self.law, x)
        first = fnp.where(
            upper, _log_difference(above, outer), _log_difference(inner, below)
        )
        second = fnp.where(
            upper, _log_difference(outer, over), _log_difference(under, inner)
        )
        first = fnp.where(x <= low, -math.inf, fnp.where(x >= high, 0, first - mass))
        second = fnp.where(x <= low, 0, fnp.where(x >= high, -math.inf, second - mass))
        known = (x == x) & (low == low)
        return tuple(  # type: ignore[return-value]
            fnp.where(known, fnp.minimum(v, 0), math.nan) for v in (first, second)
        )


def truncate(X: Any, lb: ArrayLike = -math.inf, ub: ArrayLike = math.inf) -> Truncated:
    """Returns a distribution on the condition that the variable is between two numbers.

    Tails keep their digits also where the numbers are far out in a tail themselves.

    Args:
      X: a continuous distribution with its parameters.
      lb: real array-like: the lower end.
      ub: real array-like: the upper end.

    Returns:
      A `Truncated`, with the methods of a frozen distribution.

    Raises:
      ArgumentError: `X` is not a continuous distribution, or an end is not an array.

    Special cases:
      nan where `lb` is not below `ub`; quantiles and what is made of them also where
      the probability between the numbers underflows.

    Example:
      >>> from fxflow.scipy import stats
      >>> law = stats.truncate(stats.norm(), 1.0, 3.0)
      >>> law.mean().round(4), law.ppf(0.5).round(4)
      (Array(1.51, dtype=float32), Array(1.4051, dtype=float32))

    Source: `scipy.stats.truncate`.
    """
    _require_law("truncate", "X", X)
    for what, end in (("lb", lb), ("ub", ub)):
        if not is_arraylike(end):
            raise not_an_array(end, f"truncate: {what} is")
    return Truncated(X, *(float(e) if type(e) is int else e for e in (lb, ub)))


# -- order statistics ------------------------------------------------------------------


@register_pytree_node_class
class OrderStatistic(Made):
    """The r-th of n variables in order: what `order_statistic` returns.

    It is a pytree of the distribution and the numbers.

    Attributes:
      law: the distribution of each variable.
      r: which of them in ascending order.
      n: how many there are.
    """

    def __init__(self, law: Any, r: ArrayLike, n: ArrayLike) -> None:
        self.law, self.r, self.n = law, r, n

    def __repr__(self) -> str:
        return f"order_statistic({self.law}, r={_shown(self.r)}, n={_shown(self.n)})"

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """Returns the distribution and the numbers."""
        return (self.law, self.r, self.n), None

    @classmethod
    def tree_unflatten(cls, _: None, children: Any) -> OrderStatistic:
        """Returns the distribution of an order statistic."""
        return cls(*children)

    def _sides(self) -> tuple[Any, Any]:
        """Returns r and n - r + 1, nan where there is no such element."""
        r, n = promote_inexact("order_statistic", self.r, self.n)
        known = (r >= 1) & (r <= n)
        return fnp.where(known, r, math.nan), fnp.where(known, n - r + 1, math.nan)

    def support(self) -> tuple[Array, Array]:
        """Returns the ends of the support: those of each variable."""
        low, high = self.law.support()
        first, _ = self._sides()
        low, high, first = promote_inexact("order_statistic", low, high, first)
        return low + 0 * first, high + 0 * first

    def _logpdf(self, x: Any) -> Any:
        first, second = self._sides()
        lower, upper = _logs_of(self.law, x)
        powers = [
            fnp.where(k == 1, 0, (k - 1) * fnp.where(k == 1, -1, v))
            for k, v in ((first, lower), (second, upper))
        ]
        return self.law.logpdf(x) + powers[0] + powers[1] - betaln(first, second)

    def _logs(self, x: Any) -> tuple[Any, Any]:
        first, second = self._sides()
        lower, upper = (lax.exp(v) for v in _logs_of(self.law, x))
        return beta.logcdf(lower, first, second), beta.logcdf(upper, second, first)

    def _solved(self, q: Any, upper: bool) -> Any:
        first, second = self._sides()
        # Probabilities of both tails of one variable, each with its own digits.
        find = (beta.isf, beta.ppf) if upper else (beta.ppf, beta.isf)
        lower, above = find[0](q, first, second), find[1](q, second, first)
        left = lower <= 0.5
        return fnp.where(
            left,
            self.law.ppf(fnp.where(left, lower, 0.5)),
            self.law.isf(fnp.where(left, 0.5, above)),
        )


def order_statistic(X: Any, /, *, r: ArrayLike, n: ArrayLike) -> OrderStatistic:
    """Returns the distribution of the r-th of n independent variables in order.

    Args:
      X: the continuous distribution of each, with its parameters.
      r: integer array-like, from 1, the least, to n, the greatest.
      n: integer array-like: how many variables there are.

    Returns:
      An `OrderStatistic`, with the methods of a frozen distribution.

    Raises:
      ArgumentError: `X` is not a continuous distribution, or `r` and `n` are known to
        be other numbers.

    Special cases:
      nan where `r` is not from 1 to `n`.

    Example:
      >>> from fxflow.scipy import stats
      >>> stats.order_statistic(stats.uniform(), r=2, n=3).mean().round(4)
      Array(0.5, dtype=float32)

    Source: `scipy.stats.order_statistic`.
    """
    _require_law("order_statistic", "X", X)
    for what, value in (("r", r), ("n", n)):
        if not is_arraylike(value):
            raise not_an_array(value, f"order_statistic: {what} is")
    if not any(isinstance(v, Tracer) for v in (r, n)):
        first, count = np.asarray(r), np.asarray(n)
        whole = (first == np.floor(first)) & (count == np.floor(count))
        if not (whole & (first >= 1) & (first <= count)).all():
            raise ArgumentError(
                "order_statistic: r and n must be integers with 1 ≤ r ≤ n, got "
                f"r={r!r} and n={n!r}"
            )
    return OrderStatistic(X, *(float(v) if type(v) is int else v for v in (r, n)))
