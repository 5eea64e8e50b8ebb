"""Vector quantization: `fxflow.scipy.cluster.vq`."""

from __future__ import annotations

import warnings
from typing import Any

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.boundary import public as _public
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.kernels.gallery.nearest import nearest
from fxflow.lax.axes import natural
from fxflow.numpy._operands import ArrayLike, convert, promote_inexact
from fxflow.transforms.vmap import vmap

__all__ = ["kmeans", "kmeans2", "vq", "whiten"]

#: Lengths of vectors for which products with all codes are faster than differences;
#: SciPy's bound, too.
_FEATURES = 5


@library("check_finite")
def vq(
    obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True
) -> tuple[Array, Array]:
    """Returns the nearest code of each observation, and how far it is.

    Args:
      obs: real array-like[m, d], or [m] of numbers.
      code_book: real array-like[k, d], or [k].
      check_finite: has no effect.

    Returns:
      int32[m], the first of equally near codes, and float[m], the distances. With 5
      features or more, codes are compared by products, which rounding errors may
      change for codes that are almost equally near.

    Raises:
      ShapeError: they are not vectors of one length, or there is no code.

    Special cases:
      The derivative of a distance of 0 is 0.

    Example:
      >>> vq(np.array([0.0, 4.0, 9.0]), np.array([0.0, 10.0]))
      (Array([0, 0, 1], dtype=int32), Array([0., 4., 1.], dtype=float32))

    Source: `scipy.cluster.vq.vq`.
    """
    x, codes = promote_inexact("vq", obs, code_book)
    dims = x.aval.ndim, codes.aval.ndim
    fits = dims in ((1, 1), (2, 2)) and x.aval.shape[1:] == codes.aval.shape[1:]
    if not fits or not codes.aval.shape[0]:
        raise ShapeError(
            "vq: takes observations [m, d] and at least one code [k, d], got "
            f"{x.aval} and {codes.aval}"
        )
    if x.aval.ndim == 1:
        x, codes = x[:, None], codes[:, None]
    if codes.aval.shape[1] < _FEATURES:
        apart = lax.square(x[:, None] - codes)
        found = convert(fnp.argmin(fnp.sum(apart, axis=-1), axis=-1), dtypes.int32)
    else:
        found = nearest(lax.stop_gradient(x), lax.stop_gradient(codes))
    square = fnp.sum(lax.square(x - codes[found]), axis=-1)
    away = square > 0
    distance = fnp.where(away, lax.sqrt(fnp.where(away, square, 1)), square)
    return found, distance


@library("check_finite")
def whiten(obs: ArrayLike, check_finite: bool = True) -> Array:
    """Divides each feature by its standard deviation.

    Args:
      obs: real array-like[m, d].
      check_finite: has no effect.

    Returns:
      Float array[m, d]; features that do not vary stay as they are.

    Raises:
      ShapeError: they are not vectors.

    Example:
      >>> whiten(np.array([[0.0, 5.0], [4.0, 5.0]]))
      Array([[0., 5.],
             [2., 5.]], dtype=float32)

    Source: `scipy.cluster.vq.whiten`.
    """
    (x,) = promote_inexact("whiten", obs)
    if x.aval.ndim not in (1, 2):
        raise ShapeError(f"whiten: obs must be vectors [m, d], got {x.aval}")
    square = fnp.var(x, 0)
    away = square > 0
    return x / fnp.where(away, fnp.sqrt(fnp.where(away, square, 1)), 1)


_STARTS = ("random", "points", "++", "matrix")


def _require_observations(name: str, obs: Any) -> tuple[Array, bool]:
    """Returns observations as rows, and whether they were numbers."""
    (x,) = promote_inexact(name, obs)
    if x.ndim not in (1, 2) or not x.size:
        raise ShapeError(f"{name}: observations must be [m, d], got {x.aval}")
    return (x[:, None], True) if x.ndim == 1 else (x, False)


