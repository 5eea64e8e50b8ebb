"""Robust losses of residuals, and the sums of squares that stand for them."""

from __future__ import annotations

from typing import Any

from fxflow import numpy as fnp

# Functions of z = (f / scale)²: the values, and two derivatives by z.


def _soft_l1(z: Any) -> Any:
    root = fnp.sqrt(1 + z)
    return 2 * (root - 1), 1 / root, -0.5 / root**3


def _huber(z: Any) -> Any:
    far = z > 1
    safe = fnp.where(far, z, 1)
    root = fnp.sqrt(safe)
    return (
        fnp.where(far, 2 * root - 1, z),
        1 / root,
        fnp.where(far, -0.5 / (safe * root), 0),
    )


def _cauchy(z: Any) -> Any:
    return fnp.log1p(z), 1 / (1 + z), -1 / (1 + z) ** 2


def _arctan(z: Any) -> Any:
    rest = 1 + z * z
    return fnp.arctan(z), 1 / rest, -2 * z / rest**2


LOSSES: dict[str, Any] = {
    "linear": None,
    "soft_l1": _soft_l1,
    "huber": _huber,
    "cauchy": _cauchy,
    "arctan": _arctan,
}


class Model:
    """The cost of residuals under a loss, and what squares it is near a point."""

    def __init__(self, residuals: Any, jacobian: Any, rule: Any, scale: Any) -> None:
        self.residuals, self.jacobian = residuals, jacobian
        self.rule, self.scale = rule, scale

    def _losses(self, values: Any) -> Any:
        loss, first, second = self.rule((values / self.scale) ** 2)
        return self.scale**2 * loss, first, second / self.scale**2

    def value(self, x: Any) -> Any:
        """The cost and the residuals."""
        values = self.residuals(x)
        if self.rule is None:
            return values @ values / 2, values
        return fnp.sum(self._losses(values)[0]) / 2, values

    def both(self, x: Any) -> Any:
        """The cost, and residuals and a Jacobian that have its gradient."""
        values, matrix = self.residuals(x), self.jacobian(x)
        if self.rule is None:
            return values @ values / 2, values, matrix
        loss, first, second = self._losses(values)
        tiny = float(fnp.finfo(values.dtype).eps)
        # The Hessian of the loss, as far as it is positive.
        curve = fnp.sqrt(fnp.maximum(first + 2 * second * values**2, tiny))
        return fnp.sum(loss) / 2, values * first / curve, matrix * curve[:, None]

    def slope(self, x: Any) -> Any:
        """The gradient of the cost."""
        values, matrix = self.residuals(x), self.jacobian(x)
        if self.rule is not None:
            values = values * self._losses(values)[1]
        return matrix.T @ values
