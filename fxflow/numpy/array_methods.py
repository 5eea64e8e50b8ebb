"""What NumPy's arrays have on themselves, put on `Array`: operators, indexing, methods.

Tracers are Arrays, so they get the same. The two tables at the end are the place to add
methods: a method is a function whose first argument is the array.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from fxflow import lax
from fxflow._names import answer_methods
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.eager import plans_of
from fxflow.core.source import leave
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.numpy import (
    arithmetic,
    arranging,
    axis_order,
    bits,
    comparisons,
    complex_parts,
    concatenation,
    creation,
    cumulative,
    diagonals,
    index_functions,
    index_update,
    indexing,
    means,
    products,
    reductions,
    rounding,
    searching,
    selection,
    shapes,
    sorting,
)
from fxflow.numpy.ufuncs import Binary

# -- operators -------------------------------------------------------------------------


_BINARY: dict[str, tuple[str, Binary[Any]]] = {
    "add": ("+", arithmetic.add),
    "sub": ("-", arithmetic.subtract),
    "mul": ("*", arithmetic.multiply),
    "truediv": ("/", arithmetic.divide),
    "floordiv": ("//", arithmetic.floor_divide),
    "mod": ("%", arithmetic.remainder),
    "divmod": ("divmod", arithmetic.divmod),
    "pow": ("**", arithmetic.power),
    "matmul": ("@", products.matmul_operator),
    "and": ("&", bits.bitwise_and),
    "or": ("|", bits.bitwise_or),
    "xor": ("^", bits.bitwise_xor),
    "lshift": ("<<", bits.bitwise_left_shift),
    "rshift": (">>", bits.bitwise_right_shift),
}
_COMPARISONS: dict[str, tuple[str, Binary[Any]]] = {
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
    "invert": bits.bitwise_invert,
}


def _unary(function: Callable[[Any], Any]) -> Any:
    def operator(self: Any) -> Any:
        try:
            return function(self)
        except Exception as error:
            leave(error)
            raise

    return operator


def _iterate(self: Array) -> Iterator[Any]:
    if not self.aval.ndim:
        raise TypeError(f"iteration over a 0-d array ({self.aval})")
    # One by one: `np.iterable(x)` asks for the iterator alone.
    return (self[i] for i in range(self.aval.shape[0]))


def _contains(self: Array, value: Any) -> bool:
    """Returns whether any element equals a value, which is broadcast as in NumPy."""
    found = comparisons.equal(self, value)
    return bool(lax.reduce_or(found, tuple(range(found.aval.ndim))))


def _no_assignment(self: Array, index: Any, value: Any) -> None:
    raise TypeError(
        f"arrays are immutable, {self.aval} included: instead of x[i] = v use "
        "x = x.at[i].set(v)"
    )


def _no_deletion(self: Array, index: Any) -> None:
    raise TypeError(f"arrays are immutable, {self.aval} included: see fnp.delete")


# -- methods and properties ------------------------------------------------------------


def _astype(self: Array, dtype: Any, copy: bool = False, device: Any = None) -> Array:
    """Returns the array with another dtype; see `fxflow.numpy.astype`."""
    return creation.astype(self, dtype, copy=copy, device=device)


def _reshape(self: Array, *args: Any, order: str = "C", copy: Any = None) -> Array:
    """Returns the array under another shape, given as a tuple or as numbers."""
    try:
        shape = args[0] if len(args) == 1 else args
        return shapes.reshape(self, shape, order, copy=copy)
    except Exception as error:
        leave(error)
        raise


def _transpose(self: Array, *args: Any) -> Array:
    """Returns the array with its axes in another order (reversed, if none is given)."""
    try:
        axes = args[0] if len(args) == 1 else args
        return axis_order.transpose(
            self, None if axes is None or not args else _listed(axes)
        )
    except Exception as error:
        leave(error)
        raise


def _listed(axes: Any) -> Any:
    return axes if isinstance(axes, tuple | list) else (axes,)


def _flatten(self: Array, order: str = "C") -> Array:
    """Returns the elements along one axis."""
    return shapes.ravel(self, order)


def _clip(self: Array, min: Any = None, max: Any = None) -> Array:
    """Returns the array with elements outside of bounds moved to the bounds."""
    return selection.clip(self, min, max)


def _compress(self: Array, condition: Any, axis: int | None = None) -> Array:
    """Returns the slices along an axis where a condition is true."""
    return index_functions.compress(condition, self, axis)


def _dunder_round(self: Array, ndigits: int | None = None) -> Array:
    """Returns the array rounded; without `ndigits`, floats become integers.

    As in Python, where `round(2.5)` is an integer and `round(2.5, 0)` is not.
    """
    rounded = rounding.round(self, ndigits or 0)
    if ndigits is not None or not dtypes.is_floating(self.dtype):
        return rounded
    wide = dtypes.is_wide(self.dtype)
    return creation.astype(rounded, dtypes.int64 if wide else dtypes.default_int())


def _view(self: Array, dtype: Any = None) -> Array:
    """Returns the same bits read as another dtype; the last axis grows or shrinks."""
    if type(dtype) is int:  # PyTorch's
        raise ArgumentError(
            f"view: takes a dtype, got {dtype}: for another shape use x.reshape(...)"
        )
    wanted = self.dtype if dtype is None else dtypes.of_bits(dtype)
    old = self.aval
    if dtypes.is_bool(wanted) or dtypes.is_bool(old.dtype):
        # A byte that is neither 0 nor 1 is not a bool.
        if wanted == old.dtype:
            return self
        if dtypes.is_bool(old.dtype) and dtypes.bits(wanted) == 8:
            return _view(creation.astype(self, dtypes.uint8), wanted)
        if dtypes.is_bool(wanted) and dtypes.bits(old.dtype) == 8:
            return comparisons.not_equal(_view(self, dtypes.uint8), 0)
        raise DtypeError(
            f"view: {old} cannot be read as {dtypes.short_name(wanted)}: bools have 8 "
            "bits"
        )
    if wanted == old.dtype:
        return self
    if dtypes.is_complex(wanted):
        parts = _view(self, dtypes.to_real(wanted))
        if not parts.ndim or parts.shape[-1] % 2:
            raise ShapeError(f"view: {old} has no pairs to be read as complex numbers")
        return lax.complex(parts[..., ::2], parts[..., 1::2])
    if dtypes.is_complex(old.dtype):
        pairs = concatenation.stack([lax.real(self), lax.imag(self)], -1)
        flat = shapes.reshape(pairs, (*old.shape[:-1], -1)) if old.ndim else pairs
        return _view(flat, wanted)
    have, want = dtypes.bits(old.dtype), dtypes.bits(wanted)
    if have == want:
        return lax.bitcast_convert_type(self, wanted)
    if not old.ndim:
        raise ShapeError(f"view: a 0-d array keeps its bits, got {old}")
    n = old.shape[-1]
    if have > want:
        # A narrower dtype comes with an axis of its own; merged into the last one.
        out = lax.bitcast_convert_type(self, wanted)
        return shapes.reshape(out, (*old.shape[:-1], n * (have // want)))
    ratio = want // have
    if n % ratio:
        raise ShapeError(
            f"view: the last axis of {old} must divide by {ratio} to be read as "
            f"{dtypes.short_name(wanted)}"
        )
    grouped = shapes.reshape(self, (*old.shape[:-1], n // ratio, ratio))
    return lax.bitcast_convert_type(grouped, wanted)


def _flat(self: Array) -> Array:
    """The elements along one axis."""
    return shapes.ravel(self)


def _to_device(self: Array, device: Any, *, stream: Any = None) -> Array:
    """Returns the array on another device."""
    return creation.asarray(self, device=device)


def _namespace(self: Array, *, api_version: str | None = None) -> Any:
    """Returns `fxflow.numpy`; see the array API standard."""
    if api_version is not None and api_version not in _API_VERSIONS:
        raise ValueError(
            f"version {api_version!r} of the array API is not supported: use one of "
            f"{', '.join(_API_VERSIONS)}"
        )
    return _module()


_API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


# Late: `fxflow.numpy` imports this module while it is being made.
def _module() -> Any:
    import sys

    return sys.modules["fxflow.numpy"]


METHODS: dict[str, Callable[..., Any]] = {
    "all": reductions.all,
    "any": reductions.any,
    "argmax": reductions.argmax,
    "argmin": reductions.argmin,
    "astype": _astype,
    "choose": selection.choose,
    "clip": _clip,
    "compress": _compress,
    "conj": complex_parts.conjugate,
    "conjugate": complex_parts.conjugate,
    "copy": creation.copy,
    "argpartition": sorting.argpartition,
    "argsort": sorting.argsort,
    "partition": sorting.partition,
    "searchsorted": sorting.searchsorted,
    "sort": sorting.sort,
    "cumprod": cumulative.cumprod,
    "cumsum": cumulative.cumsum,
    "dot": products.dot,
    "max": reductions.max,
    "mean": means.mean,
    "min": reductions.min,
    "prod": reductions.prod,
    "ptp": reductions.ptp,
    "std": means.std,
    "sum": reductions.sum,
    "trace": diagonals.trace,
    "var": means.var,
    "diagonal": diagonals.diagonal,
    "flatten": _flatten,
    "nonzero": searching.nonzero,
    "ravel": shapes.ravel,
    "repeat": arranging.repeat,
    "reshape": _reshape,
    "round": rounding.round,
    "squeeze": shapes.squeeze,
    "swapaxes": axis_order.swapaxes,
    "take": index_functions.take,
    "to_device": _to_device,
    "transpose": _transpose,
    "view": _view,
    "__round__": _dunder_round,
    "__array_namespace__": _namespace,
    "__getitem__": indexing.getitem,
    "__iter__": _iterate,
    "__setitem__": _no_assignment,
    "__contains__": _contains,
    "__delitem__": _no_deletion,
}
"""Methods by name: functions of the array and more arguments."""

PROPERTIES: dict[str, Callable[[Any], Any]] = {
    "at": index_update.At,
    "flat": _flat,
    "imag": complex_parts.imag,
    "real": complex_parts.real,
    "T": axis_order.transpose,
    "mT": axis_order.matrix_transpose,
}
"""Properties by name: functions of the array."""


# Methods that the class has itself and that take no care of their tracebacks.
_RARE = (
    "__array__",
    "__deepcopy__",
    "__dlpack__",
    "__dlpack_device__",
    "__format__",
    "__hash__",
    "__reduce__",
    "addressable_data",
    "block_until_ready",
    "item",
    "tobytes",
    "tolist",
    "unsafe_buffer_pointer",
)
# These take care of their tracebacks themselves, as library functions do.
_SHORT = (indexing.getitem, _reshape, _transpose)


def _method(function: Callable[..., Any], name: str) -> Any:
    """Returns a plain function, which Python binds to the instance."""
    if function in _SHORT or plans_of(function) is not None:
        return function

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return function(self, *args, **kwargs)
        except Exception as error:
            leave(error)
            raise

    return functools.update_wrapper(method, function)


def _property(getter: Callable[[Any], Any]) -> Any:
    def get(self: Any) -> Any:
        try:
            return getter(self)
        except Exception as error:
            leave(error)
            raise

    return property(get, doc=(getter.__doc__ or "").partition("\n")[0])


def install() -> None:
    """Puts operators, methods and properties on `Array`."""
    for name, (symbol, function) in _BINARY.items():
        forward, reflected = function.operators(symbol)
        setattr(Array, f"__{name}__", forward)
        setattr(Array, f"__r{name}__", reflected)
    for name, (symbol, function) in _COMPARISONS.items():
        setattr(Array, f"__{name}__", function.operators(symbol)[0])
    for name, single in _UNARY.items():
        setattr(Array, f"__{name}__", _unary(single))
    for name, method in METHODS.items():
        if method.__name__.startswith("_"):  # Python's own errors name it
            method.__qualname__ = f"Array.{name}"
        setattr(Array, name, _method(method, name))
    for name in _RARE:
        setattr(Array, name, _method(vars(Array)[name], name))
    for name, getter in PROPERTIES.items():
        setattr(Array, name, _property(getter))
    answer_methods(Array)


install()