def _started(name: str, x: Array, k: int, start: str, key: Any) -> Array:
    """Returns the first k codes."""
    n, d = x.shape
    if key is None:
        raise ArgumentError(f"{name}: codes are drawn at random: give key")
    if start == "points":
        return x[random.choice(key, n, (k,), replace=False)]
    if start == "random":
        # A normal distribution of the observations' mean and covariance.
        centered = x - fnp.mean(x, 0)
        draws = random.normal(key, (k, min(n, d)), x.dtype)
        if d == 1:
            return fnp.mean(x, 0) + draws * fnp.std(x, ddof=1)
        _, s, v = fnp.linalg.svd(centered, full_matrices=False)
        root = s[:, None] * v / fnp.sqrt(fnp.asarray(max(n - 1, 1), x.dtype))
        return fnp.mean(x, 0) + fnp.matmul(draws, root, precision="highest")

    def add(carry: tuple[Array, Array], item: tuple[Any, Any]) -> Any:
        least, codes = carry
        i, one = item
        weights = fnp.where(fnp.isinf(least), 1, least)
        at = random.categorical(one, fnp.log(weights))
        code = x[at]
        away = fnp.sum(lax.square(x - code), 1)
        return (fnp.minimum(least, away), codes.at[i].set(code)), None

    # The next code is drawn with the squares of the distances from the nearest one.
    first = (fnp.full(n, fnp.inf, x.dtype), fnp.zeros((k, d), x.dtype))
    keys = random.split(key, k)
    codes: Array = lax.scan(add, first, (fnp.arange(k), keys))[0][1]
    return codes


@library()
def _moved(x: Array, codes: Array) -> tuple[Array, Array, Array]:
    """Returns the means of each code's observations, their labels and distances."""
    labels, far = vq(x, codes)
    k = codes.aval.shape[0]
    sums = fnp.zeros_like(codes).at[labels].add(x)
    counts = fnp.zeros(k, x.aval.dtype).at[labels].add(1)
    some = counts > 0
    means = sums / fnp.where(some, counts, 1)[:, None]
    return fnp.where(some[:, None], means, codes), labels, far


def _has_none(labels: Array, k: int) -> Array:
    """Returns whether a code is the label of no observation."""
    return ~fnp.all(fnp.zeros(k, bool).at[labels].set(True))


def _report_missing(name: str, lost: Array, missing: str) -> None:
    """Warns of codes without observations, or raises an error."""
    what = f"{name}: a code has no observations: choose other first codes, or fewer"
    if isinstance(lost, Tracer):
        if missing == "raise":
            raise ConcretizationError(
                f'{name}: with missing="raise", whether a code has observations must '
                "be known, but data is traced: leave out missing, or call it outside "
                "of jit and grad"
            )
    elif bool(lost):
        if missing == "raise":
            raise ArgumentError(what)
        warnings.warn(what, stacklevel=3)


