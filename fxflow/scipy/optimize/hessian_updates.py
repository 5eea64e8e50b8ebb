"""Estimates of a Hessian from steps and changes of the gradient: SciPy's classes."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import natural
from fxflow.numpy._operands import promote_inexact
from fxflow.scipy.optimize._sequential_quadratic import mixed


class HessianUpdateStrategy:
    """The base of estimates of a Hessian for `minimize(…, method="trust-constr")`.

    A subclass has the methods below. `minimize` works on copies of the object in a
    compiled loop, so that arrays are what a method may change: attributes that are
    arrays are the state of the loop, and keep their shapes; others are constant.

    Example:
      >>> from fxflow.scipy.optimize import HessianUpdateStrategy, minimize
      >>> class Diagonal(HessianUpdateStrategy):
      ...     def initialize(self, n, approx_type):
      ...         self.row = fnp.ones(n)
      ...
      ...     def update(self, delta_x, delta_grad):
      ...         curve = delta_grad / fnp.where(delta_x == 0, 1, delta_x)
      ...         self.row = fnp.where(delta_x == 0, self.row, fnp.abs(curve))
      ...
      ...     def dot(self, p):
      ...         return self.row * p
      ...
      ...     def get_matrix(self):
      ...         return fnp.diag(self.row)
      >>> minimize(
      ...     lambda x: x @ x - x.sum(),
      ...     fnp.zeros(2),
      ...     method="trust-constr",
      ...     hess=Diagonal(),
      ... ).x.round(3)
      Array([0.5, 0.5], dtype=float32)

    Source: `scipy.optimize.HessianUpdateStrategy`.
    """

    def initialize(self, n: int, approx_type: str) -> None:
        """Begins an estimate.

        Args:
          n: the number of variables.
          approx_type: "hess", or "inv_hess" for the inverse.

        Raises:
          NotImplementedError: the subclass has no such method.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method initialize")

    def update(self, delta_x: Any, delta_grad: Any) -> None:
        """Improves the estimate after a step.

        Args:
          delta_x: float[n], the step.
          delta_grad: float[n], the change of the gradient.

        Raises:
          NotImplementedError: the subclass has no such method.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method update")

    def dot(self, p: Any) -> Any:
        """Returns the product of the estimate and a vector.

        Args:
          p: float[n].

        Returns:
          float[n].

        Raises:
          NotImplementedError: the subclass has no such method.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method dot")

    def get_matrix(self) -> Any:
        """Returns the estimate.

        Returns:
          float[n, n].

        Raises:
          NotImplementedError: the subclass has no such method.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method get_matrix")


class _Matrix(HessianUpdateStrategy):
    """An estimate that is a matrix: subclasses have the formula."""

    def __init__(self, init_scale: Any) -> None:
        name = type(self).__name__
        if isinstance(init_scale, str) and init_scale != "auto":
            raise ArgumentError(
                f'{name}: init_scale must be a number, a matrix or "auto", got '
                f"{init_scale!r}"
            )
        self.init_scale = init_scale

    def initialize(self, n: int, approx_type: str) -> None:
        """Begins an estimate with the identity.

        Args:
          n: the number of variables.
          approx_type: "hess", or "inv_hess" for the inverse.

        Raises:
          ArgumentError: unknown type, or `n` is not a natural number.
          ShapeError: `init_scale` is not a number and not float[n, n].
        """
        name = type(self).__name__
        self.n: int = natural(name, "n", n)
        if approx_type not in ("hess", "inv_hess"):
            raise ArgumentError(
                f'{name}: approx_type must be "hess" or "inv_hess", got {approx_type!r}'
            )
        self.approx_type = approx_type
        self._matrix: Any = fnp.eye(n)
        self._auto: Any = fnp.asarray(isinstance(self.init_scale, str))
        if not isinstance(self.init_scale, str):
            (scale,) = promote_inexact(name, fnp.asarray(self.init_scale))
            if scale.shape not in ((), (1,), (n, n)):
                raise ShapeError(
                    f"{name}: init_scale must be a number or float[{n}, {n}], got "
                    f"{scale.aval}"
                )
            self._matrix = scale if scale.ndim == 2 else scale * fnp.eye(n)

    def update(self, delta_x: Any, delta_grad: Any) -> None:
        """Improves the estimate after a step.

        Args:
          delta_x: float[n], the step.
          delta_grad: float[n], the change of the gradient.

        Raises:
          ShapeError: they are not vectors of n numbers.
        """
        step, change = promote_inexact(
            type(self).__name__, fnp.asarray(delta_x), fnp.asarray(delta_grad)
        )
        for what, value in (("delta_x", step), ("delta_grad", change)):
            if value.shape != (self.n,):
                raise ShapeError(
                    f"{type(self).__name__}: {what} must be float[{self.n}], got "
                    f"{value.aval}"
                )
        dtype = fnp.promote_types(self._matrix.dtype, step.dtype)
        matrix = self._matrix.astype(dtype)
        step, change = step.astype(dtype), change.astype(dtype)
        moves = fnp.any(step != 0) & fnp.any(change != 0)
        scaled = fnp.where(self._auto, self._scale(step, change) * matrix, matrix)
        pair = (step, change) if self.approx_type == "hess" else (change, step)
        new = self._improved(scaled, *pair)
        self._matrix = fnp.where(moves, new, matrix)
        self._auto = self._auto & ~moves

    def _scale(self, step: Any, change: Any) -> Any:
        """SciPy's factor of the first estimate."""
        product = fnp.abs(step @ change)
        square = change @ change
        known = (product > 0) & (square > 0)
        product = fnp.where(known, product, 1)
        square = fnp.where(known, square, 1)
        if self.approx_type == "hess":
            return square / product
        return product / square

    def _improved(self, matrix: Any, w: Any, z: Any) -> Any:
        """The matrix that maps w to z, as near as the formula says."""
        raise NotImplementedError

    def dot(self, p: Any) -> Array:
        """Returns the product of the estimate and a vector.

        Args:
          p: float[n].

        Returns:
          float[n].
        """
        out: Array = self._matrix @ fnp.asarray(p, self._matrix.dtype)
        return out

    def get_matrix(self) -> Array:
        """Returns the estimate.

        Returns:
          float[n, n].
        """
        out: Array = self._matrix
        return out


