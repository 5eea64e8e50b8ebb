"""Where samples are made: the argument `out_sharding` of the samplers.

Numbers depend on the key and their position only, so that a device can make its own
part of an array and none has to hold the whole.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from fxflow.core.docs import shared
from fxflow.core.ir.trace import state
from fxflow.core.runtime.eager import EvalTrace
from fxflow.core.runtime.library import library
from fxflow.devices.shardings import Sharding
from fxflow.lax.transfer import as_sharding, laid_out

_NAME = "fxflow.random"
F = TypeVar("F", bound=Callable[..., Any])


_docs = shared("""
    Args:
      key: one key.
      dtype: a float dtype; None means the default.
      out_sharding: a `Sharding`, or a `PartitionSpec` over the current mesh: how the
        result is laid out; each device makes its own part. None: on one device.

    Returns:
      An array of that shape and dtype.

    Raises:
      ArgumentError: `key` is not a key.
      DtypeError: `dtype` is not a float dtype.
      ...
      PlacementError: the result cannot be laid out as `out_sharding` specifies.
""")


def sampler(*static: str) -> Callable[[F], F]:
    """Makes a function `library`, and carries out its argument `out_sharding`.

    Eagerly the function is then one compiled program, of which each device runs its
    share; while tracing, its result is constrained. What samplers of a dtype have in
    common need not stand in their docstrings.

    Args:
      *static: names of the arguments that are not arrays, as for `library`.

    Returns:
      A decorator for functions with the keyword-only argument `out_sharding=None`, of
      which their bodies need to know nothing.
    """

    def decorate(function: F) -> F:
        if "dtype" in static:
            _docs(function)
        plain = library(*static)(function)

        def laid(*, where: Sharding, **given: Any) -> Any:
            return laid_out(_NAME, function(**given), where)

        laid.__name__ = laid.__qualname__ = function.__name__.lstrip("_")
        program = library(*static, "where")(laid)

        @functools.wraps(function)
        def call(*args: Any, out_sharding: Any = None, **kwargs: Any) -> Any:
            if out_sharding is None:
                return plain(*args, **kwargs)
            where = as_sharding(out_sharding, f"{_NAME}: out_sharding")
            given = _signature(function).bind(*args, **kwargs).arguments
            for name in static:
                value = given.get(name)
                if isinstance(value, np.ndarray):
                    value = value.tolist()
                if isinstance(value, list):
                    given[name] = tuple(value)  # to be found again
            out = program(where=where, **given)
            if isinstance(state.trace, EvalTrace) and out.sharding != where:
                return laid_out(_NAME, out, where)
            return out

        return cast(F, call)

    return decorate


_signature = functools.cache(inspect.signature)
