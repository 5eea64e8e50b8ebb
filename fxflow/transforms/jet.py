"""`jet`: Taylor-mode differentiation, all derivatives along a curve at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from fxflow.core import tree
from fxflow.core.arrays import Aval, is_arraylike, not_an_array, typeof
from fxflow.core.boundary import boundary, require_callable
from fxflow.core.interpreters.jet import jet_flat
from fxflow.core.ir import arith
from fxflow.core.ir.higher_order import carries_tangent
from fxflow.core.ir.primitive import Zero
from fxflow.core.ir.references import Ref
from fxflow.core.labels import leaf_labels
from fxflow.core.source import name_of
from fxflow.errors import ArgumentError
from fxflow.transforms.arguments import FlatFunction
from fxflow.transforms.tangents import checked_tangent

R = TypeVar("R")


@boundary
def jet(
    fun: Callable[..., R],
    primals: Sequence[Any],
    series: Sequence[Any],
    factorial_scaled: bool = True,
) -> tuple[R, Any]:
    r"""Computes a function's value and its derivatives along a curve.

    The arguments give, for the curve $x(t)$, $x(0)$ and the derivatives $x'(0), x''(0),
    …, x^{(n)}(0)$; the results are $y(0)$ and $y'(0), …, y^{(n)}(0)$ of
    $y(t) = f(x(t))$. The cost grows as a power of n, that of nested `jvp` as $2^n$.
    With $x' = v$ and all others zero they are $f$'s own derivatives along $v$.

    Where the function has an own derivative (`custom_jvp`), that is differentiated; one
    for reverse mode only (`custom_vjp`) is not used.

    Args:
      fun: function of arrays (or pytrees of them).
      primals: tuple or list of arguments: $x(0)$.
      series: for each argument its derivatives, first to n-th: a tuple or list, or an
        array with a first axis of length n. Each has the shape of the argument; a
        Python number stands for an array filled with it. For a pytree, one of the same
        structure with such a sequence at each leaf. Integers have none: what is given
        for them is ignored.
      factorial_scaled: whether these are derivatives; False: Taylor coefficients, of
        which the k-th is the derivative divided by k!.

    Returns:
      `(y, derivatives)`: the second has the structure of the first, with a list of n
      arrays at each leaf.

    Raises:
      ArgumentError: `primals` and `series` do not fit, or a leaf is not an array.
      ShapeError, DtypeError: a derivative does not fit its argument.

    Example:
      >>> y, (first, second) = jet(lambda x: x**3, (2.0,), ([1.0, 0.0],))
      >>> float(y), float(first), float(second)
      (8.0, 12.0, 12.0)

    Source: Griewank & Walther, Evaluating Derivatives, 2008, chapter 13; Bettencourt,
    Johnson & Duvenaud, Taylor-mode automatic differentiation, 2019.
    """
    require_callable(fun, "jet")
    for what, value in (("primals", primals), ("series", series)):
        if not isinstance(value, tuple | list):
            raise ArgumentError(
                f"jet: {what} must be a tuple or list with one entry for each "
                f"argument, got {type(value).__name__}"
            )
    name = name_of(fun)
    if len(primals) != len(series):
        raise ArgumentError(
            f"jet: primals and series of {name} must have one entry for each argument, "
            f"got {len(primals)} and {len(series)}"
        )
    leaves, in_tree = tree.flatten(tuple(primals))
    labels = leaf_labels(fun, tuple(primals), {})
    for leaf, label in zip(leaves, labels, strict=True):
        if isinstance(leaf, Ref):
            raise ArgumentError(
                f"jet: argument {label} of {name} is a reference, which has no Taylor "
                "series: pass its value"
            )
        if not is_arraylike(leaf):
            raise not_an_array(leaf, f"jet: argument {label} of {name} is")
    given = tree.flatten_up_to(in_tree, tuple(series), name=f"jet: series of {name}")
    lists = [
        _sequence(terms, f"jet: the series of argument {label} of {name}")
        for terms, label in zip(given, labels, strict=True)
    ]
    order = len(lists[0]) if lists else 0
    for terms, label in zip(lists, labels, strict=True):
        if len(terms) != order:
            raise ArgumentError(
                f"jet: the series of {name} must have one length: that of argument "
                f"{labels[0]} is {order}, that of {label} is {len(terms)}"
            )
    scales = [math.factorial(k) if factorial_scaled else 1 for k in range(1, order + 1)]
    coefficients = [
        [
            _scaled(arith.div, _derivative(term, typeof(leaf), what), scale)
            for term, scale, what in zip(
                terms,
                scales,
                [
                    f"jet: derivative {k} of argument {label} of {name}"
                    for k in range(1, order + 1)
                ],
                strict=True,
            )
        ]
        for leaf, label, terms in zip(leaves, labels, lists, strict=True)
    ]
    flat = FlatFunction(fun, in_tree, name)
    outs, out_terms = jet_flat(flat, leaves, coefficients, order)
    derivatives = [
        [
            arith.handed_out(_scaled(arith.mul, term, scale), typeof(out))
            for term, scale in zip(
                [terms] * order if type(terms) is Zero else terms, scales, strict=True
            )
        ]
        for out, terms in zip(outs, out_terms, strict=True)
    ]
    return flat.result(outs), flat.out_tree.unflatten(derivatives)


def _sequence(terms: Any, what: str) -> list[Any]:
    """Returns the derivatives of an argument as a list."""
    if isinstance(terms, tuple | list):
        return list(terms)
    if is_arraylike(terms) and typeof(terms).ndim:
        return list(terms)
    given = typeof(terms) if is_arraylike(terms) else type(terms).__name__
    raise ArgumentError(
        f"{what} must be a tuple or list of derivatives, first to last, or an array "
        f"with a first axis for them, got {given}"
    )


def _derivative(value: Any, aval: Aval, what: str) -> Any:
    """Returns a derivative of an argument as an array, or `Zero`."""
    expected = aval.tangent()
    if carries_tangent(aval) and type(value) in (int, float, complex):
        if value == 0:
            return Zero(expected)
        return arith.repeated(
            checked_tangent(value, expected.update(shape=()), what, numbers=True),
            expected.shape,
        )
    return checked_tangent(value, aval, what, numbers=True)


def _scaled(by: Callable[[Any, Any], Any], term: Any, scale: int) -> Any:
    """Returns a coefficient times or over a factorial."""
    if type(term) is Zero or scale == 1:
        return term
    return by(term, arith.constant(float(scale), typeof(term).dtype))
