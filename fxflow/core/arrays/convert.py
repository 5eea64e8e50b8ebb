"""From what users pass to arrays: Python scalars, NumPy arrays, DLPack exporters."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow.core import tree
from fxflow.core.arrays import dtypes
from fxflow.core.arrays.abstract_ref import AbstractRef
from fxflow.core.arrays.array import Array, put_host
from fxflow.core.arrays.aval import Aval
from fxflow.core.arrays.protocol import array_method
from fxflow.core.sizes import is_symbolic
from fxflow.core.source import at_fault
from fxflow.devices import transfers
from fxflow.errors import ArgumentError

#: What becomes an array; for annotations of what takes no pytrees.
ArrayOrNumber = Array | np.ndarray[Any, Any] | np.generic | complex

_SCALARS = (bool, int, float, complex)


def is_arraylike(value: Any) -> bool:
    """Returns whether an operation accepts `value` as an array."""
    known = isinstance(value, (Array, *_SCALARS, np.ndarray, np.generic))
    return known or array_method(value) is not None


def text_of(value: Any, length: int = 60) -> str:
    """Returns the text of a value for a message, cut at a length."""
    try:
        text = repr(value)
    except Exception:  # the user's class: its own error would hide ours
        text = "a value"
    return text if len(text) <= length else text[: length - 3] + "..."


def kind_of(value: Any) -> str:
    """Returns what a message says a value is: an array's type, or its class."""
    return str(value.aval) if isinstance(value, Array) else type(value).__name__


# Arrays of other libraries, by the package that their class is from.
_FOREIGN = {
    "jax": "a JAX array",
    "jaxlib": "a JAX array",
    "torch": "a PyTorch tensor",
    "cupy": "a CuPy array",
    "tensorflow": "a TensorFlow tensor",
    "mlx": "an MLX array",
    "pandas": "a pandas object",
}


def not_an_array(value: Any, where: str = "", label: str = "") -> ArgumentError:
    """Returns the error for a value that is not an array.

    Args:
      value: what was given.
      where: how the message begins, such as `f: x is`; nothing: the public function
        and its argument are looked up.
      label: the parameter's name, where it is that of a transformed function.
    """
    aval = getattr(value, "aval", None)
    if type(aval) is AbstractRef:
        return ArgumentError(
            f"{where or at_fault(value) + 'got'} {aval}, a reference, which is not an "
            "array: read it with ref[...]"
        )
    shown = text_of(value)
    if label == "self":
        hint = (
            "the object of a method is an argument, too: register its class as a "
            "pytree (fxflow.tree.register_dataclass), make it static "
            "(functools.partial(fxflow.jit, static_argnums=0)), or transform a "
            "function of its arrays"
        )
    elif isinstance(value, list | tuple):
        hint = "convert it with fnp.asarray"
    elif hasattr(value, "__dlpack__") and not isinstance(value, type):
        hint = (
            "share its memory with fxflow.numpy.from_dlpack, or copy it with "
            "fnp.asarray"
        )
    elif hasattr(value, "__array__") and not isinstance(value, type):
        hint = "copy it with fnp.asarray"
    else:
        hint = "pass an array, a number or a NumPy array"
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    foreign = package not in ("builtins", "__main__")
    name = f"{kind.__module__}.{kind.__name__}" if foreign else kind.__name__
    if package in _FOREIGN and hasattr(value, "shape"):
        dims = ",".join(map(str, value.shape))
        dtype = str(getattr(value, "dtype", "")).rpartition(".")[2]
        return ArgumentError(
            f"{where or at_fault(value) + 'got'} {_FOREIGN[package]}, "
            f"{dtype}[{dims}], which is not an array of fxflow: {hint}"
        )
    typed = "None" if value is None else f"{shown} of type {name}"
    return ArgumentError(
        f"{where or at_fault(value) + 'got'} {typed}, which is not an array: {hint}"
    )


