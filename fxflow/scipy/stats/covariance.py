"""Covariance matrices by what is known of them: factors, precisions, eigenvalues."""

from __future__ import annotations

from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.boundary import public as _public
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.numpy.linalg import cholesky as cholesky_of
from fxflow.scipy.linalg.solving import solve_triangular

__all__ = ["Covariance"]


def _square(name: str, matrix: Any) -> Any:
    if matrix.aval.ndim < 2 or matrix.aval.shape[-1] != matrix.aval.shape[-2]:
        raise ShapeError(
            f"Covariance.{name}: takes a matrix [..., n, n], got {matrix.aval}"
        )
    return matrix


def _rows(matrix: Any, x: Any) -> Any:
    """Returns the product of a matrix and each vector."""
    return fnp.matvec(matrix, x)


def _solved(matrix: Any, x: Any, trans: int) -> Any:
    """Returns L⁻¹ x or L⁻ᵀ x of each vector."""
    batch = fnp.broadcast_shapes(matrix.aval.shape[:-2], x.aval.shape[:-1])
    n = x.aval.shape[-1]
    matrix = fnp.broadcast_to(matrix, (*batch, n, n))
    x = fnp.broadcast_to(x, (*batch, n))
    return solve_triangular(matrix, x[..., None], lower=True, trans=trans)[..., 0]


def _diagonal(matrix: Any) -> Any:
    return fnp.diagonal(matrix, axis1=-2, axis2=-1)


