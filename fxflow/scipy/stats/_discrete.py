"""Discrete distributions: what follows from the formulas of one that is not moved."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.ir.arith import repeated
from fxflow.errors import ArgumentError
from fxflow.lax.axes import integer
from fxflow.numpy._operands import ArrayLike, joint_shape
from fxflow.scipy.special._derivatives import by_forward
from fxflow.scipy.special.normal import ndtri
from fxflow.scipy.stats._domains import Domain, is_whole
from fxflow.scipy.stats._protocol import (
    Distribution,
    Formula,
    Given,
    P,
    log_of,
    method,
    raw_moment,
    require_letters,
)

# No sum takes more terms.
_TERMS = 100_000
# Those of a tail that falls as a power, before the integral of the rest.
_BEFORE_TAIL = 4096


class Discrete(Distribution[P]):
    """A distribution of integers with the functions of SciPy's.

    Args:
      name: of the distribution.
      summary: its docstring.
      parameters: a function whose signature names the shapes and `loc`.
      support: its ends without `loc`, numbers or functions of shapes.
      logpmf: logarithm of the probability of an integer of the support.
      cdf, sf, logcdf, logsf: tails at integers of the support but the last.
      ppf, isf: quantiles of probabilities between 0 and 1.
      mean, var, skew, kurtosis, entropy: of shapes.
      raw: the mean of kⁿ, of n and shapes; infinite where there is none.
      factorial: in its place the mean of (k - low) … (k - low - n + 1), where `low`,
        a number, is the lower end of the support.
      heavy: whether the upper tail falls as a power, so that a sum needs an integral.
      joint: where shape parameters go together.
      **domains: of shape parameters, where they are not positive numbers.
    """

    def __init__(
        self,
        name: str,
        summary: str,
        parameters: Callable[P, None],
        *,
        support: tuple[Any, Any] = (0, math.inf),
        logpmf: Formula,
        cdf: Formula | None = None,
        sf: Formula | None = None,
        logcdf: Formula | None = None,
        logsf: Formula | None = None,
        ppf: Formula | None = None,
        isf: Formula | None = None,
        mean: Formula | None = None,
        var: Formula | None = None,
        skew: Formula | None = None,
        kurtosis: Formula | None = None,
        entropy: Formula | None = None,
        raw: Formula | None = None,
        factorial: Formula | None = None,
        heavy: bool = False,
        joint: Formula | None = None,
        **domains: Domain,
    ) -> None:
        formulas = {
            "logpmf": logpmf, "cdf": cdf, "sf": sf, "logcdf": logcdf, "logsf": logsf,
            "ppf": ppf, "isf": isf, "mean": mean, "var": var, "skew": skew,
            "kurtosis": kurtosis, "entropy": entropy, "raw": raw,
        }  # fmt: skip
        if factorial is not None:
            formulas["raw"] = raw_of_factorial(factorial, int(support[0]))
        self._heavy = heavy
        super().__init__(name, summary, parameters, support, formulas, domains, joint)

    def _derived(self, name: str) -> Formula:
        """Returns a formula that follows from others."""
        logpmf = self.formula("logpmf")
        if name in ("cdf", "sf"):
            other = {"cdf": "sf", "sf": "cdf"}[name]
            if self.has(f"log{name}"):
                log = self._formulas[f"log{name}"]
                return lambda k, *shapes: lax.exp(log(k, *shapes))
            if self.has(other):
                return lambda k, *shapes: 1 - self._formulas[other](k, *shapes)
            return summed(logpmf, self.bounds, upper=name == "sf")
        if name in ("logcdf", "logsf"):
            near = name.removeprefix("log")
            one, two = (
                self.formula(n) for n in (near, "sf" if near == "cdf" else "cdf")
            )

            def log(k: Any, *shapes: Any) -> Any:
                value = one(k, *shapes)
                large = value > 0.5
                rest = fnp.where(large, two(k, *shapes), 0)
                small = log_of(fnp.where(large, 1, value))
                return fnp.where(large, lax.log1p(-rest), small)

            return log
        if name in ("ppf", "isf"):
            return self._searched(upper=name == "isf")
        return self.averaged(name)

    def averaged(self, name: str) -> Formula:
        """Returns the formula of a moment, or of the entropy, as a sum."""
        logpmf = self.formula("logpmf")
        moments = {
            "mean": lambda k, log, m, v: k,
            "var": lambda k, log, m, v: (k - m) ** 2,
            "skew": lambda k, log, m, v: ((k - m) / fnp.sqrt(v)) ** 3,
            "kurtosis": lambda k, log, m, v: ((k - m) / fnp.sqrt(v)) ** 4 - 3,
            "entropy": lambda k, log, m, v: -log,
        }
        needs = {"mean": "", "var": "m", "skew": "mv", "kurtosis": "mv"}.get(name, "")

        def averaged(*shapes: Any) -> Any:
            m = self.formula("mean")(*shapes) if "m" in needs else 0.0
            v = self.formula("var")(*shapes) if "v" in needs else 1.0
            return self._expected(
                lambda k, m, v, *s: moments[name](k, logpmf(k, *s), m, v),
                shapes, m, v, *shapes, smooth=True,
            )  # fmt: skip

        return averaged

    def _expected(
        self, of: Formula, shapes: Any, *more: Any, smooth: bool = False
    ) -> Any:
        """Returns the sum of a function times the probabilities.

        From the mode, or the middle, outward on both sides: terms are small only where
        the probabilities are. The sum of a smooth function is nan where it would have
        to take too many terms.
        """
        low, high = self.bounds(shapes)
        start = self._start(shapes)
        arrays = [
            fnp.asarray(v, start.dtype) for v in (start, low, high, *shapes, *more)
        ]
        shape = joint_shape(self.name, [a.aval for a in arrays])
        start, low, high, *rest = (repeated(a, shape) for a in arrays)
        count = len(shapes)
        logpmf = self.formula("logpmf")

        def total(start: Any, low: Any, high: Any, *rest: Any) -> Any:
            shapes, more = rest[:count], rest[count:]
            tiny = 0.01 * float(fnp.finfo(start.dtype).eps)

            def term(k: Any) -> Any:
                known = (k >= low) & (k <= high)
                k = fnp.where(known, k, start)
                p = fnp.where(known, lax.exp(logpmf(k, *shapes)), 0)
                return fnp.where(p > 0, of(k, *more) * p, 0), known, p

            def going(state: Any) -> Any:
                n, _, active = state
                more = (n < _TERMS) & fnp.any(active)
                if smooth and self._heavy:
                    more = more & ((n < _BEFORE_TAIL) | fnp.any(start - n >= low))
                return more

            def step(state: Any) -> Any:
                n, value, active = state
                (a, in_a, p), (b, in_b, r) = term(start + n), term(start - n)
                a, b = fnp.where(active, a, 0), fnp.where(active, b, 0)
                value = value + a + b
                size = fnp.maximum(abs(a), abs(b)) * (n + 1)
                large = size > tiny * abs(value)
                wide = (p > tiny) | (r > tiny)
                active = active & (in_a | in_b) & (large | wide | (n < 8))
                return n + 1, value, active

            one = lax.full((), 1, start.dtype)
            first, known, _ = term(start)
            n, value, active = lax.while_loop(going, step, (one, first, known))
            if not smooth:
                return value
            if not self._heavy:
                return fnp.where(active, math.nan, value)
            masses: Any = lambda k, shapes, more: (
                of(k, *more) * lax.exp(logpmf(k, *shapes))
            )
            return value + tail_sum(masses, start + n, 0, shapes, more)

        made = by_forward(total, *(None,) * len(arrays))
        return made(start, low, high, *rest)

    def _start(self, shapes: Any) -> Any:
        """Returns an integer of the support near the middle."""
        low, high = self.bounds(shapes)
        dtype = fnp.result_type(*shapes) if shapes else fnp.float32
        middle = fnp.asarray(0.0, dtype)
        if self.has("mean"):
            middle = lax.stop_gradient(self.formula("mean")(*shapes))
        middle = fnp.where(abs(middle) < 1e6, middle, 0)
        return fnp.clip(lax.floor(fnp.asarray(middle, dtype)), low, high)

    def _guess(self, z: Any, shapes: Any) -> Any:
        """Returns about the quantile of the probability Φ(z), by Cornish and Fisher."""
        start = self._start(shapes)
        if not self.has("mean", "var"):
            return start
        if self.has("skew"):
            skew = self.formula("skew")(*shapes)
            z = z + fnp.where(abs(skew) < 10, skew, 0) * (z * z - 1) / 6
        at = lax.floor(self.formula("mean")(*shapes) + 0.5)
        at = at + lax.floor(fnp.sqrt(self.formula("var")(*shapes)) * z)
        low, high = self.bounds(shapes)
        return fnp.where(abs(at) < 1e9, fnp.clip(at, low, high), start)

    def _searched(self, upper: bool) -> Formula:
        """Returns the least integer whose tail is beyond a probability."""
        tail = self.formula("sf" if upper else "cdf")

        def search(q: Any, *shapes: Any) -> Any:
            low, high = self.bounds(list(shapes))
            start = self._guess(-ndtri(q) if upper else ndtri(q), shapes)
            arrays = [fnp.asarray(v, q.dtype) for v in (start, low, high)]
            full = joint_shape(self.name, [a.aval for a in (q, *arrays, *shapes)])
            start, low, high = (lax.stop_gradient(repeated(a, full)) for a in arrays)
            # Quantiles are steps of every parameter.
            goal, *fixed = (lax.stop_gradient(repeated(a, full)) for a in (q, *shapes))

            def enough(k: Any) -> tuple[Any, Any]:
                value = tail(fnp.clip(k, low, high - 1), *fixed)
                there = value <= goal if upper else value >= goal
                unknown = value != value
                return (there & (k >= low)) | (k >= high) | unknown, unknown

            # Doubling steps from the middle find an interval, bisection the integer.
            def going(state: Any) -> Any:
                n, left, right, *_ = state
                return (n < 200) & fnp.any(right - left > 1)

            def step(state: Any) -> Any:
                n, left, right, k, size, lost = state
                there, unknown = enough(k)
                left = fnp.where(there, left, fnp.maximum(left, k))
                right = fnp.where(there, fnp.minimum(right, k), right)
                middle = lax.floor(0.5 * (left + right))
                up, down = right == math.inf, left == -math.inf
                k = fnp.where(up, left + size, fnp.where(down, right - size, middle))
                return n + 1, left, right, k, 2 * size, lost | unknown

            first = fnp.clip(start, low, high)
            size, lost = lax.full_like(first, 1), first != first
            state = (fnp.int32(0), low - 1, high, first, size, lost)
            *_, right, _, _, lost = lax.while_loop(going, step, state)
            return fnp.where(lost, math.nan, right)

        return search

    # -- probabilities -----------------------------------------------------------------

    @method()
    def pmf(self, k: ArrayLike, *args: P.args, **kwargs: P.kwargs) -> Array:
        """Returns the probability of a number.

        Special cases:
          0 outside of the support, and between integers.
        """
        return self._mass("pmf", k, args)

    @method()
    def logpmf(self, k: ArrayLike, *args: P.args, **kwargs: P.kwargs) -> Array:
        """Returns the logarithm of the probability of a number.

        Special cases:
          -inf outside of the support, and between integers.
        """
        return self._mass("logpmf", k, args)

    def _mass(self, name: str, k: Any, args: Any) -> Array:
        g = Given(self, name, (k,), args)
        n = g.first[0] - g.loc
        low, high = self.bounds(g.shapes)
        known = (n >= low) & (n <= high) & is_whole(n) & (abs(n) < math.inf)
        inner = fnp.where(low > -math.inf, low, fnp.where(high < math.inf, high, 0))
        value = self.formula("logpmf")(fnp.where(known, n, inner), *g.shapes)
        value = fnp.where(known, value, -math.inf)
        return g.result(lax.exp(value) if name == "pmf" else value, n == n)

    @method()
    def cdf(self, k: ArrayLike, *args: P.args, **kwargs: P.kwargs) -> Array:
        """Returns the cumulative distribution function, P(X ≤ k)."""
        return self._probability("cdf", k, args, 0, 1)

    @method()
    def logcdf(self, k: ArrayLike, *args: P.args, **kwargs: P.kwargs) -> Array:
        """Returns the logarithm of the cumulative distribution function."""
        return self._probability("logcdf", k, args, -math.inf, 0)

    @method()
    def sf(self, k: ArrayLike, *args: P.args, **kwargs: P.kwargs) -> Array:
        """Returns the survival function, P(X > k)."""
        return self._probability("sf", k, args, 1, 0)

    @method()
    def logsf(self, k: ArrayLike, *args: P.args, **kwargs: P.kwargs) -> Array:
        """Returns the logarithm of the survival function."""
        return self._probability("logsf", k, args, 0, -math.inf)

    def _probability(
        self, name: str, k: Any, args: Any, least: float, most: float
    ) -> Array:
        g = Given(self, name, (k,), args)
        n = lax.floor(g.first[0] - g.loc)
        low, high = self.bounds(g.shapes)
        below, above = n < low, n >= high
        inner = fnp.where(low > -math.inf, low, fnp.where(high < math.inf, high - 1, 0))
        known = ~(below | above) & (n == n)
        value = self.formula(name)(fnp.where(known, n, inner), *g.shapes)
        value = fnp.where(below, least, fnp.where(above, most, value))
        return g.result(value, n == n)

    # -- quantiles ---------------------------------------------------------------------

    @method()
    def ppf(self, q: ArrayLike, *args: P.args, **kwargs: P.kwargs) -> Array:
        """Returns the quantile function: the least number whose `cdf` is at least `q`.

        Special cases:
          0 → the number before the support; nan outside of 0 … 1.
        """
        return self._quantile("ppf", q, args)

    @method()
    def isf(self, q: ArrayLike, *args: P.args, **kwargs: P.kwargs) -> Array:
        """Returns the least number whose `sf` is at most `q`: the inverse of `sf`.

        Special cases:
          1 → the number before the support; nan outside of 0 … 1.
        """
        return self._quantile("isf", q, args)

    def _quantile(self, name: str, q: Any, args: Any) -> Array:
        g = Given(self, name, (q,), args)
        (q,) = g.first
        low, high = self.bounds(g.shapes)
        ends = (high, low - 1) if name == "isf" else (low - 1, high)
        value = self.formula(name)(fnp.where((q > 0) & (q < 1), q, 0.5), *g.shapes)
        value = fnp.where(q == 0, ends[0], fnp.where(q == 1, ends[1], value))
        return g.result(g.loc + value, (q >= 0) & (q <= 1))

    @method()
    def median(self, *args: P.args, **kwargs: P.kwargs) -> Array:
        """Returns the median."""
        g = Given(self, "median", (), args)
        half = lax.full_like(g.loc, 0.5)
        return g.result(g.loc + self.formula("ppf")(half, *g.shapes))

    @method()
    def interval(
        self, confidence: ArrayLike, *args: P.args, **kwargs: P.kwargs
    ) -> tuple[Array, Array]:
        """Returns the interval around the median that has a given probability.

        Returns:
          The two ends, float arrays of the broadcast shape.

        Special cases:
          nan where the confidence is not within 0 … 1.
        """
        g = Given(self, "interval", (confidence,), args)
        tail = (1 - g.first[0]) / 2
        return self._quantile("ppf", tail, args), self._quantile("ppf", 1 - tail, args)

    @method()
    def support(self, *args: P.args, **kwargs: P.kwargs) -> tuple[Array, Array]:
        """Returns the ends of the support.

        Returns:
          Two float arrays of the broadcast shape.
        """
        g = Given(self, "support", (), args)
        low, high = self.bounds(g.shapes)
        return g.result(g.loc + low), g.result(g.loc + high)

    # -- moments -----------------------------------------------------------------------

    @method()
    def mean(self, *args: P.args, **kwargs: P.kwargs) -> Array:
        """Returns the mean."""
        g = Given(self, "mean", (), args)
        return g.result(g.loc + self.formula("mean")(*g.shapes))

    @method()
    def var(self, *args: P.args, **kwargs: P.kwargs) -> Array:
        """Returns the variance."""
        g = Given(self, "var", (), args)
        return g.result(self.formula("var")(*g.shapes))

    @method()
    def std(self, *args: P.args, **kwargs: P.kwargs) -> Array:
        """Returns the standard deviation."""
        g = Given(self, "std", (), args)
        return g.result(fnp.sqrt(self.formula("var")(*g.shapes)))

    @method()
    def entropy(self, *args: P.args, **kwargs: P.kwargs) -> Array:
        """Returns the entropy, in nats."""
        g = Given(self, "entropy", (), args)
        return g.result(self.formula("entropy")(*g.shapes))

    @method("moments")
    def stats(
        self, *args: ArrayLike, moments: str = "mv", **kwargs: ArrayLike
    ) -> tuple[Array, ...]:
        """Returns some of mean, variance, skewness and excess kurtosis.

        Args:
          moments: letters of "mvsk".

        Returns:
          A tuple of float arrays of the broadcast shape, in the order of the letters.

        Raises:
          ArgumentError: an argument is not an array, or a letter is another one.
        """
        require_letters(f"{self.name}.stats", moments)
        g = Given(self, "stats", (), args)
        names = {"m": "mean", "v": "var", "s": "skew", "k": "kurtosis"}
        found = [self.formula(names[letter])(*g.shapes) for letter in moments]
        return tuple(
            g.result(g.loc + value if letter == "m" else value)
            for letter, value in zip(moments, found, strict=True)
        )

    @method("order")
    def moment(self, order: int, *args: P.args, **kwargs: P.kwargs) -> Array:
        """Returns the mean of a power, about 0.

        Args:
          order: a positive integer: the power.

        Raises:
          ArgumentError: an argument is not an array, or `order` is not positive.
        """
        order = integer(f"{self.name}.moment", "order", order)
        if order < 1:
            raise ArgumentError(
                f"{self.name}.moment: order must be positive, got {order}"
            )
        g = Given(self, "moment", (), args)
        one = lax.full_like(g.loc, 1)
        return g.result(raw_moment(self, order, g.shapes, g.loc, one, self._expected))

    @method(compiled=False)
    def expect(
        self,
        func: Callable[[Any], Any],
        args: tuple[ArrayLike, ...] = (),
        loc: ArrayLike = 0,
        lb: ArrayLike | None = None,
        ub: ArrayLike | None = None,
        conditional: bool = False,
    ) -> Array:
        """Returns the mean of a function of the variable.

        It is a sum of at most 200 000 terms, from the middle outward: of a tail that
        falls slowly the rest is left out.

        Args:
          func: an elementwise function of a float array.
          args: the shape parameters.
          lb: real array-like: where the sum begins, if not with the support.
          ub: real array-like: upper end, likewise.
          conditional: whether to divide by the probability of `lb` … `ub`.

        Source: `scipy.stats.{distribution}.{name}`.
        """
        ends = [loc if end is None else end for end in (lb, ub)]
        g = Given(self, "expect", ends, (*args, loc))
        low = -math.inf + 0 * g.loc if lb is None else g.first[0] - g.loc
        high = math.inf + 0 * g.loc if ub is None else g.first[1] - g.loc
        cut: Any = lambda k, value, low, high: fnp.where(
            (k >= low) & (k <= high), value, 0
        )
        value = self._expected(
            lambda k, loc, low, high: cut(k, func(loc + k), low, high),
            g.shapes, g.loc, low, high,
        )  # fmt: skip
        if not conditional:
            return g.result(value)
        mass = self._expected(
            lambda k, low, high: cut(k, 1.0 + 0 * k, low, high), g.shapes, low, high
        )
        return g.result(value / mass)

    @method(literal=True)
    def nnlf(self, theta: Sequence[ArrayLike], x: ArrayLike) -> Array:
        """Returns the negative logarithm of the likelihood of a sample.

        Args:
          theta: sequence of numbers: the shapes and `loc`; or a vector.
          x: real array-like: the sample.

        Returns:
          A float; inf where some of the sample is outside of the support.

        Source: `scipy.stats.{distribution}.{name}`.
        """
        given = [theta[i] for i in range(len(self.domains) + 1)]
        return -fnp.sum(self._mass("logpmf", x, given))


def raw_of_factorial(factorial: Formula, low: int) -> Formula:
    """Returns the means of kⁿ, of those of (k - low) … (k - low - n + 1).

    By Stirling numbers of the second kind, moved by `low`, which is 0 or 1.
    """

    def raw(n: int, *shapes: Any) -> Any:
        row = [1]
        for size in range(1, n + 1):
            row = [
                (row[r - 1] if r else 0) + (r + low) * (row[r] if r < size else 0)
                for r in range(size + 1)
            ]
        value: Any = row[0]
        for r in range(1, n + 1):
            value = value + row[r] * factorial(r, *shapes)
        return value

    return raw


def tail_sum(masses: Formula, first: Any, terms: int, shapes: Any, more: Any) -> Any:
    """Returns a sum from an integer on, of what falls as a power of it.

    It is some terms, and the integral from half a step after them with the first
    correction of the Euler-Maclaurin formula for midpoints; the next one is smaller by
    the square of the number.

    Args:
      masses: of numbers, `shapes` and `more`; smooth.
      first: where the sum begins; the integral begins at a large number.
      terms: how many terms come before the integral.
      shapes: arrays, of the shape of `first`.
      more: likewise.
    """
    dtype = first.dtype
    t = np.arange(-3.9, 6.0 if dtypes.bits(dtype) == 64 else 4.3, 0.06)
    away = np.exp(0.5 * math.pi * np.sinh(t))
    weight = away * 0.5 * math.pi * np.cosh(t) * 0.06
    step = 1e-3
    # One loop over points first + steps + (relative to the lower end of the integral),
    # whose weights are plain, times that end, or divided by it.
    points = [
        *((j, 0.0, 1.0, 0.0, 0.0) for j in range(terms)),
        *((terms - 0.5, a, 0.0, w, 0.0) for a, w in zip(away, weight, strict=True)),
        *((terms - 0.5, s * step, 0.0, 0.0, s / (48 * step)) for s in (1, -1)),
    ]
    low = first + (terms - 0.5)

    def add(total: Any, rule: Any) -> tuple[Any, None]:
        steps, away, plain, times, over = rule
        value = masses(first + steps + low * away, shapes, more)
        # Where a probability underflows a logarithm of it may be infinite.
        value = fnp.where(abs(value) < math.inf, value, 0)
        return total + (plain + times * low + over / low) * value, None

    rules = tuple(fnp.asarray(column, dtype) for column in np.transpose(points))
    total, _ = lax.scan(add, lax.full_like(first, 0), rules)
    return total


def summed(logpmf: Formula, bounds: Any, upper: bool) -> Formula:
    """Returns a tail as a sum of probabilities, from the inner end outward.

    It is nan where the sum would have to take too many terms.

    Args:
      logpmf: of integers and shapes.
      bounds: the ends of the support, of shapes.
      upper: which tail.
    """

    def total(k: Any, low: Any, high: Any, *shapes: Any) -> Any:
        tiny = 0.1 * float(fnp.finfo(k.dtype).eps)
        step_of = 1.0 if upper else -1.0
        first = k + 1 if upper else k

        def term(n: Any) -> Any:
            at = first + step_of * n
            known = (at >= low) & (at <= high)
            p = lax.exp(logpmf(fnp.where(known, at, k), *shapes))
            return fnp.where(known, p, 0), known

        def going(state: Any) -> Any:
            n, *_, active = state
            return (n < _TERMS) & fnp.any(active)

        def step(state: Any) -> Any:
            n, value, last, active = state
            new, known = term(n)
            value = fnp.where(active, value + new, value)
            # Terms that still grow are followed by larger ones.
            more = known & ((new > tiny * value) | (new >= last))
            return n + 1, value, new, active & more

        zero = lax.full((), 0, k.dtype)
        none = lax.full_like(k, 0)
        state = lax.while_loop(going, step, (zero, none, none, k == k))
        return fnp.where(state[3], math.nan, state[1])

    def tail(k: Any, *shapes: Any) -> Any:
        low, high = (fnp.asarray(b, k.dtype) for b in bounds(shapes))
        arrays = [k, low, high, *shapes]
        shape = joint_shape("cdf", [a.aval for a in arrays])
        made = by_forward(total, *(None,) * len(arrays))
        return made(*(repeated(a, shape) for a in arrays))

    return tail
