"""Distributions with their parameters: what `norm(loc, scale)` returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fxflow.core.arrays import Array, is_arraylike, not_an_array
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError
from fxflow.numpy._operands import ArrayLike, DTypeLike, ShapeLike, joint_shape
from fxflow.numpy._operands import promote_inexact as promoted

if TYPE_CHECKING:
    from fxflow.scipy.stats._protocol import Distribution


class Law:
    """What distributions with their parameters have in common.

    A kind of them has `_expected(func, lb, ub, conditional)`, where None stands for an
    end of the support, and `_drawn(key, shape, dtype)`.
    """

    def _expected(self, func: Any, lb: Any, ub: Any, conditional: bool) -> Any:
        raise AssertionError(f"{type(self).__name__} has no means")

    def _drawn(self, key: Any, shape: Any, dtype: Any) -> Any:
        raise AssertionError(f"{type(self).__name__} draws no numbers")

    def expect(
        self,
        func: Callable[[Any], Any],
        lb: ArrayLike | None = None,
        ub: ArrayLike | None = None,
        conditional: bool = False,
    ) -> Array:
        """Returns the mean of a function of the variable.

        Args:
          func: an elementwise function of a float array; smooth, of a continuous
            variable.
          lb: real array-like: where the integral or sum begins, if not with the
            support.
          ub: real array-like: where it ends.
          conditional: whether to divide by the probability of `lb` … `ub`.

        Returns:
          Float array of the parameters' shape.
        """
        found: Array = self._expected(func, lb, ub, conditional)
        return found

    def rvs(
        self,
        key: Array,
        shape: ShapeLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> Array:
        """Draws numbers of the distribution.

        Those of a continuous one are differentiable by the parameters.

        Args:
          key: a key of `fxflow.random`.
          shape: shape of the result; None means that of the parameters, () for a
            histogram.
          dtype: a float dtype; None means the default, that of the ends of bins for a
            histogram.

        Returns:
          Float array of that shape.
        """
        found: Array = self._drawn(key, shape, dtype)
        return found


@register_pytree_node_class
class Frozen(Law):
    """A distribution with its parameters, as `fxflow.scipy.stats.norm(1.0, 2.0)`.

    Its methods are the functions of the distribution without the parameters. It is a
    pytree whose leaves are the parameters, so it passes through `jit`, `vmap` and
    `grad`: the derivative with respect to a frozen distribution is one of the same kind
    that holds the derivatives with respect to its parameters.

    Attributes:
      dist: the distribution.
      args: its parameters, in the order of the signature.

    Example:
      >>> from fxflow.scipy import stats
      >>> law = stats.gamma(2.0, scale=3.0)
      >>> law.cdf(6.0).round(4)
      Array(0.594, dtype=float32)
      >>> float(fxflow.grad(lambda law: law.mean())(law).args[0])
      3.0

    Source: `scipy.stats.rv_frozen`.
    """

    def __init__(self, dist: Distribution[Any], *args: ArrayLike) -> None:
        # Integers would have no derivative; the functions make them floats anyway.
        args = tuple(float(arg) if type(arg) is int else arg for arg in args)
        self.dist: Distribution[Any] = dist
        self.args: tuple[ArrayLike, ...] = args

    def __repr__(self) -> str:
        named = zip(self.dist.parameters, self.args, strict=True)
        shown = ", ".join(f"{name}={value}" for name, value in named)
        return f"{self.dist.name}({shown})"

    def tree_flatten(self) -> tuple[tuple[Any, ...], Distribution[Any]]:
        """Returns the parameters, and the distribution."""
        return tuple(self.args), self.dist

    @classmethod
    def tree_unflatten(cls, dist: Distribution[Any], args: Any) -> Frozen:
        """Returns the distribution with parameters."""
        out = object.__new__(cls)
        out.dist, out.args = dist, tuple(args)
        return out

    def _call(self, name: str, *first: Any, **options: Any) -> Any:
        function = getattr(self.dist, name, None)
        if function is None:
            kind = "a density" if name.endswith("pdf") else "probabilities of numbers"
            raise ArgumentError(f"{self.dist.name} has no {name}: it has not {kind}")
        return function(*first, *self.args, **options)

    def pdf(self, x: ArrayLike) -> Array:
        """Returns the density; of continuous distributions only."""
        return self._call("pdf", x)  # type: ignore[no-any-return]

    def logpdf(self, x: ArrayLike) -> Array:
        """Returns the logarithm of the density; of continuous distributions only."""
        return self._call("logpdf", x)  # type: ignore[no-any-return]

    def pmf(self, k: ArrayLike) -> Array:
        """Returns the probability of a number; of discrete distributions only."""
        return self._call("pmf", k)  # type: ignore[no-any-return]

    def logpmf(self, k: ArrayLike) -> Array:
        """Returns the logarithm of `pmf`; of discrete distributions only."""
        return self._call("logpmf", k)  # type: ignore[no-any-return]

    def cdf(self, x: ArrayLike) -> Array:
        """Returns the cumulative distribution function, P(X ≤ x)."""
        return self._call("cdf", x)  # type: ignore[no-any-return]

    def logcdf(self, x: ArrayLike) -> Array:
        """Returns the logarithm of the cumulative distribution function."""
        return self._call("logcdf", x)  # type: ignore[no-any-return]

    def sf(self, x: ArrayLike) -> Array:
        """Returns the survival function, P(X > x)."""
        return self._call("sf", x)  # type: ignore[no-any-return]

    def logsf(self, x: ArrayLike) -> Array:
        """Returns the logarithm of the survival function."""
        return self._call("logsf", x)  # type: ignore[no-any-return]

    def ppf(self, q: ArrayLike) -> Array:
        """Returns the quantile function."""
        return self._call("ppf", q)  # type: ignore[no-any-return]

    def isf(self, q: ArrayLike) -> Array:
        """Returns the inverse of the survival function."""
        return self._call("isf", q)  # type: ignore[no-any-return]

    def median(self) -> Array:
        """Returns the median."""
        return self._call("median")  # type: ignore[no-any-return]

    def mean(self) -> Array:
        """Returns the mean."""
        return self._call("mean")  # type: ignore[no-any-return]

    def var(self) -> Array:
        """Returns the variance."""
        return self._call("var")  # type: ignore[no-any-return]

    def std(self) -> Array:
        """Returns the standard deviation."""
        return self._call("std")  # type: ignore[no-any-return]

    def entropy(self) -> Array:
        """Returns the entropy, in nats."""
        return self._call("entropy")  # type: ignore[no-any-return]

    def support(self) -> tuple[Array, Array]:
        """Returns the ends of the support."""
        return self._call("support")  # type: ignore[no-any-return]

    def stats(self, moments: str = "mv") -> tuple[Array, ...]:
        """Returns mean, variance, skewness, excess kurtosis: letters of "mvsk"."""
        return self._call("stats", moments=moments)  # type: ignore[no-any-return]

    def moment(self, order: int) -> Array:
        """Returns the mean of a power, about 0."""
        return self._call("moment", order)  # type: ignore[no-any-return]

    def interval(self, confidence: ArrayLike) -> tuple[Array, Array]:
        """Returns the interval around the median that has a given probability."""
        return self._call("interval", confidence)  # type: ignore[no-any-return]

    def _expected(self, func: Any, lb: Any, ub: Any, conditional: bool) -> Any:
        count = len(self.dist.domains)
        names = list(self.dist.parameters)[count:]
        moved = dict(zip(names, self.args[count:], strict=True))
        options = {"lb": lb, "ub": ub, "conditional": conditional}
        dist: Any = self.dist
        return dist.expect(func, self.args[:count], **moved, **options)

    def _drawn(self, key: Any, shape: Any, dtype: Any) -> Any:
        dist: Any = self.dist
        return dist.rvs(key, *self.args, shape=shape, dtype=dtype)


def freeze(dist: Distribution[Any], args: Any, kwargs: Any) -> Frozen:
    """Returns a distribution with its parameters, which are checked.

    Raises:
      TypeError: a parameter is missing, or there is none of a name.
      ArgumentError: a parameter is not an array.
      DtypeError: a parameter is complex.
      ShapeError: the parameters do not broadcast.
    """
    try:
        bound = dist.signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{dist.name}{_plain(dist)}: {error}") from None
    bound.apply_defaults()
    values = tuple(bound.arguments.values())
    for name, value in bound.arguments.items():
        if not is_arraylike(value):
            raise not_an_array(value, f"{dist.name}: {name} is")
    joint_shape(dist.name, [a.aval for a in promoted(dist.name, *values)])
    return Frozen(dist, *values)


def _plain(dist: Distribution[Any]) -> str:
    parameters = dist.signature.parameters.values()
    plain = [p.replace(annotation=p.empty) for p in parameters]
    return str(dist.signature.replace(parameters=plain, return_annotation=None)).split(
        " ->"
    )[0]