class BFGS(_Matrix):
    """The estimate of Broyden, Fletcher, Goldfarb and Shanno, which stays positive.

    Args:
      exception_strategy: what to do about a step of too small a curvature:
        "skip_update", or "damp_update" for a mixture of the change and of what the
        estimate says.
      min_curvature: the least curvature in units of the estimate's; None means 1e-8 for
        "skip_update" and 0.2 for "damp_update".
      init_scale: what the first estimate is multiplied by: a number, a symmetric
        matrix, float[n, n], or "auto" for a number that follows from the first step.

    Raises:
      ArgumentError: an argument is out of range or of the wrong type.

    Special cases:
      A step of 0, or without a change of the gradient, leaves the estimate as it is.

    Example:
      >>> estimate = BFGS()
      >>> estimate.initialize(2, "hess")
      >>> estimate.update([1.0, 0.0], [2.0, 1.0])
      >>> estimate.dot(fnp.array([1.0, 0.0]))  # as the gradient changed
      Array([2., 1.], dtype=float32)

    Source: `scipy.optimize.BFGS`; J. Nocedal and S. Wright, Numerical Optimization,
    2006, chapter 6.
    """

    def __init__(
        self,
        exception_strategy: str = "skip_update",
        min_curvature: float | None = None,
        init_scale: Any = "auto",
    ) -> None:
        defaults = {"skip_update": 1e-8, "damp_update": 0.2}
        if exception_strategy not in defaults:
            raise ArgumentError(
                'BFGS: exception_strategy must be "skip_update" or "damp_update", got '
                f"{exception_strategy!r}"
            )
        self.exception_strategy = exception_strategy
        least = defaults[exception_strategy]
        self.min_curvature = least if min_curvature is None else min_curvature
        super().__init__(init_scale)

    def _improved(self, matrix: Any, w: Any, z: Any) -> Any:
        # An estimate that is not positive any more begins again.
        negative = w @ (matrix @ w) <= 0
        pair = (w, z) if self.approx_type == "hess" else (z, w)
        again = self._scale(*pair) * fnp.eye(self.n, dtype=matrix.dtype)
        matrix = fnp.where(negative, again, matrix)
        moved = matrix @ w
        square, product = w @ moved, w @ z
        low = product <= self.min_curvature * square
        use = square > 0
        if self.exception_strategy == "damp_update":
            z = mixed(z, moved, product, square, self.min_curvature)
            product = w @ z
        else:
            use &= ~low
        by = fnp.where(use, product, 1)
        if self.approx_type == "hess":
            new = matrix + fnp.outer(z, z) / by
            new = new - fnp.outer(moved, moved) / fnp.where(use, square, 1)
        else:
            # Here w is the change of the gradient and z the step.
            new = matrix + (by + square) / by**2 * fnp.outer(z, z)
            new = new - (fnp.outer(moved, z) + fnp.outer(z, moved)) / by
        return fnp.where(use, new, matrix)


