"""What the distributions share: operands, docstrings, functions made of others.

A distribution is a module of functions that are named as SciPy's methods are. The
module describes its own parameters; all else that they have in common is said here.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar, cast

from fxflow import lax
from fxflow.core.arrays.array import Array
from fxflow.core.docs import shared
from fxflow.core.ir.arith import repeated
from fxflow.core.runtime.library import library
from fxflow.numpy._operands import promote_inexact
from fxflow.numpy.selection import choose_between
from fxflow.scipy.special._operands import operands

F = TypeVar("F", bound=Callable[..., Any])

LOG_2PI = math.log(2 * math.pi)

# Summaries of the functions that are made of others.
_SUMMARIES = {
    "pdf": "Returns the probability density.",
    "pmf": "Returns the probability of a number.",
    "logcdf": "Returns the logarithm of the distribution function.",
    "cdf": "Returns the distribution function: the probability of at most that.",
    "logsf": "Returns the logarithm of the survival function.",
    "sf": "Returns the survival function: the probability of more than that.",
}
_EDGES = {
    "logpdf": "-inf outside of the support.",
    "logpmf": "-inf outside of the support, and between integers.",
    "pdf": "0 outside of the support.",
    "pmf": "0 outside of the support, and between integers.",
    "ppf": "nan outside of 0 … 1.",
    "isf": "nan outside of 0 … 1.",
}
_COMMON = """
    Args:
      x: real array-like: where.
      k: real array-like: which number.
      q: real array-like, probabilities from 0 to 1.
      p: real array-like, probabilities from 0 to 1.
      loc: real array-like: how far it is moved.
      scale: positive real array-like: how many times wider it is.

    Returns:
      Float array of the broadcast shape; nan where a parameter describes no
      distribution, such as a negative scale.

    Raises:
      ArgumentError: an argument is not an array.
      DtypeError: an argument is complex.
      ShapeError: the shapes do not broadcast together.

    Source: `scipy.stats.{distribution}.{name}`.
"""


# -- what a parameter may be: elsewhere there is no distribution -----------------------


def positive(x: Any) -> Any:
    """Returns where a scale or a shape is one."""
    return x > 0


def not_negative(x: Any) -> Any:
    """Returns where a mean of counts is one."""
    return x >= 0


def count(x: Any) -> Any:
    """Returns where a number of trials is one."""
    return (x >= 0) & is_whole(x)


def probability(x: Any) -> Any:
    """Returns where a probability is one."""
    return (x >= 0) & (x <= 1)


class Distribution:
    """Makes functions of a distribution: one plan when eager, with their docstrings.

    It decorates those that are written out; `exp` and `log` make the others of them.

    Args:
      parameters: docstring entries of its own parameters, `name: what` each on a line.
      *static: names of parameters that are not arrays.
      **domains: of a parameter, where it describes a distribution: results are nan
        elsewhere. A scale is always positive.
    """

    def __init__(
        self, parameters: str = "", *static: str, **domains: Callable[[Any], Any]
    ) -> None:
        own = "".join(f"\n      {line}" for line in parameters.strip().splitlines())
        self._common = _COMMON.replace("\n\n    Returns", f"{own}\n\n    Returns", 1)
        self._static = static
        self._domains = {"scale": positive, **domains}

    def __call__(self, function: F) -> F:
        name = function.__name__
        doc = inspect.cleandoc(function.__doc__ or "")
        if name in _EDGES and "Special cases:" not in doc:
            doc += f"\n\nSpecial cases:\n  {_EDGES[name]}"
        function.__doc__ = doc
        distribution = function.__module__.rpartition(".")[2]
        common = self._common.replace("{distribution}", distribution)
        return library(*self._static)(shared(common)(self._known(function)))

    def _known(self, function: F) -> F:
        """Returns a function that is nan where a parameter is outside of its domain."""
        signature = inspect.signature(function)
        domains = {n: d for n, d in self._domains.items() if n in signature.parameters}
        if not domains:
            return function
        name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"

        def known(*args: Any, **kwargs: Any) -> Array:
            value: Array = function(*args, **kwargs)
            given = signature.bind(*args, **kwargs).arguments
            for parameter, domain in domains.items():
                if parameter in given:
                    (x,) = promote_inexact(name, given[parameter])
                    where = repeated(domain(x), value.aval.shape)
                    value = inside(where, value, math.nan)
            return value

        return cast(F, functools.wraps(function)(known))

    def exp(self, function: F) -> F:
        """Returns `pdf` for `logpdf`, `cdf` for `logcdf`, and so on."""
        return self._of(function, function.__name__.removeprefix("log"), lax.exp)

    def log(self, function: F) -> F:
        """Returns `logcdf` for `cdf`, `logsf` for `sf`."""
        return self._of(function, f"log{function.__name__}", lax.log)

    def _of(self, function: F, name: str, change: Callable[[Any], Array]) -> F:
        """Returns a function of the same signature, whose result is changed."""
        plain: Any = inspect.unwrap(function)
        template = FunctionType(plain.__code__, {}, name, plain.__defaults__)
        template.__module__, template.__doc__ = plain.__module__, _SUMMARIES[name]

        def derived(*args: Any, **kwargs: Any) -> Array:
            return change(function(*args, **kwargs))

        functools.update_wrapper(derived, plain)
        derived.__name__ = derived.__qualname__ = name
        derived.__doc__ = self(template).__doc__
        derived.__signature__ = inspect.signature(plain)  # type: ignore[attr-defined]
        del derived.__wrapped__  # type: ignore[attr-defined]
        return cast(F, library()(derived))


def standard(name: str, x: Any, loc: Any, scale: Any, *parameters: Any) -> list[Array]:
    """Returns (x - loc) / scale, the scale and the parameters, as operands."""
    x, loc, scale, *rest = operands(name, x, loc, scale, *parameters)
    return [(x - loc) / scale, scale, *rest]


def moved(name: str, k: Any, loc: Any, *parameters: Any) -> list[Array]:
    """Returns k - loc and the parameters, as operands."""
    k, loc, *rest = operands(name, k, loc, *parameters)
    return [k - loc, *rest]


def is_whole(x: Any) -> Any:
    """Returns whether numbers are integers."""
    return lax.floor(x) == x


def inside(condition: Any, value: Any, outside: float) -> Array:
    """Returns a value where a condition holds, a number elsewhere."""
    return choose_between(condition, value, lax.full_like(value, outside))


def with_nan(x: Any, value: Any) -> Array:
    """Returns a value, but nan where `x` is."""
    # Its derivative does not pass through x, which may be infinite.
    return choose_between(x != x, lax.stop_gradient(x), value)
