"""Operators that act elementwise, through `map`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from fxflow import numpy as fnp
from fxflow.core.boundary import guard_methods


@guard_methods
class Operators:
    """Elementwise operators of a type that has `map`."""

    def map(self, function: Callable[..., Any], *others: Any) -> Self:
        """Applies a function to the values of this array and of others."""
        raise NotImplementedError

    def _map_reversed(self, function: Callable[..., Any], other: Any) -> Self:
        return self.map(lambda x, y: function(y, x), other)

    def __neg__(self) -> Self:
        """Returns -x."""
        return self.map(fnp.negative)

    def __pos__(self) -> Self:
        """Returns x."""
        return self.map(fnp.positive)

    def __abs__(self) -> Self:
        """Returns the absolute values."""
        return self.map(fnp.abs)

    def __invert__(self) -> Self:
        """Returns ~x."""
        return self.map(fnp.invert)

    def __add__(self, other: Any) -> Self:
        """Returns x + y."""
        return self.map(fnp.add, other)

    def __radd__(self, other: Any) -> Self:
        """Returns y + x."""
        return self._map_reversed(fnp.add, other)

    def __sub__(self, other: Any) -> Self:
        """Returns x - y."""
        return self.map(fnp.subtract, other)

    def __rsub__(self, other: Any) -> Self:
        """Returns y - x."""
        return self._map_reversed(fnp.subtract, other)

    def __mul__(self, other: Any) -> Self:
        """Returns x * y."""
        return self.map(fnp.multiply, other)

    def __rmul__(self, other: Any) -> Self:
        """Returns y * x."""
        return self._map_reversed(fnp.multiply, other)

    def __truediv__(self, other: Any) -> Self:
        """Returns x / y."""
        return self.map(fnp.true_divide, other)

    def __rtruediv__(self, other: Any) -> Self:
        """Returns y / x."""
        return self._map_reversed(fnp.true_divide, other)

    def __floordiv__(self, other: Any) -> Self:
        """Returns x // y."""
        return self.map(fnp.floor_divide, other)

    def __rfloordiv__(self, other: Any) -> Self:
        """Returns y // x."""
        return self._map_reversed(fnp.floor_divide, other)

    def __mod__(self, other: Any) -> Self:
        """Returns x % y."""
        return self.map(fnp.remainder, other)

    def __rmod__(self, other: Any) -> Self:
        """Returns y % x."""
        return self._map_reversed(fnp.remainder, other)

    def __pow__(self, other: Any) -> Self:
        """Returns x ** y."""
        return self.map(fnp.power, other)

    def __rpow__(self, other: Any) -> Self:
        """Returns y ** x."""
        return self._map_reversed(fnp.power, other)

    def __and__(self, other: Any) -> Self:
        """Returns x & y."""
        return self.map(fnp.bitwise_and, other)

    def __rand__(self, other: Any) -> Self:
        """Returns y & x."""
        return self._map_reversed(fnp.bitwise_and, other)

    def __or__(self, other: Any) -> Self:
        """Returns x | y."""
        return self.map(fnp.bitwise_or, other)

    def __ror__(self, other: Any) -> Self:
        """Returns y | x."""
        return self._map_reversed(fnp.bitwise_or, other)

    def __xor__(self, other: Any) -> Self:
        """Returns x ^ y."""
        return self.map(fnp.bitwise_xor, other)

    def __rxor__(self, other: Any) -> Self:
        """Returns y ^ x."""
        return self._map_reversed(fnp.bitwise_xor, other)

    def __lt__(self, other: Any) -> Self:
        """Returns x < y."""
        return self.map(fnp.less, other)

    def __le__(self, other: Any) -> Self:
        """Returns x <= y."""
        return self.map(fnp.less_equal, other)

    def __gt__(self, other: Any) -> Self:
        """Returns x > y."""
        return self.map(fnp.greater, other)

    def __ge__(self, other: Any) -> Self:
        """Returns x >= y."""
        return self.map(fnp.greater_equal, other)

    def __eq__(self, other: Any) -> Self:  # type: ignore[override]
        """Returns x == y."""
        return self.map(fnp.equal, other)

    def __ne__(self, other: Any) -> Self:  # type: ignore[override]
        """Returns x != y."""
        return self.map(fnp.not_equal, other)