def typeof(value: Any) -> Aval:
    """Returns the type of an array, tracer, scalar or NumPy array.

    Args:
      value: array-like, or anything with an `aval`.

    Returns:
      Its type, as an operation sees it.

    Raises:
      ArgumentError: `value` is not an array.

    Example:
      >>> typeof(3.0)
      f32[]~
    """
    aval = getattr(value, "aval", None)
    if type(aval) is Aval:
        return aval
    # `np.float64` derives from `float`, but is not weak.
    if isinstance(value, _SCALARS) and not isinstance(value, np.generic):
        return Aval((), dtypes.of_python(value), not isinstance(value, bool))
    if isinstance(value, np.ndarray | np.generic):
        return Aval(value.shape, dtypes.of_host(value))
    convert = array_method(value)
    if convert is not None:
        return typeof(convert())
    if type(aval) is AbstractRef:
        return aval
    raise not_an_array(value)


def like_type(value: Any) -> Aval:
    """Returns the type of anything with a shape and a dtype, which it only looks at.

    Args:
      value: array-like, or an object that says its shape and dtype.

    Returns:
      Its type; weak if it says so.

    Raises:
      ArgumentError: `value` is not an array and says neither.
    """
    if (
        isinstance(value, np.ndarray | np.generic)
        or type(getattr(value, "aval", None)) is Aval
    ):
        return typeof(value)
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is None or dtype is None:
        return typeof(value)
    weak = getattr(value, "weak_type", False) is True
    lengths = tuple(n if is_symbolic((n,)) else int(n) for n in shape)
    return Aval(lengths, dtypes.dtype(dtype), weak)


def unwrapped(value: Any) -> Any:
    """Returns the array that an object stands for; anything else as it is."""
    convert = None if isinstance(value, Array) else array_method(value)
    return value if convert is None else convert()


def as_array(value: Any, dtype: Any = None) -> Array:
    """Returns `value` as an array (host memory is copied, never aliased).

    Args:
      value: array-like.
      dtype: the one that is declared for the value, such as an exported program's. Host
        data of this dtype, and Python numbers of its kind, keep 64 bits then although
        `config.x64` is off. No other value is converted to it.

    Raises:
      ArgumentError: `value` is not an array.
      OverflowError: an integer does not fit the dtype that it gets.
    """
    if isinstance(value, Array):
        return value
    kept = None if dtype is None else _kept(value, dtype)
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype == dtypes.float0:
            aval = Aval(value.shape, dtypes.float0)
            return put_host(np.zeros(aval.shape, aval.physical.dtype), aval)
        # A copy: the user may write to the original, and programs run later.
        host = np.array(dtypes.host_array(value, kept))
        aval = Aval(host.shape, host.dtype)
        if transfers.on:
            transfers.guard(transfers.TO_DEVICE, aval, "the default device")
        return put_host(host, aval)
    if isinstance(value, _SCALARS):
        chosen = dtypes.of_python(value, kept)
        aval = Aval((), chosen, not isinstance(value, bool))
        if transfers.on:
            transfers.guard(transfers.TO_DEVICE, aval, "the default device")
        return put_host(np.array(value, chosen), aval)
    convert = array_method(value)
    if convert is not None:
        return as_array(convert(), dtype)
    raise not_an_array(value)


def _kept(value: Any, dtype: Any) -> Any:
    """Returns the declared dtype if a value has it already, at 64 bits; else None."""
    if not dtypes.is_wide(dtype):
        return None
    if dtype == dtypes.uint64 and isinstance(value, int) and type(value) is not bool:
        return dtype
    if isinstance(value, np.ndarray | np.generic):
        own = value.dtype.newbyteorder("=")
        return dtype if own == dtype else None
    for kind in _SCALARS:
        if isinstance(value, kind):
            return dtype if dtypes.default(kind, wide=True) == dtype else None
    return None


def read_only(values: Any) -> Any:
    """Returns a pytree with NumPy arrays replaced by (immutable) arrays.

    For functions that are run as they are (`config.disable_jit`): `x += 1` in them must
    not change what the caller has.
    """
    return tree.map(lambda x: as_array(x) if isinstance(x, np.ndarray) else x, values)
