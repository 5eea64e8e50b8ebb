"""`install()`: SciPy's own functions take fxflow arrays.

SciPy computes with the arrays that it is given where `SCIPY_ARRAY_API` is set: it asks
`x.__array_namespace__()` for the functions. Two things the array-API standard cannot
tell it, and it knows them of JAX only: that arrays are immutable, so that `x[i] = v` is
written `x.at[i].set(v)`, and which package has `scipy.special` for them. `install()`
answers both for fxflow, in the copies of array-api-compat and array-api-extra that
SciPy carries and in those that are installed beside it.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import fxflow.numpy as fnp
import fxflow.scipy
from fxflow import ShapeDtypeStruct, config, pure_callback
from fxflow.core.arrays.array import Array
from fxflow.core.ir.trace import Tracer
from fxflow.errors import InconclusiveSizeError

_LIBRARIES = ("array_api_compat", "array_api_extra")
_OURS = "__fxflow__"


def _is_array(original: Callable[[Any], bool], x: Any) -> bool:
    """Whether `x` is written by `x.at[i].set(v)`, as arrays of JAX and fxflow are."""
    return isinstance(x, Array) or original(x)


def _is_writeable(original: Callable[[Any], bool], x: Any) -> bool:
    return not isinstance(x, Array) and original(x)


def _is_lazy(original: Callable[[Any], bool], x: Any) -> bool:
    """Whether `x` has no values yet: a tracer; SciPy's own test computes `any(x)`."""
    return isinstance(x, Tracer) if isinstance(x, Array) else original(x)


def _is_namespace(original: Callable[[Any], bool], xp: Any) -> bool:
    return xp is fnp or original(xp)


def _namespace(original: Callable[..., Any], *arrays: Any) -> Any:
    """Takes lists beside arrays of fxflow, as SciPy does beside those of NumPy."""
    if any(isinstance(x, Array) for x in arrays):
        arrays = tuple(x for x in arrays if not isinstance(x, (list, tuple)))
    return original(*arrays)


def _scipy_for(original: Callable[[Any], Any], xp: Any) -> Any:
    return fxflow.scipy if xp is fnp else original(xp)


def _apply(
    original: Callable[..., Any],
    func: Callable[..., Any],
    *args: Any,
    shape: Any = None,
    dtype: Any = None,
    **kwargs: Any,
) -> Any:
    """Calls compiled code on traced arrays when the program runs."""
    if not any(isinstance(x, Tracer) for x in args):
        return original(func, *args, shape=shape, dtype=dtype, **kwargs)
    arrays = [x for x in args if isinstance(x, Array)]
    if shape is None:
        shape = fnp.broadcast_shapes(*(x.shape for x in arrays))
    many = bool(shape) and isinstance(shape[0], tuple)
    if dtype is None:
        dtype = fnp.result_type(*arrays)
    shapes = shape if many else [shape]
    dtypes = dtype if isinstance(dtype, (list, tuple)) else [dtype] * len(shapes)
    results = [ShapeDtypeStruct(s, d) for s, d in zip(shapes, dtypes)]
    if any(None in s for s in shapes):
        raise InconclusiveSizeError(
            f"{getattr(func, '__name__', func)}: the shape of the result depends on "
            "the values of a traced array: call it outside of jit, vmap and grad"
        )

    def run(*values: Any) -> Any:
        # Compiled code returns NumPy's arrays: of 64 bits where those are the default.
        with config.override(x64=True):
            given = [
                fnp.asarray(value) if isinstance(x, Array) else x
                for value, x in zip(values, args)
            ]
            found = original(func, *given, shape=shape, dtype=dtype, **kwargs)
            found = found if many else [found]
            cast = [fnp.asarray(x, d) for x, d in zip(found, dtypes)]
        return cast if many else cast[0]

    out = pure_callback(
        run, results if many else results[0], *args, vmap_method="sequential"
    )
    return tuple(out) if many else out


_ANSWERS: dict[str, Callable[..., Any]] = {
    "array_namespace": _namespace,
    "is_jax_array": _is_array,
    "is_writeable_array": _is_writeable,
    "is_lazy_array": _is_lazy,
    "is_jax_namespace": _is_namespace,
    "lazy_apply": _apply,
    "scipy_namespace_for": _scipy_for,
}
"""Functions by name, each with what answers for fxflow."""

# The two libraries import jax where the second answers so; SciPy itself does not.
_ONLY_SCIPY = ("array_namespace", "is_jax_namespace")


def _wrap(original: Callable[..., Any], answer: Callable[..., Any]) -> Any:
    @functools.wraps(original)
    def asked(*args: Any, **kwargs: Any) -> Any:
        return answer(original, *args, **kwargs)

    setattr(asked, _OURS, True)
    return asked


def _replace(module: ModuleType, new: dict[Any, Any]) -> None:
    """Replaces the functions in one module that has them or has imported them."""
    library = any(f"{name}." in f"{module.__name__}." for name in _LIBRARIES)
    for name, value in list(vars(module).items()):
        if not isinstance(value, FunctionType) or value.__name__ not in _ANSWERS:
            continue
        asked = value.__name__
        # A function of the same name in another package asks about something else.
        home = f"{value.__module__}."
        if not home.startswith("scipy.") and not any(
            f"{n}." in home for n in _LIBRARIES
        ):
            continue
        if hasattr(value, _OURS) or (library and asked in _ONLY_SCIPY):
            continue
        if value not in new:
            new[value] = _wrap(value, _ANSWERS[asked])
        setattr(module, name, new[value])


def install() -> None:
    """Makes SciPy's functions take fxflow arrays and return them.

    Call it before anything imports SciPy, or set the environment variable
    `SCIPY_ARRAY_API=1` before Python starts: SciPy reads it when it is imported. A
    second call changes nothing. Functions that SciPy writes in terms of the array API
    then run on fxflow arrays, most of them also under `jit`, `vmap` and `grad`;
    `scipy.special` calls `fxflow.scipy.special`; what SciPy has in compiled code
    converts eager arrays to NumPy and back, and refuses traced ones. scikit-learn and
    other packages that carry array-api-compat are served if they are loaded already.

    Raises:
      ImportError: SciPy is not installed.
      RuntimeError: SciPy is loaded already, without `SCIPY_ARRAY_API`.

    Example:
      >>> import fxflow.compat.scipy
      >>> fxflow.compat.scipy.install()  # doctest: +SKIP
      >>> import scipy.stats  # doctest: +SKIP
      >>> scipy.stats.zscore(fnp.asarray([1.0, 2.0, 3.0]))  # doctest: +SKIP
      Array([-1.2247449,  0.       ,  1.2247449], dtype=float32)
    """
    if "scipy" not in sys.modules:
        os.environ.setdefault("SCIPY_ARRAY_API", "1")
    arrays = importlib.import_module("scipy._lib._array_api")
    if not arrays.SCIPY_ARRAY_API:
        raise RuntimeError(
            "fxflow.compat.scipy.install(): SciPy is loaded already, without the "
            "environment variable SCIPY_ARRAY_API, and converts every array to NumPy. "
            "Call install() before anything imports scipy, or set SCIPY_ARRAY_API=1 "
            "before Python starts"
        )
    new: dict[Any, Any] = {}
    for module in list(sys.modules.values()):
        if isinstance(module, ModuleType):
            _replace(module, new)
