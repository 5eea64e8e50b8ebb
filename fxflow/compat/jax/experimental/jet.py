"""`jax.experimental.jet`: `fxflow.jet`, of all operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import fxflow
from fxflow.compat.jax._mirror import listen


def jet(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    series: Sequence[Any],
    factorial_scaled: bool = True,
    **_: Any,
) -> Any:
    """See `fxflow.jet`; other keywords are not looked at."""
    return fxflow.jet(fun, primals, series, factorial_scaled)


def jet2(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    series: Sequence[Any],
    *,
    factorial_scaled: bool = False,
    **_: Any,
) -> Any:
    """`jet` of Taylor coefficients, unless told otherwise."""
    return fxflow.jet(fun, primals, series, factorial_scaled)


__all__ = ["jet", "jet2"]

listen(globals())
