"""`jax.experimental.jet`: `fxflow.jet`, of all operations, and rules of clients.

A primitive of a client may have a rule in `jet_rules`, called as `rule(primals, series,
**params)`, which returns the result and its series of derivatives. Operations of fxflow
have their own rules, which the table does not list.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import fxflow
from fxflow.compat.jax._mirror import listen
from fxflow.compat.jax._primitives import ZeroSeries, ZeroTerm, jet_rules

zero_term = ZeroTerm()
zero_series = ZeroSeries()


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


def fact(n: int) -> int:
    """Returns n!."""
    return math.factorial(n)


def zero_prop(prim: Any, primals_in: Any, series_in: Any, **params: Any) -> Any:
    """The rule of what has no derivative."""
    return prim.bind(*primals_in, **params), zero_series


def defzero(prim: Any) -> None:
    """Says that a primitive of a client has no derivative."""
    jet_rules[prim] = functools.partial(zero_prop, prim)


def linear_prop(prim: Any, primals_in: Any, series_in: Any, **params: Any) -> Any:
    """The rule of what is linear in all operands together."""
    terms = [prim.bind(*each, **params) for each in zip(*series_in, strict=True)]
    return prim.bind(*primals_in, **params), terms


def deflinear(prim: Any) -> None:
    """Says that a primitive of a client is linear in all operands together."""
    jet_rules[prim] = functools.partial(linear_prop, prim)


def deriv_prop(prim: Any, deriv: Any, primals_in: Any, series_in: Any) -> Any:
    """The rule of a function of one operand whose derivative is known."""
    (x,), (series,) = primals_in, series_in
    slopes: list[Any] = [deriv(x)]
    if len(series) > 1:
        first, rest = fxflow.jet(deriv, (x,), (list(series[:-1]),))
        slopes = [first, *rest]
    # The derivatives of y' = f'(x) x'.
    terms = [
        sum(math.comb(k, i) * slopes[i] * series[k - i] for i in range(k + 1))
        for k in range(len(series))
    ]
    return prim.bind(x), terms


def def_deriv(prim: Any, deriv: Callable[[Any], Any]) -> None:
    """Gives a primitive of a client, of one operand, its derivative."""
    jet_rules[prim] = functools.partial(deriv_prop, prim, deriv)


def def_comp(prim: Any, comp: Callable[..., Any], **kwargs: Any) -> None:
    """Says which function a primitive of a client is."""
    jet_rules[prim] = functools.partial(jet, comp, **kwargs)


__all__ = [
    *("ZeroSeries", "ZeroTerm", "def_comp", "def_deriv", "deflinear", "defzero"),
    *("deriv_prop", "fact", "jet", "jet2", "jet_rules", "linear_prop", "zero_prop"),
    *("zero_series", "zero_term"),
]

listen(globals())
