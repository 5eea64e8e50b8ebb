"""What distributions of vectors share: docstrings, densities made of their logarithms.

Such a distribution is a module of functions that are named as SciPy's methods are;
those of numbers are made by `_protocol`.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar, cast

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.errors import DtypeError
from fxflow.numpy.selection import choose_between

F = TypeVar("F", bound=Callable[..., Any])

LOG_2PI = math.log(2 * math.pi)

# Summaries of the functions that are made of others.
_SUMMARIES = {
    "pdf": "Returns the probability density.",
    "pmf": "Returns the probability of a number.",
}
_EDGES = {
    "logpdf": "-inf outside of the support.",
    "logpmf": "-inf outside of the support, and between integers.",
    "pdf": "0 outside of the support.",
    "pmf": "0 outside of the support, and between integers.",
}
_COMMON = """
    Args:
      key: a key of `fxflow.random`.
      dtype: a float dtype; None means the default.

    Returns:
      Float array of the broadcast shape; nan where a parameter is invalid, such as a
      negative scale.

    Raises:
      ArgumentError: an argument is not an array.
      DtypeError: an argument is complex.
      ShapeError: the shapes do not broadcast.

    Source: `scipy.stats.{distribution}.{name}`.
"""


class Distribution:
    """Makes functions of a distribution: one plan when eager, with their docstrings.

    It decorates those that are written out; `exp` makes the others of them.

    Args:
      parameters: docstring entries of its own parameters, `name: what` each on a line.
      *static: names of parameters that are not arrays.
    """

    def __init__(self, parameters: str, *static: str) -> None:
        own = "".join(f"\n      {line}" for line in parameters.strip().splitlines())
        self._common = _COMMON.replace("Args:\n", f"Args:{own}\n", 1)
        self._static = static

    def __call__(self, function: F) -> F:
        name = function.__name__
        doc = inspect.cleandoc(function.__doc__ or "")
        if name in _EDGES and "Special cases:" not in doc:
            doc += f"\n\nSpecial cases:\n  {_EDGES[name]}"
        function.__doc__ = doc
        distribution = function.__module__.rpartition(".")[2]
        common = self._common.replace("{distribution}", distribution)
        return library(*self._static)(shared(common)(function))

    def exp(self, function: F) -> F:
        """Returns `pdf` for `logpdf`, `pmf` for `logpmf`."""
        name = function.__name__.removeprefix("log")
        plain: Any = inspect.unwrap(function)
        template = FunctionType(plain.__code__, {}, name, plain.__defaults__)
        template.__module__, template.__doc__ = plain.__module__, _SUMMARIES[name]

        def derived(*args: Any, **kwargs: Any) -> Array:
            return lax.exp(function(*args, **kwargs))

        functools.update_wrapper(derived, plain)
        derived.__name__ = derived.__qualname__ = name
        derived.__doc__ = self(template).__doc__
        derived.__signature__ = inspect.signature(plain)  # type: ignore[attr-defined]
        del derived.__wrapped__  # type: ignore[attr-defined]
        return cast(F, library()(derived))


def require_integers(name: str, **given: Array) -> None:
    """Raises an error unless arrays, by their names, are of integers."""
    for what, array in given.items():
        if not dtypes.is_integer(array.aval.dtype):
            raise DtypeError(f"{name}: {what} must be integers, got {array.aval}")


def covariance_of_one(p: Array) -> Array:
    """Returns diag(p) - p pᵀ: the covariance of one trial's results, [..., r, r]."""
    along = p[..., None] * fnp.eye(p.aval.shape[-1], dtype=p.aval.dtype)
    return along - p[..., :, None] * p[..., None, :]


def inside(condition: Any, value: Any, outside: float) -> Array:
    """Returns a value where a condition holds, a number elsewhere."""
    return choose_between(condition, value, lax.full_like(value, outside))
