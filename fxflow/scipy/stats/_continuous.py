"""Continuous distributions: what follows from the formulas of a standard one."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError
from fxflow.lax.axes import integer
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.stats._domains import Domain
from fxflow.scipy.stats._fitting import fitted, require_sample, require_within
from fxflow.scipy.stats._inverse import inverse_of
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
from fxflow.scipy.stats._quadrature import expected, expected_between


class Continuous(Distribution[P]):
    """A continuous distribution with the functions of SciPy's.

    Args:
      name: of the distribution.
      summary: its docstring.
      parameters: a function whose signature names the shapes, `loc` and `scale`.
      support: its ends for the standard distribution, numbers or functions of shapes.
      logpdf: logarithm of the density at a point of the support and shapes.
      cdf, sf, logcdf, logsf: tails at points between the ends.
      logs: logcdf and logsf, where they are cheaper together.
      ppf, isf: quantiles of probabilities between 0 and 1.
      mean, var, skew, kurtosis, entropy: of shapes.
      symmetric: whether the density is an even function.
      closed: whether the density at a finite end is that of the formula, not 0.
      joint: where shape parameters go together.
      first: names of first operands that are not the usual ones, as JAX has them.
      fit: maximizes the likelihood where that has a closed form.
      also: domains of shape parameters with the name of a formula.
      **domains: of shape parameters, where they are not positive numbers.
    """

    def __init__(
        self,
        name: str,
        summary: str,
        parameters: Callable[P, None],
        *,
        support: tuple[Any, Any] = (-math.inf, math.inf),
        logpdf: Formula,
        pdf: Formula | None = None,
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
        fit: Formula | None = None,
        logs: Formula | None = None,
        symmetric: bool = False,
        closed: bool = True,
        joint: Formula | None = None,
        first: Mapping[str, str] | None = None,
        also: Mapping[str, Domain] | None = None,
        **domains: Domain,
    ) -> None:
        formulas = {
            "logpdf": logpdf, "pdf": pdf, "cdf": cdf, "sf": sf, "logcdf": logcdf,
            "logsf": logsf, "ppf": ppf, "isf": isf, "mean": mean, "var": var,
            "skew": skew, "kurtosis": kurtosis, "entropy": entropy, "logs": logs,
        }  # fmt: skip
        if symmetric:
            formulas["mean"] = mean or _zero
            formulas["skew"] = skew or _zero
        super().__init__(
            name,
            summary,
            parameters,
            support,
            formulas,
            {**domains, **(also or {})},
            joint,
            first,
        )
        self._symmetric, self._closed, self._fit = symmetric, closed, fit

    # -- densities and probabilities ---------------------------------------------------

    def _derived(self, name: str) -> Formula:
        """Returns a formula that follows from others."""
        mirrored = {"cdf": "sf", "logcdf": "logsf", "ppf": "isf"}
        mirrored |= {other: name for name, other in mirrored.items()}
        other = mirrored.get(name, "")
        if name == "pdf":
            return lambda z, *shapes: lax.exp(self.formula("logpdf")(z, *shapes))
        if self._symmetric and self.has(other):
            mirror, sign = self._formulas[other], -1 if name in ("ppf", "isf") else 1
            if sign < 0:
                return lambda q, *shapes: -mirror(q, *shapes)
            return lambda z, *shapes: mirror(-z, *shapes)
        if name in ("cdf", "sf"):
            if self.has(f"log{name}"):
                log = self._formulas[f"log{name}"]
                return lambda z, *shapes: lax.exp(log(z, *shapes))
            if not self.has(other):
                raise AssertionError(f"{self.name}: neither cdf nor sf is known")
            return lambda z, *shapes: 1 - self._formulas[other](z, *shapes)
        if name in ("logcdf", "logsf"):
            return self._log_tail(name.removeprefix("log"), other.removeprefix("log"))
        if name in ("ppf", "isf"):
            return self._inverse(upper=name == "isf")
        moments = {
            "mean": lambda z, m, v, *_: z,
            "var": lambda z, m, v, *_: (z - m) ** 2,
            "skew": lambda z, m, v, *_: ((z - m) / fnp.sqrt(v)) ** 3,
            "kurtosis": lambda z, m, v, *_: ((z - m) / fnp.sqrt(v)) ** 4 - 3,
            "entropy": lambda z, m, v, *shapes: -self.formula("logpdf")(z, *shapes),
        }
        needs = {"var": "m", "skew": "mv", "kurtosis": "mv"}.get(name, "")

        def averaged(*shapes: Any) -> Any:
            m = self.formula("mean")(*shapes) if "m" in needs else None
            v = self.formula("var")(*shapes) if "v" in needs else None
            value = self._expected(moments[name], shapes, m, v, *shapes)
            # There is none about a mean, or in units of a width, that is infinite.
            for base in (m, v):
                if base is not None:
                    value = fnp.where(abs(base) < math.inf, value, math.nan)
            return value

        return averaged

    def _log_tail(self, near: str, far: str) -> Formula:
        """Returns the logarithm of a tail: by the other one, where that is smaller."""
        one, two = self.formula(near), self.formula(far)

        def log(z: Any, *shapes: Any) -> Any:
            value = one(z, *shapes)
            large = value > 0.5
            rest = fnp.where(large, two(z, *shapes), 0)
            return fnp.where(
                large, lax.log1p(-rest), log_of(fnp.where(large, 1, value))
            )

        return log

    def _inverse(self, upper: bool) -> Formula:
        plain = (self.formula("cdf"), self.formula("sf"))
        logs = self._formulas.get("logs")
        if logs is None:
            below, above = self.formula("logcdf"), self.formula("logsf")
            logs = lambda z, *shapes: (below(z, *shapes), above(z, *shapes))
        center = None
        if self.has("mean", "var"):
            center = lambda *shapes: (
                self.formula("mean")(*shapes),
                fnp.sqrt(self.formula("var")(*shapes)),
            )
        pdf = self.formula("pdf")
        return inverse_of(logs, plain, pdf, self.bounds, upper, center)

    def _expected(self, of: Formula, shapes: Any, *more: Any) -> Any:
        """Returns the expectation of a function of a standard variable and `more`."""
        return expected(of, *self._inner_quantiles(), shapes, more)

    def _inner_quantiles(self) -> tuple[Formula, Formula]:
        """Returns quantiles that are not rounded to an end of the support."""

        def inner(name: str) -> Formula:
            quantile = self.formula(name)

            def found(q: Any, *shapes: Any) -> Any:
                info = fnp.finfo(q.dtype)
                eps, tiny = float(info.eps), float(info.tiny)
                low, high = self.bounds(list(shapes))
                low = fnp.where(abs(low) < math.inf, low + abs(low) * eps + tiny, low)
                high = fnp.where(
                    abs(high) < math.inf, high - abs(high) * eps - tiny, high
                )
                return fnp.clip(quantile(q, *shapes), low, high)

            return found

        return inner("ppf"), inner("isf")

    def _inside(self, g: Given) -> tuple[Any, Any, Any, Any]:
        """Returns z, a point of the support in its place, where it is at an end."""
        z = (g.first[0] - g.loc) / g.scale
        low, high = self.bounds(g.shapes)
        below, above = z <= low, z >= high
        apart = ~(below | above) & (z == z)
        inner = _middle(low, high)
        return z, fnp.where(apart, z, inner), below, above

    @method()
    def pdf(self, x: ArrayLike, *args: P.args, **kwargs: P.kwargs) -> Array:
        """Returns the probability density.

        Special cases:
          0 outside of the support.
        """
        return self._density("pdf", x, args)

    @method()
    def logpdf(self, x: ArrayLike, *args: P.args, **kwargs: P.kwargs) -> Array:
        """Returns the logarithm of the probability density.

        Special cases:
          -inf outside of the support.
        """
        return self._density("logpdf", x, args)

    def _density(self, name: str, x: Any, args: Any) -> Array:
        g = Given(self, name, (x,), args)
        z, y, below, above = self._inside(g)
        if self._closed:
            low, high = self.bounds(g.shapes)
            known = (z >= low) & (z <= high) & (abs(z) < math.inf)
            y = fnp.where(known, z, y)
        else:
            known = ~(below | above)
        if name == "pdf" and self.has("pdf"):
            value = self._formulas["pdf"](y, *g.shapes) / g.scale
            return g.result(fnp.where(known, value, 0), z == z)
        value = self.formula("logpdf")(y, *g.shapes) - lax.log(g.scale)
        value = fnp.where(known, value, -math.inf)
        return g.result(lax.exp(value) if name == "pdf" else value, z == z)

    @method()
    def cdf(self, x: ArrayLike, *args: P.args, **kwargs: P.kwargs) -> Array:
        """Returns the cumulative distribution function, P(X ≤ x)."""
        return self._probability("cdf", x, args, 0, 1)

    @method()
    def logcdf(self, x: ArrayLike, *args: P.args, **kwargs: P.kwargs) -> Array:
        """Returns the logarithm of the cumulative distribution function."""
        return self._probability("logcdf", x, args, -math.inf, 0)

    @method()
    def sf(self, x: ArrayLike, *args: P.args, **kwargs: P.kwargs) -> Array:
        """Returns the survival function, P(X > x)."""
        return self._probability("sf", x, args, 1, 0)

    @method()
    def logsf(self, x: ArrayLike, *args: P.args, **kwargs: P.kwargs) -> Array:
        """Returns the logarithm of the survival function."""
        return self._probability("logsf", x, args, 0, -math.inf)

    def _probability(
        self, name: str, x: Any, args: Any, least: float, most: float
    ) -> Array:
        g = Given(self, name, (x,), args)
        z, y, below, above = self._inside(g)
        value = self.formula(name)(y, *g.shapes)
        value = fnp.where(below, least, fnp.where(above, most, value))
        return g.result(value, z == z)

    # -- quantiles ---------------------------------------------------------------------

    @method()
    def ppf(self, q: ArrayLike, *args: P.args, **kwargs: P.kwargs) -> Array:
        """Returns the quantile function: the inverse of `cdf`.

        Special cases:
          nan outside of 0 … 1.
        """
        return self._quantile("ppf", q, args)

    @method()
    def isf(self, q: ArrayLike, *args: P.args, **kwargs: P.kwargs) -> Array:
        """Returns the inverse of the survival function.

        Special cases:
          nan outside of 0 … 1.
        """
        return self._quantile("isf", q, args)

    def _quantile(self, name: str, q: Any, args: Any) -> Array:
        g = Given(self, name, (q,), args)
        (q,) = g.first
        low, high = self.bounds(g.shapes)
        if name == "isf":
            low, high = high, low
        value = self.formula(name)(fnp.where((q > 0) & (q < 1), q, 0.5), *g.shapes)
        value = fnp.where(q == 0, low, fnp.where(q == 1, high, value))
        return g.result(g.loc + g.scale * value, (q >= 0) & (q <= 1))

    @method()
    def median(self, *args: P.args, **kwargs: P.kwargs) -> Array:
        """Returns the median."""
        g = Given(self, "median", (), args)
        half = lax.full_like(g.loc, 0.5)
        return g.result(g.loc + g.scale * self.formula("ppf")(half, *g.shapes))

    @method()
    def interval(
        self, confidence: ArrayLike, *args: P.args, **kwargs: P.kwargs
    ) -> tuple[Array, Array]:
        """Returns the interval around the median that has a given probability.

        Returns:
          The two ends, float arrays of the broadcast shape, with equal tails beyond.

        Special cases:
          nan where the confidence is not within 0 … 1.
        """
        g = Given(self, "interval", (confidence,), args)
        tail = (1 - g.first[0]) / 2
        return self._quantile("ppf", tail, args), self._quantile("isf", tail, args)

    @method()
    def support(self, *args: P.args, **kwargs: P.kwargs) -> tuple[Array, Array]:
        """Returns the ends of the support.

        Returns:
          Two float arrays of the broadcast shape.
        """
        g = Given(self, "support", (), args)

        def moved(end: Any) -> Any:
            # What is infinite stays where it is, and so its derivatives are 0.
            finite = abs(end) < math.inf
            return fnp.where(finite, g.loc + g.scale * fnp.where(finite, end, 0), end)

        low, high = (g.result(moved(end)) for end in self.bounds(g.shapes))
        return low, high

    # -- moments -----------------------------------------------------------------------

    @method()
    def mean(self, *args: P.args, **kwargs: P.kwargs) -> Array:
        """Returns the mean.

        Special cases:
          inf or nan where the integral diverges.
        """
        g = Given(self, "mean", (), args)
        return g.result(g.loc + g.scale * self.formula("mean")(*g.shapes))

    @method()
    def var(self, *args: P.args, **kwargs: P.kwargs) -> Array:
        """Returns the variance.

        Special cases:
          inf or nan where the integral diverges.
        """
        g = Given(self, "var", (), args)
        return g.result(g.scale * g.scale * self.formula("var")(*g.shapes))

    @method()
    def std(self, *args: P.args, **kwargs: P.kwargs) -> Array:
        """Returns the standard deviation.

        Special cases:
          inf or nan where the integral diverges.
        """
        g = Given(self, "std", (), args)
        return g.result(g.scale * fnp.sqrt(self.formula("var")(*g.shapes)))

    @method()
    def entropy(self, *args: P.args, **kwargs: P.kwargs) -> Array:
        """Returns the differential entropy, in nats."""
        g = Given(self, "entropy", (), args)
        return g.result(self.formula("entropy")(*g.shapes) + lax.log(g.scale))

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
        found = {
            "m": lambda: g.loc + g.scale * self.formula("mean")(*g.shapes),
            "v": lambda: g.scale * g.scale * self.formula("var")(*g.shapes),
            "s": lambda: self.formula("skew")(*g.shapes),
            "k": lambda: self.formula("kurtosis")(*g.shapes),
        }
        return tuple(g.result(found[letter]()) for letter in moments)

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
        return g.result(
            raw_moment(self, order, g.shapes, g.loc, g.scale, self._expected)
        )

    @method(compiled=False)
    def expect(
        self,
        func: Callable[[Any], Any],
        args: tuple[ArrayLike, ...] = (),
        loc: ArrayLike = 0,
        scale: ArrayLike = 1,
        lb: ArrayLike | None = None,
        ub: ArrayLike | None = None,
        conditional: bool = False,
    ) -> Array:
        """Returns the mean of a function of the variable.

        Integrates over the quantiles by a double-exponential rule: the function may
        grow or have singularities at the ends of the support, and should be smooth
        between them.

        Args:
          func: an elementwise function of a float array.
          args: the shape parameters.
          lb: real array-like: lower end of the integral; default: that of the support.
          ub: real array-like: upper end, likewise.
          conditional: whether to divide by the probability of `lb` … `ub`.

        Example:
          >>> from fxflow.scipy import stats
          >>> stats.norm.expect(lambda x: x**4).round(3)
          Array(3., dtype=float32)

        Source: `scipy.stats.{distribution}.{name}`; H. Takahasi and M. Mori 1974.
        """
        ends = [loc if end is None else end for end in (lb, ub)]
        g = Given(self, "expect", ends, (*args, loc, scale))
        low, high = ((end - g.loc) / g.scale for end in g.first)
        scaled = lambda z, loc, scale: func(loc + scale * z)
        if lb is None and ub is None:
            return g.result(self._expected(scaled, g.shapes, g.loc, g.scale))
        of: Any = self
        every = (*args, loc, scale)
        below = 0 * low if lb is None else of.cdf(g.first[0], *every)
        above = 0 * high if ub is None else of.sf(g.first[1], *every)
        value, mass = expected_between(
            scaled,
            *self._inner_quantiles(),
            g.shapes,
            (g.loc, g.scale),
            (below, above),
        )
        return g.result(value / mass if conditional else value)

    # -- samples -----------------------------------------------------------------------

    @method(literal=True)
    def nnlf(self, theta: Sequence[ArrayLike], x: ArrayLike) -> Array:
        """Returns the negative logarithm of the likelihood of a sample.

        Args:
          theta: sequence of numbers: the shapes, `loc` and `scale`; or a vector.
          x: real array-like: the sample.

        Returns:
          A float; inf where some of the sample is outside of the support.

        Source: `scipy.stats.{distribution}.{name}`; its Hessian is the observed
        information.
        """
        count = len(self.domains) + 2
        given = [theta[i] for i in range(count)]
        return -fnp.sum(self._density("logpdf", x, given))

    @method(literal=True, compiled=False)
    def fit(self, data: ArrayLike, *args: ArrayLike, **kwds: Any) -> tuple[Array, ...]:
        """Returns the maximum-likelihood estimates of the parameters.

        Args:
          data: real array-like: the sample, of any shape.
          *args: numbers: where the search for the shapes begins.
          **kwds: `loc` and `scale`, where it begins for these; `floc`, `fscale` and
            `f` before the name of a shape (or `fix_`, or `f0`, `f1`, … by its place):
            numbers to which they are fixed.

        Returns:
          The shapes, `loc` and `scale`: floats. They are differentiable functions of
          the sample and of what is fixed, by the likelihood equations.

        Raises:
          ArgumentError: an argument is not an array, there is no such argument, or
            all parameters are fixed; the sample is empty, not finite, or has numbers
            outside of the support that what is fixed leaves.

        Special cases:
          Where the sample is traced, as under `jit`, such a sample gives nan.
          Where the likelihood has no maximum, as that of some distributions when `loc`
          approaches the least of the sample, the result is a point on the way.

        Example:
          >>> from fxflow.scipy import stats
          >>> stats.expon.fit(np.array([1.0, 2.0, 6.0]), floc=0)
          (Array(0., dtype=float32), Array(3., dtype=float32))

        Source: `scipy.stats.{distribution}.{name}`.
        """
        require_sample(self.name, data)
        found, within = self._fitted(data, *args, **kwds)
        require_within(self.name, data, within, kwds)
        return tuple(fnp.where(within, value, math.nan) for value in found)

    @method(literal=True)
    def fit_loc_scale(self, data: ArrayLike, *args: ArrayLike) -> tuple[Array, Array]:
        """Returns `loc` and `scale` for which mean and variance are those of a sample.

        Args:
          data: real array-like: the sample, of any shape.
          *args: the shape parameters.

        Returns:
          `loc` and `scale`, floats.

        Raises:
          ArgumentError: there are more or fewer shapes.

        Special cases:
          0 and 1 in place of what is not finite, or of a scale that is not positive.

        Example:
          >>> from fxflow.scipy import stats
          >>> stats.expon.fit_loc_scale(np.array([1.0, 3.0]))
          (Array(1., dtype=float32), Array(1., dtype=float32))

        Source: `scipy.stats.{distribution}.{name}`.
        """
        name = f"{self.name}.fit_loc_scale"
        if len(args) != len(self.domains):
            raise ArgumentError(
                f"{name}: takes the shapes ({', '.join(self.domains)}), got {len(args)}"
            )
        x, *shapes = promote_inexact(name, data, *args)
        g = Given(self, "fit_loc_scale", (), (*shapes, 0.0, 1.0))
        m, v = (self.formula(kind)(*g.shapes) for kind in ("mean", "var"))
        scale = fnp.sqrt(fnp.var(x) / v)
        loc = fnp.mean(x) - scale * m
        loc = fnp.where(abs(loc) < math.inf, loc, 0)
        scale = fnp.where((scale > 0) & (scale < math.inf), scale, 1)
        return g.result(loc), g.result(scale)

    @functools.cached_property
    def _fitted(self) -> Callable[..., Any]:
        """Returns the function that fits: one plan when eager."""

        def mean_log(x: Any, *parameters: Any) -> Any:
            return fnp.mean(self._density("logpdf", x, parameters))

        @library()
        def run(data: Any, *args: Any, **kwds: Any) -> Any:
            return fitted(
                self.name,
                self.domains,
                self.bounds,
                self._closed,
                mean_log,
                self.formula("ppf"),
                self._fit,
                data,
                args,
                kwds,
            )

        return run


def _zero(*shapes: Any) -> Any:
    return 0.0 * shapes[0] if shapes else 0.0


def _middle(low: Any, high: Any) -> Any:
    """Returns a point between two bounds, of which any may be infinite."""
    if all(isinstance(end, int | float) for end in (low, high)):
        if low > -math.inf:
            return (low + high) / 2 if high < math.inf else low + 1.0
        return high - 1.0 if high < math.inf else 0.0
    near = fnp.where(abs(low) < math.inf, low, fnp.where(high < math.inf, high - 2, -1))
    far = fnp.where(abs(high) < math.inf, high, near + 2)
    return (near + far) / 2
