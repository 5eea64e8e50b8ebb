"""Estimating a density: a normal kernel at each element of a sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import ArrayLike, convert, promote_inexact
from fxflow.numpy.linalg import cholesky
from fxflow.scipy.linalg.solving import cho_solve, solve_triangular
from fxflow.scipy.special.exponential_sums import logsumexp
from fxflow.scipy.special.normal import ndtr
from fxflow.scipy.stats._boxes import box_probability, kept_axes
from fxflow.scipy.stats._functions import LOG_2PI

_NAME = "gaussian_kde"


@register_pytree_node_class
class gaussian_kde:
    """The density of a sample, smoothed by normal kernels.

    It is a pytree, so it passes through `jit`, `grad` and `vmap`.

    Args:
      dataset: real array-like[d, n], or [n]: n elements of d numbers; of 16 bits they
        are taken as float32.
      bw_method: how wide the kernels are, relative to the sample: a number, "scott"
        (the default), "silverman", or a function of the estimate that returns a number.
      weights: non-negative real array-like[n]; None is equal ones.

    Attributes:
      dataset: float[d, n].
      weights: float[n], whose sum is 1.
      factor: how wide the kernels are, relative to the sample.
      covariance: float[d, d]: of each kernel.
      inv_cov: its inverse.
      neff: how many elements of equal weights there would be.

    Raises:
      ArgumentError: unknown method, or the sample has less than 2 elements.
      ShapeError: `weights` is not one number for each element.

    Example:
      >>> kde = gaussian_kde(np.array([0.0, 1.0, 3.0]))
      >>> kde(np.array([1.0])).round(3)
      Array([0.215], dtype=float32)

    Source: `scipy.stats.gaussian_kde`; D. Scott, Multivariate Density Estimation, 1992.
    """

    dataset: Array
    weights: Array
    factor: Array
    covariance: Array
    inv_cov: Array
    neff: Array

    def __init__(
        self,
        dataset: ArrayLike,
        bw_method: float | str | Array | Callable[[Any], Any] | None = None,
        weights: ArrayLike | None = None,
    ) -> None:
        (x,) = promote_inexact(_NAME, dataset)
        if dtypes.bits(x.aval.dtype) < 32:
            x = convert(x, dtypes.float32)
        x = fnp.atleast_2d(x)
        if x.aval.ndim != 2 or x.aval.shape[1] < 2 or dtypes.is_complex(x.aval.dtype):
            raise ArgumentError(
                f"{_NAME}: the dataset must be real, at least 2 elements of one or "
                f"more numbers: f32[d, n], got {x.aval}"
            )
        d, n = x.aval.shape
        if weights is None:
            w = fnp.full((n,), 1 / n, x.aval.dtype)
        else:
            x, w = promote_inexact(_NAME, x, weights)
            if w.aval.shape != (n,):
                raise ShapeError(f"{_NAME}: weights must be f32[{n}], got {w.aval}")
            w = w / fnp.sum(w)
        self.dataset, self.weights = x, w
        self.neff = 1 / fnp.sum(w * w)
        if bw_method is None or bw_method == "scott":
            factor: Any = self.scotts_factor()
        elif isinstance(bw_method, str):
            if bw_method != "silverman":
                raise ArgumentError(
                    f'{_NAME}: bw_method must be "scott", "silverman", a number or a '
                    f"function, got {bw_method!r}"
                )
            factor = self.silverman_factor()
        else:
            factor = bw_method(self) if callable(bw_method) else bw_method
        self.factor = fnp.asarray(factor, x.aval.dtype)
        apart = x - fnp.sum(x * w, axis=1, keepdims=True)
        spread = fnp.matmul(apart * w, apart.T) / (1 - fnp.sum(w * w))
        self.covariance = spread * fnp.square(self.factor)
        eye = fnp.eye(d, dtype=x.aval.dtype)
        inverse = cho_solve((cholesky(spread), True), eye)
        self.inv_cov = inverse / fnp.square(self.factor)

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """Returns the arrays."""
        names = "dataset", "weights", "factor", "covariance", "inv_cov", "neff"
        return tuple(getattr(self, name) for name in names), None

    @classmethod
    def tree_unflatten(cls, aux: None, children: Any) -> gaussian_kde:
        """Rebuilds an estimate from its arrays."""
        out = object.__new__(cls)
        out.dataset, out.weights, out.factor, *rest = children
        out.covariance, out.inv_cov, out.neff = rest
        return out

    @property
    def d(self) -> int:
        """The number of dimensions of an element."""
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        """The number of elements."""
        return self.dataset.shape[1]

    def covariance_factor(self) -> Array:
        """Returns how wide the kernels are, relative to the sample: a float array[]."""
        return self.factor

    def set_bandwidth(
        self, bw_method: float | str | Array | Callable[[Any], Any] | None = None
    ) -> gaussian_kde:
        """Returns an estimate of the same sample with kernels of another width.

        Args:
          bw_method: as in the constructor.

        Returns:
          Another `gaussian_kde`: this one is not changed.

        Raises:
          ArgumentError: unknown method.
        """
        return gaussian_kde(self.dataset, bw_method, self.weights)

    def marginal(self, dimensions: int | Sequence[int]) -> gaussian_kde:
        """Returns the estimate of some of the numbers of an element.

        Args:
          dimensions: an int or ints: which numbers, in their order.

        Returns:
          Another `gaussian_kde`, whose kernels are as wide.

        Raises:
          ArgumentError: a number is out of range or listed twice.
        """
        listed = dimensions if isinstance(dimensions, int) else tuple(dimensions)
        kept = kept_axes(f"{_NAME}.marginal", listed, self.d)
        return gaussian_kde(self.dataset[kept], self.factor, self.weights)

    def scotts_factor(self) -> Array:
        """Returns how wide the kernels are by Scott's rule, a float array[]."""
        return fnp.power(self.neff, -1 / (self.d + 4))

    def silverman_factor(self) -> Array:
        """Returns how wide the kernels are by Silverman's rule, a float array[]."""
        return fnp.power(self.neff * (self.d + 2) / 4, -1 / (self.d + 4))

    def evaluate(self, points: ArrayLike) -> Array:
        """Returns the density.

        Args:
          points: real array-like[d, m], or [m] if d is 1, or [d].

        Returns:
          Float array[m].

        Raises:
          ShapeError: points have another number of numbers.
        """
        return lax.exp(self.logpdf(points))

    def __call__(self, points: ArrayLike) -> Array:
        """Returns the density; see `evaluate`.

        Args:
          points: real array-like[d, m].

        Returns:
          Float array[m].
        """
        return self.evaluate(points)

    def pdf(self, x: ArrayLike) -> Array:
        """Returns the density; see `evaluate`.

        Args:
          x: real array-like[d, m].

        Returns:
          Float array[m].
        """
        return self.evaluate(x)

    def logpdf(self, x: ArrayLike) -> Array:
        """Returns the logarithm of the density; see `evaluate`.

        Args:
          x: real array-like[d, m].

        Returns:
          Float array[m].
        """
        points = self._points("logpdf", x)
        logs = _log_normal(points, self.dataset, self.covariance)
        out: Array = logsumexp(logs, axis=1, b=self.weights)
        return out

    def integrate_gaussian(self, mean: ArrayLike, cov: ArrayLike) -> Array:
        """Returns the integral of the product with a normal density.

        Args:
          mean: real array-like[d].
          cov: real array-like[d, d].

        Returns:
          Float array[].

        Raises:
          ShapeError: they have other shapes.
        """
        mean, cov = promote_inexact(f"{_NAME}.integrate_gaussian", mean, cov)
        mean, cov = fnp.atleast_1d(mean), fnp.atleast_2d(cov)
        if mean.aval.shape != (self.d,) or cov.aval.shape != (self.d, self.d):
            raise ShapeError(
                f"{_NAME}.integrate_gaussian: takes f32[{self.d}] and f32[{self.d}, "
                f"{self.d}], got {mean.aval} and {cov.aval}"
            )
        logs = _log_normal(mean[:, None], self.dataset, self.covariance + cov)
        return fnp.sum(lax.exp(logs[0]) * self.weights)

    def integrate_box_1d(self, low: ArrayLike, high: ArrayLike) -> Array:
        """Returns the probability of an interval.

        Args:
          low: real number.
          high: real number.

        Returns:
          Float array[].

        Raises:
          ShapeError: elements have more than one number.
        """
        if self.d != 1:
            raise ShapeError(
                f"{_NAME}.integrate_box_1d: an interval has one axis, elements of this "
                f"sample have {self.d}"
            )
        width = lax.sqrt(self.covariance[0, 0])
        ends = [ndtr((end - self.dataset[0]) / width) for end in (low, high)]
        return fnp.sum((ends[1] - ends[0]) * self.weights)

    def integrate_box(
        self, low_bounds: ArrayLike, high_bounds: ArrayLike, maxpts: int = 1024
    ) -> Array:
        """Returns the probability of a box.

        As `multivariate_normal.cdf` has it, for each kernel: a smooth function of the
        bounds and of the sample.

        Args:
          low_bounds: real array-like[d]: the lower corner; may be -inf.
          high_bounds: real array-like[d]: the upper corner; may be inf.
          maxpts: how many points of the lattice are used for each kernel.

        Returns:
          Float array[].

        Raises:
          ArgumentError: `maxpts` is not positive.
          ShapeError: the corners are not of d numbers.
        """
        name = f"{_NAME}.integrate_box"
        low, high, x = promote_inexact(name, low_bounds, high_bounds, self.dataset)
        corners = [fnp.atleast_1d(corner) for corner in (low, high)]
        if any(corner.aval.shape != (self.d,) for corner in corners):
            raise ShapeError(
                f"{name}: the corners must be f32[{self.d}], got {low.aval} and "
                f"{high.aval}"
            )
        below, above = (corner - x.T for corner in corners)
        chances = box_probability(below, above, self.covariance, None, maxpts)
        return fnp.sum(chances * self.weights)

    def integrate_kde(self, other: gaussian_kde) -> Array:
        """Returns the integral of the product with another estimate.

        Args:
          other: of elements of as many numbers.

        Returns:
          Float array[].

        Raises:
          ShapeError: it is of elements of another number of numbers.
        """
        if other.d != self.d:
            raise ShapeError(
                f"{_NAME}.integrate_kde: the samples have {self.d} and {other.d} axes"
            )
        both = self.covariance + other.covariance
        logs = _log_normal(self.dataset, other.dataset, both)
        return fnp.einsum("i,ij,j->", self.weights, lax.exp(logs), other.weights)

    def resample(self, key: Array, shape: Any = ()) -> Array:
        """Draws from the estimated density.

        Args:
          key: of the random numbers.
          shape: the shape of the sample, an int or a sequence of them.

        Returns:
          Float array[d, *shape].
        """
        choice, noise = random.split(key)
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        places = random.choice(choice, self.n, shape, p=self.weights)
        dtype = self.dataset.dtype
        zero = fnp.zeros(self.d, dtype)
        shifts = random.multivariate_normal(
            noise, zero, self.covariance, shape, dtype=dtype
        )
        return self.dataset[:, places] + fnp.moveaxis(shifts, -1, 0)

    def _points(self, name: str, points: Any) -> Any:
        x, _ = promote_inexact(f"{_NAME}.{name}", points, self.dataset)
        x = fnp.atleast_2d(x)
        if x.aval.ndim == 2 and x.aval.shape == (1, self.d) and self.d > 1:
            x = x.T
        if x.aval.ndim != 2 or x.aval.shape[0] != self.d:
            raise ShapeError(
                f"{_NAME}.{name}: points must be f32[{self.d}, m], got {x.aval}"
            )
        return x


def _log_normal(points: Any, centers: Any, cov: Any) -> Any:
    """Returns the logarithm of a normal density for each pair of point and center."""
    d = centers.shape[0]
    root = cholesky(cov)
    x, c = (solve_triangular(root, v, lower=True) for v in (points, centers))
    square = fnp.sum(fnp.square(x[:, :, None] - c[:, None, :]), axis=0)
    volume = fnp.sum(lax.log(fnp.diagonal(root)))
    return -0.5 * (square + d * LOG_2PI) - volume