@register_pytree_node_class
class Covariance:
    """A covariance matrix, represented by what its products and inverse need.

    It is made by `from_diagonal`, `from_precision`, `from_cholesky` or
    `from_eigendecomposition`, and stands for a matrix in the functions of
    `multivariate_normal`. It is a pytree, differentiable in its parts.

    Attributes:
      shape: shape of the matrix.

    Example:
      >>> from fxflow.scipy import stats
      >>> cov = stats.Covariance.from_diagonal(np.array([1.0, 4.0]))
      >>> cov.whiten(np.array([3.0, 8.0]))
      Array([3., 4.], dtype=float32)
      >>> stats.multivariate_normal.logpdf(np.zeros(2), np.zeros(2), cov).round(3)
      Array(-2.531, dtype=float32)

    Source: `scipy.stats.Covariance`.
    """

    _kind: str
    _parts: tuple[Any, ...]

    def __init__(self) -> None:
        raise ArgumentError(
            "Covariance: is made by from_diagonal, from_precision, from_cholesky or "
            "from_eigendecomposition"
        )

    @classmethod
    def _of(cls, kind: str, *parts: Any) -> Covariance:
        made = object.__new__(cls)
        made._kind, made._parts = kind, parts
        return made

    @classmethod
    def from_diagonal(cls, diagonal: ArrayLike) -> Covariance:
        """Returns a diagonal covariance.

        Args:
          diagonal: non-negative real array-like[..., n]; the matrix is singular where
            one is 0.
        """
        (d,) = promote_inexact("Covariance.from_diagonal", diagonal)
        if not d.aval.ndim:
            raise ShapeError(
                f"Covariance.from_diagonal: diagonal must be [..., n], got {d.aval}"
            )
        return cls._of("diagonal", d)

    @classmethod
    def from_precision(
        cls, precision: ArrayLike, covariance: ArrayLike | None = None
    ) -> Covariance:
        """Returns the covariance with a given inverse, the precision.

        Args:
          precision: symmetric, positive definite real array-like[..., n, n].
          covariance: its inverse, if that is known: real array-like[..., n, n].
        """
        name = "from_precision"
        given = (precision,) if covariance is None else (precision, covariance)
        p, *more = promote_inexact(f"Covariance.{name}", *given)
        root = cholesky_of(_square(name, p))
        if more and more[0].aval.shape != p.aval.shape:
            raise ShapeError(
                f"Covariance.{name}: covariance must be like precision, {p.aval}, got "
                f"{more[0].aval}"
            )
        return cls._of("precision", root, *more)

    @classmethod
    def from_cholesky(cls, cholesky: ArrayLike) -> Covariance:
        """Returns the covariance with a given Cholesky factor.

        Args:
          cholesky: lower triangular real array-like[..., n, n].
        """
        (root,) = promote_inexact("Covariance.from_cholesky", cholesky)
        return cls._of("cholesky", fnp.tril(_square("from_cholesky", root)))

    @classmethod
    def from_eigendecomposition(
        cls, eigendecomposition: tuple[ArrayLike, ArrayLike]
    ) -> Covariance:
        """Returns the covariance with given eigenvalues and eigenvectors.

        Args:
          eigendecomposition: a pair of eigenvalues, non-negative [..., n], and
            eigenvectors, the columns of [..., n, n], as `fnp.linalg.eigh` returns it.
        """
        name = "from_eigendecomposition"
        if len(tuple(eigendecomposition)) != 2:
            raise ArgumentError(
                f"Covariance.{name}: takes eigenvalues and eigenvectors, a pair"
            )
        w, v = promote_inexact(f"Covariance.{name}", *eigendecomposition)
        v = _square(name, v)
        if not w.aval.ndim or w.aval.shape[-1] != v.aval.shape[-1]:
            raise ShapeError(
                f"Covariance.{name}: there must be a value for each vector, got "
                f"{w.aval} and {v.aval}"
            )
        return cls._of("eigenvalues", w, v)

    def tree_flatten(self) -> tuple[tuple[Any, ...], str]:
        """Returns the arrays, and what they are."""
        return self._parts, self._kind

    @classmethod
    def tree_unflatten(cls, kind: str, parts: Any) -> Covariance:
        """Returns the covariance of arrays."""
        return cls._of(kind, *parts)

    def __repr__(self) -> str:
        return f"Covariance(shape={self.shape}, by={self._kind!r})"

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the matrix: (..., n, n)."""
        shape = tuple(self._parts[0].aval.shape)
        if self._kind == "eigenvalues":
            batch = fnp.broadcast_shapes(shape[:-1], self._parts[1].aval.shape[:-2])
            return (*batch, shape[-1], shape[-1])
        return (*shape, shape[-1]) if self._kind == "diagonal" else shape

    @property
    def covariance(self) -> Array:
        """The matrix: float array[..., n, n]."""
        if self._kind == "diagonal":
            d: Array = self._parts[0]
            return d[..., None] * fnp.eye(d.aval.shape[-1], dtype=d.aval.dtype)
        if self._kind == "precision":
            root, *known = self._parts
            if known:
                found: Array = known[0]
                return found
            eye = fnp.broadcast_to(
                fnp.eye(root.aval.shape[-1], dtype=root.aval.dtype), root.aval.shape
            )
            inverse = solve_triangular(root, eye, lower=True)
            square: Array = fnp.matrix_transpose(inverse) @ inverse
            return square
        if self._kind == "cholesky":
            root = self._parts[0]
            product: Array = root @ fnp.matrix_transpose(root)
            return product
        w, v = self._parts
        made: Array = (v * w[..., None, :]) @ fnp.matrix_transpose(v)
        return made

    def _variances(self) -> Any:
        """Returns numbers whose logarithms' sum is that of the determinant."""
        if self._kind in ("diagonal", "eigenvalues"):
            return self._parts[0]
        along = _diagonal(self._parts[0])
        return along * along if self._kind == "cholesky" else 1 / (along * along)

    def _kept(self) -> Any:
        """Returns which variances are not 0."""
        v = self._variances()
        if self._kind != "eigenvalues":
            return v > 0
        size = fnp.max(abs(v), axis=-1, keepdims=True)
        return v > 1e3 * v.aval.shape[-1] * float(fnp.finfo(v.aval.dtype).eps) * size

    @property
    def log_pdet(self) -> Array:
        """The logarithm of the product of the variances that are not 0."""
        v, kept = self._variances(), self._kept()
        return fnp.sum(lax.log(fnp.where(kept, v, 1)), axis=-1)

    @property
    def rank(self) -> Array:
        """The number of nonzero variances: int array[...]."""
        return fnp.sum(self._kept(), axis=-1)

    def _vectors(self, name: str, x: Any) -> Any:
        a = fnp.asarray(x, self._parts[0].aval.dtype)
        n = self.shape[-1]
        if not a.aval.ndim or a.aval.shape[-1] != n:
            raise ShapeError(f"Covariance.{name}: x must be [..., {n}], got {a.aval}")
        return a

    def whiten(self, x: ArrayLike) -> Array:
        """Returns vectors so transformed that their covariance becomes the identity.

        Args:
          x: real array-like[..., n].

        Returns:
          Float array[..., n]; 0 where the variance is 0.
        """
        a = self._vectors("whiten", x)
        found: Array
        if self._kind == "precision":
            found = _rows(fnp.matrix_transpose(self._parts[0]), a)
        elif self._kind == "cholesky":
            found = _solved(self._parts[0], a, 0)
        else:
            kept = self._kept()
            if self._kind == "eigenvalues":
                a = _rows(fnp.matrix_transpose(self._parts[1]), a)
            root = lax.sqrt(fnp.where(kept, self._parts[0], 1))
            found = fnp.where(kept, a / root, 0)
        return found

    def colorize(self, x: ArrayLike) -> Array:
        """Returns vectors so transformed that the identity becomes this covariance.

        Args:
          x: real array-like[..., n].

        Returns:
          Float array[..., n].
        """
        a = self._vectors("colorize", x)
        found: Array
        if self._kind == "precision":
            found = _solved(self._parts[0], a, 1)
        elif self._kind == "cholesky":
            found = _rows(self._parts[0], a)
        else:
            kept = self._kept()
            root = fnp.where(kept, lax.sqrt(fnp.where(kept, self._parts[0], 1)), 0)
            found = root * a
            if self._kind == "eigenvalues":
                found = _rows(self._parts[1], found)
        return found

    def log_density(self, apart: Any) -> Any:
        """Returns the logarithm of the normal density without its factor of 2π.

        Args:
          apart: float array[..., n]: differences from the mean.

        Returns:
          Float array[...]; -inf outside of the subspace that the vectors span.
        """
        y = self.whiten(apart)
        value = -0.5 * (fnp.sum(y * y, axis=-1) + self.log_pdet)
        if self._kind in ("precision", "cholesky"):
            return value
        kept = self._kept()
        along = apart
        if self._kind == "eigenvalues":
            along = _rows(fnp.matrix_transpose(self._parts[1]), apart)
        size = fnp.max(abs(apart), axis=-1, keepdims=True)
        limit = size * float(fnp.finfo(along.aval.dtype).eps) ** 0.5
        outside = fnp.any(~kept & (abs(along) > limit), axis=-1)
        return fnp.where(outside, -fnp.inf, value)


_public(globals(), __all__)