def kmeans2(
    data: ArrayLike,
    k: Any,
    iter: int = 10,
    thresh: float = 1e-5,
    minit: str = "random",
    missing: str = "warn",
    check_finite: bool = True,
    *,
    key: Any = None,
) -> tuple[Array, Array]:
    """Finds codes that are the means of the observations nearest to them.

    It is differentiable in the observations: the labels count as constants.

    Args:
      data: real array-like[m, d], or [m] of numbers.
      k: how many codes, or with minit="matrix" the first codes, array-like[k, d].
      iter: how often codes are moved to the means of their observations.
      minit: the first codes: "random", drawn from a normal distribution of the
        observations' mean and covariance; "points", observations; "++", observations
        far from one another; "matrix", given as `k`.
      thresh: has no effect, in SciPy neither.
      missing: what happens when a code has no observations: "warn", a warning where
        the observations are known, none where they are traced; or "raise", an error.
      check_finite: has no effect.
      key: for the first codes.

    Returns:
      The codes, float[k, d], and the label of each observation, int32[m]. A code
      without observations stays where it is.

    Raises:
      ArgumentError: there is no such `minit` or `missing`, `k` or `iter` is not
        positive, the key is missing, or with missing="raise" a code has no
        observations.
      ConcretizationError: the observations are traced and missing="raise".
      ShapeError: the observations or codes have the wrong shape.

    Example:
      >>> x = np.array([0.0, 1.0, 9.0, 10.0])
      >>> codes, labels = kmeans2(x, np.array([0.0, 5.0]), minit="matrix")
      >>> codes.tolist(), labels.tolist()
      ([0.5, 9.5], [0, 0, 1, 1])

    Source: `scipy.cluster.vq.kmeans2`, with a key. D. Arthur and S. Vassilvitskii,
    k-means++: The Advantages of Careful Seeding, 2007.
    """
    name = "kmeans2"
    x, flat = _require_observations(name, data)
    if minit not in _STARTS:
        known = ", ".join(f'"{m}"' for m in _STARTS)
        raise ArgumentError(f"{name}: minit must be one of {known}, got {minit!r}")
    if missing not in ("warn", "raise"):
        raise ArgumentError(
            f'{name}: missing must be "warn" or "raise", got {missing!r}'
        )
    steps = natural(name, "iter", iter)
    if minit == "matrix" or fnp.ndim(k):
        codes = convert(fnp.asarray(k), x.dtype)
        codes = codes[:, None] if flat and codes.ndim == 1 else codes
        if codes.ndim != 2 or codes.shape[1] != x.shape[1] or not codes.shape[0]:
            raise ShapeError(
                f"{name}: codes must be [k, {x.shape[1]}], got {codes.aval}"
            )
    else:
        count = natural(name, "k", k)
        if count > x.shape[0] and minit == "points":
            raise ArgumentError(
                f"{name}: {count} codes need as many observations, got {x.shape[0]}"
            )
        codes = _started(name, x, count, minit, key)
    # All steps but the last one only find labels.
    fixed = lax.stop_gradient(x)
    start = (lax.stop_gradient(codes), fnp.asarray(False))

    def step(_: Any, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        codes, lost = carry
        moved, labels, _ = _moved(fixed, codes)
        return moved, lost | _has_none(labels, codes.shape[0])

    before, lost = lax.fori_loop(0, steps - 1, step, start)
    codes, labels, _ = _moved(x, before)
    _report_missing(name, lost | _has_none(labels, codes.shape[0]), missing)
    return (codes[:, 0] if flat else codes), labels


def kmeans(
    obs: ArrayLike,
    k_or_guess: Any,
    iter: int = 20,
    thresh: float = 1e-5,
    check_finite: bool = True,
    *,
    key: Any = None,
) -> tuple[Array, Array]:
    """Finds the centroids that minimize the mean distance to the observations.

    Args:
      obs: real array-like[m, d], or [m] of numbers.
      k_or_guess: the number of centroids, or the initial ones, array-like[k, d].
      iter: the number of restarts from other observations; all starts run at once.
      thresh: a start ends when the mean distance falls by no more.
      check_finite: has no effect.
      key: for the starts.

    Returns:
      The codes, float[k, d], and the mean distance, float[].

    Raises:
      ArgumentError: `k` or `iter` is not positive, or the key is missing.
      ShapeError: the observations or codes have the wrong shape.

    Example:
      >>> x = np.array([0.0, 1.0, 9.0, 10.0])
      >>> codes, distance = kmeans(x, np.array([0.0, 5.0]))
      >>> codes.tolist(), float(distance)
      ([0.5, 9.5], 0.5)

    Source: `scipy.cluster.vq.kmeans`, with a key; a code without observations stays.
    """
    name = "kmeans"
    x, flat = _require_observations(name, obs)

    def run(codes: Array) -> tuple[Array, Array]:
        def step(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            codes, last, _ = carry
            new, _, far = _moved(x, codes)
            mean = fnp.mean(far)
            return new, mean, last - mean

        infinite = fnp.asarray(fnp.inf, x.dtype)
        first = (codes, infinite, infinite)
        codes = lax.while_loop(lambda c: c[2] > thresh, step, first)[0]
        return codes, fnp.mean(vq(x, codes)[1])

    if fnp.ndim(k_or_guess):
        codes = convert(fnp.asarray(k_or_guess), x.dtype)
        codes = codes[:, None] if flat and codes.ndim == 1 else codes
        if codes.ndim != 2 or codes.shape[1] != x.shape[1] or not codes.shape[0]:
            raise ShapeError(
                f"{name}: codes must be [k, {x.shape[1]}], got {codes.aval}"
            )
        best, mean = run(codes)
        return (best[:, 0] if flat else best), mean
    k, starts = natural(name, "k", k_or_guess), natural(name, "iter", iter)
    if k > x.shape[0]:
        raise ArgumentError(
            f"{name}: {k} codes need as many observations, got {x.shape[0]}"
        )
    if key is None:
        raise ArgumentError(f"{name}: codes are drawn at random: give key")
    first = vmap(lambda one: _started(name, x, k, "points", one))(
        random.split(key, starts)
    )
    found, means = vmap(run)(first)
    at = fnp.argmin(means)
    return (found[at][:, 0] if flat else found[at]), means[at]


_public(globals(), __all__)