class SR1(_Matrix):
    """The symmetric estimate of rank 1, which may have negative curvature.

    Args:
      min_denominator: a step is skipped if the denominator of the formula is less than
        this part of its largest possible value.
      init_scale: what the first estimate is multiplied by: a number, a symmetric
        matrix, float[n, n], or "auto" for a number that follows from the first step.

    Raises:
      ArgumentError: an argument is out of range or of the wrong type.

    Special cases:
      A step of 0, or without a change of the gradient, leaves the estimate as it is.

    Example:
      >>> estimate = SR1(init_scale=1.0)
      >>> estimate.initialize(2, "hess")
      >>> estimate.update([1.0, 0.0], [-2.0, 0.0])
      >>> estimate.get_matrix()
      Array([[-2.,  0.],
             [ 0.,  1.]], dtype=float32)

    Source: `scipy.optimize.SR1`; J. Nocedal and S. Wright, Numerical Optimization,
    2006, chapter 6.
    """

    def __init__(self, min_denominator: float = 1e-8, init_scale: Any = "auto") -> None:
        self.min_denominator = min_denominator
        super().__init__(init_scale)

    def _improved(self, matrix: Any, w: Any, z: Any) -> Any:
        rest = z - matrix @ w
        product = w @ rest
        most = fnp.linalg.norm(w) * fnp.linalg.norm(rest)
        use = fnp.abs(product) > self.min_denominator * most
        new = matrix + fnp.outer(rest, rest) / fnp.where(use, product, 1)
        return fnp.where(use, new, matrix)


class Estimate:
    """A strategy as functions of its state, for a loop.

    Args:
      strategy: the user's object, which is not changed.
      positive: function of a matrix that makes it positive definite.
    """

    def __init__(self, strategy: HessianUpdateStrategy, positive: Any) -> None:
        self.strategy, self.positive = strategy, positive

    def start(self, x: Any) -> Any:
        """Returns the state before the first step."""
        ours = copy.copy(self.strategy)
        ours.initialize(x.size, "hess")
        self.strategy = ours
        return {
            name: fnp.astype(value, x.dtype)
            if fnp.issubdtype(value.dtype, fnp.floating)
            else fnp.asarray(value)
            for name, value in vars(ours).items()
            if isinstance(value, Array | np.ndarray)
        }

    def _with(self, state: Any) -> HessianUpdateStrategy:
        ours = copy.copy(self.strategy)
        vars(ours).update(state)
        return ours

    def updated(self, state: Any, step: Any, change: Any) -> Any:
        """Returns the state after a step."""
        ours = self._with(state)
        ours.update(step, change)
        return {
            name: fnp.asarray(vars(ours)[name], old.dtype)
            for name, old in state.items()
        }

    def matrix(self, state: Any) -> Any:
        """Returns the estimate, made positive for the model of a step."""
        return self.positive(fnp.asarray(self._with(state).get_matrix()))
