"""What NumPy's arrays have on themselves, put on `Array`: operators, indexing, methods.

Tracers are Arrays, so they get the same. The two tables at the end are the place to add
methods: a method is a function whose first argument is the array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fxflow.core import dtypes
from fxflow.core.array import Array
from fxflow.core.errors import ArgumentError
from fxflow.core.trace import Tracer
from fxflow.numpy import arithmetic, comparisons, creation, index_update, indexing, shapes
from fxflow.numpy._operands import SCALARS

# -- operators -----------------------------------------------------------------------


def _accepts(other: Any) -> bool:
    return (
        isinstance(other, Array | np.ndarray | np.generic)
        or type(other) in SCALARS
        or isinstance(other, bool | int | float | complex)
        or hasattr(other, "__fxflow_array__")
    )


def _refused(symbol: str, x: Any, y: Any) -> Any:
    """Raises for lists; for anything else lets Python ask the other operand."""
    for one in (x, y):
        if isinstance(one, list | tuple):
            raise ArgumentError(
                f"{symbol}: a {type(one).__name__} is no array: convert it with "
                "fnp.asarray"
            )
    return NotImplemented


def _forward(symbol: str, function: Callable[[Any, Any], Any]) -> Any:
    def operator(self: Any, other: Any) -> Any:
        if isinstance(other, Array) or _accepts(other):
            return function(self, other)
        return _refused(symbol, self, other)

    return operator


def _reflected(symbol: str, function: Callable[[Any, Any], Any]) -> Any:
    def operator(self: Any, other: Any) -> Any:
        if isinstance(other, Array) or _accepts(other):
            return function(other, self)
        return _refused(symbol, other, self)

    return operator


_BINARY: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "add": ("+", arithmetic.add),
    "sub": ("-", arithmetic.subtract),
    "mul": ("*", arithmetic.multiply),
    "truediv": ("/", arithmetic.divide),
    "floordiv": ("//", arithmetic.floor_divide),
    "mod": ("%", arithmetic.remainder),
    "divmod": ("divmod", arithmetic.divmod),
    "pow": ("**", arithmetic.power),
    "and": ("&", comparisons.bitwise_and),
    "or": ("|", comparisons.bitwise_or),
    "xor": ("^", comparisons.bitwise_xor),
    "lshift": ("<<", comparisons.bitwise_left_shift),
    "rshift": (">>", comparisons.bitwise_right_shift),
}
_COMPARISONS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "eq": ("==", comparisons.equal),
    "ne": ("!=", comparisons.not_equal),
    "lt": ("<", comparisons.less),
    "le": ("<=", comparisons.less_equal),
    "gt": (">", comparisons.greater),
    "ge": (">=", comparisons.greater_equal),
}
_UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": arithmetic.negative,
    "pos": arithmetic.positive,
    "abs": arithmetic.absolute,
    "invert": comparisons.bitwise_invert,
}


def _unary(function: Callable[[Any], Any]) -> Any:
    def operator(self: Any) -> Any:
        return function(self)

    return operator


def _iterate(self: Array) -> Iterator[Any]:
    if not self.aval.ndim:
        raise TypeError(f"iteration over a 0-d array ({self.aval})")
    return iter([self[i] for i in range(self.aval.shape[0])])


def _no_assignment(self: Array, index: Any, value: Any) -> None:
    raise TypeError(
        f"arrays are immutable, {self.aval} included: instead of x[i] = v use "
        "x = x.at[i].set(v)"
    )


def _no_deletion(self: Array, index: Any) -> None:
    raise TypeError(f"arrays are immutable, {self.aval} included: see fnp.delete")


# -- methods and properties ------------------------------------------------------------


def _astype(
    self: Array, dtype: Any, copy: bool = False, device: Any = None
) -> Array:
    """Returns the array with another dtype; see `fxflow.numpy.astype`."""
    return creation.astype(self, dtype, copy=copy, device=device)


def _reshape(self: Array, *args: Any, order: str = "C", copy: Any = None) -> Array:
    """Returns the array under another shape, given as a tuple or as numbers."""
    shape = args[0] if len(args) == 1 else args
    return shapes.reshape(self, shape, order, copy=copy)


def _transpose(self: Array, *args: Any) -> Array:
    """Returns the array with its axes in another order (reversed, if none is given)."""
    axes = args[0] if len(args) == 1 else args
    return shapes.transpose(self, None if axes is None or not args else _listed(axes))


def _listed(axes: Any) -> Any:
    return axes if isinstance(axes, tuple | list) else (axes,)


def _flatten(self: Array, order: str = "C") -> Array:
    """Returns the elements along one axis."""
    return shapes.ravel(self, order)


def _to_device(self: Array, device: Any, *, stream: Any = None) -> Array:
    """Returns the array on another device."""
    return creation.asarray(self, device=device)


def _namespace(self: Array, *, api_version: str | None = None) -> Any:
    """Returns `fxflow.numpy`; see the array API standard."""
    return _module()


def _module() -> Any:
    import sys

    return sys.modules["fxflow.numpy"]


METHODS: dict[str, Callable[..., Any]] = {
    "astype": _astype,
    "copy": creation.copy,
    "flatten": _flatten,
    "ravel": shapes.ravel,
    "reshape": _reshape,
    "squeeze": shapes.squeeze,
    "swapaxes": shapes.swapaxes,
    "to_device": _to_device,
    "transpose": _transpose,
    "__array_namespace__": _namespace,
    "__getitem__": indexing.getitem,
    "__iter__": _iterate,
    "__setitem__": _no_assignment,
    "__delitem__": _no_deletion,
}
"""Methods by name: functions of the array and more arguments."""

PROPERTIES: dict[str, Callable[[Any], Any]] = {
    "at": index_update.At,
    "T": shapes.transpose,
    "mT": shapes.matrix_transpose,
}
"""Properties by name: functions of the array."""


def _method(function: Callable[..., Any], name: str) -> Any:
    """Returns a plain function, which Python binds to the instance."""
    if type(function).__name__ == "function":
        return function

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    method.__name__, method.__doc__ = name, function.__doc__
    return method


def install() -> None:
    """Puts operators, methods and properties on `Array`."""
    for name, (symbol, function) in {**_BINARY, **_COMPARISONS}.items():
        setattr(Array, f"__{name}__", _forward(symbol, function))
    for name, (symbol, function) in _BINARY.items():
        setattr(Array, f"__r{name}__", _reflected(symbol, function))
    for name, single in _UNARY.items():
        setattr(Array, f"__{name}__", _unary(single))
    for name, method in METHODS.items():
        setattr(Array, name, _method(method, name))
    for name, getter in PROPERTIES.items():
        setattr(Array, name, property(getter, doc=getter.__doc__))


install()
