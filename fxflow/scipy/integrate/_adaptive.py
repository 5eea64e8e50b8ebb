"""The adaptive rule of all integrals: boxes in a unit cube, the worst one divided.

`quad`, `quad_vec`, `tanhsinh`, `nsum` and `cubature` differ in their maps from the cube
to what is integrated over, and in their rules.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array
from fxflow.transforms.custom_derivatives import closure_convert
from fxflow.transforms.custom_jvp import custom_jvp
from fxflow.transforms.custom_vmap import custom_vmap
from fxflow.transforms.vjp import linearize
from fxflow.transforms.vmap import vmap

#: As many boxes have their derivatives at once; more of them in a loop.
_AT_ONCE = 64


# -- rules -----------------------------------------------------------------------------


class Rule(NamedTuple):
    """A rule on the unit cube, with a cheaper one on the same nodes.

    Attributes:
      nodes: float[m, d].
      weights: float[m], whose sum is 1.
      inner: float[m], likewise.
      sharp: whether the difference is far above the error, as QUADPACK estimates it.
    """

    nodes: Any
    weights: Any
    inner: Any
    sharp: bool


@functools.cache
def gauss(n: int) -> tuple[Any, Any]:
    """Returns nodes from -1 to 1 and weights of the Gauss rule."""
    return np.polynomial.legendre.leggauss(n)


@functools.cache
def kronrod_rule(n: int, dimensions: int = 1) -> Rule:
    """Returns the rule of 2n + 1 nodes, or its product in several dimensions."""
    nodes, weights, inner = _kronrod(n)
    nodes, weights, inner = (nodes + 1) / 2, weights / 2, inner / 2
    grid = np.stack(np.meshgrid(*[nodes] * dimensions, indexing="ij"), -1)

    def product(v: Any) -> Any:
        return functools.reduce(np.multiply.outer, [v] * dimensions).ravel()

    return Rule(
        grid.reshape(-1, dimensions), product(weights), product(inner), dimensions == 1
    )


@functools.cache
def trapezoid_rule() -> Rule:
    """Returns Simpson's rule of five nodes, with the trapezoidal rule of three."""
    nodes = np.linspace(0, 1, 5)[:, None]
    return Rule(
        nodes, np.array([1, 4, 2, 4, 1]) / 12, np.array([1, 0, 2, 0, 1]) / 4, False
    )


@functools.cache
def genz_malik_rule(dimensions: int) -> Rule:
    """Returns Genz and Malik's rule of degree 7, with that of degree 5."""
    n = dimensions
    axes = np.concatenate([np.eye(n), -np.eye(n)])
    rows = [np.zeros((1, n)), math.sqrt(9 / 70) * axes, math.sqrt(9 / 10) * axes]
    pairs = []
    for i, j in itertools.combinations(range(n), 2):
        for first, second in itertools.product((1, -1), repeat=2):
            row: Any = np.zeros(n)
            row[i], row[j] = first, second
            pairs.append(math.sqrt(9 / 10) * row)
    rows.append(np.reshape(pairs, (-1, n)))
    corners = list(itertools.product((1, -1), repeat=n))
    rows.append(math.sqrt(9 / 19) * np.array(corners, float))
    counts = [len(r) for r in rows]
    seventh = (
        *((12824 - 9120 * n + 400 * n**2) / 19683, 980 / 6561),
        *((1820 - 400 * n) / 19683, 200 / 19683, 6859 / 19683 / 2**n),
    )
    fifth = (
        *((729 - 950 * n + 50 * n**2) / 729, 245 / 486),
        *((265 - 100 * n) / 1458, 25 / 729, 0.0),
    )
    return Rule(
        (np.concatenate(rows) + 1) / 2,
        np.repeat(seventh, counts),
        np.repeat(fifth, counts),
        False,
    )


@functools.cache
def _kronrod(n: int) -> tuple[Any, Any, Any]:
    """Returns nodes of Kronrod's rule, its weights, and those of Gauss's rule in it.

    The nodes go from -1 to 1.

    The nodes are the eigenvalues of the Jacobi-Kronrod matrix, whose lower half follows
    from the upper one by Laurie's algorithm.
    """
    # Recurrence of Legendre's polynomials; only the b's are not 0.
    size = 2 * n + 1
    known = math.ceil(3 * n / 2) + 1
    b: Any = np.zeros(size)
    degree = np.arange(1, known)
    b[1:known] = degree**2 / (4.0 * degree**2 - 1)
    b[0] = 2.0
    a: Any = np.zeros(size)
    s: Any = np.zeros(n // 2 + 2)
    t: Any = np.zeros(n // 2 + 2)
    t[1] = b[n + 1]
    for m in range(n - 1):
        u: Any = 0.0
        for k in range((m + 1) // 2, -1, -1):
            at = m - k
            u += (a[k + n + 1] - a[at]) * t[k + 1]
            u += b[k + n + 1] * s[k] - b[at] * s[k + 1]
            s[k + 1] = u
        s, t = t, s
    for j in range(n // 2, -1, -1):
        s[j + 1] = s[j]
    for m in range(n - 1, 2 * n - 2):
        u = 0.0
        j = 0
        for k in range(m + 1 - n, (m - 1) // 2 + 1):
            at = m - k
            j = n - 1 - at
            u -= (a[k + n + 1] - a[at]) * t[j + 1]
            u -= b[k + n + 1] * s[j + 1] - b[at] * s[j + 2]
            s[j + 1] = u
        k = (m + 1) // 2
        if m % 2 == 0:
            a[k + n + 1] = a[k] + (s[j + 1] - b[k + n + 1] * s[j + 2]) / t[j + 2]
        else:
            b[k + n + 1] = s[j + 1] / s[j + 2]
        s, t = t, s
    a[2 * n] = a[n - 1] - b[2 * n] * s[1] / t[1]
    root = np.sqrt(b[1:])
    nodes, vectors = np.linalg.eigh(np.diag(a) + np.diag(root, 1) + np.diag(root, -1))
    nodes = (nodes - nodes[::-1]) / 2
    weights = 2 * vectors[0] ** 2
    weights = (weights + weights[::-1]) / 2
    inner = np.zeros(size)
    inner[1::2] = gauss(n)[1]
    return nodes, weights, inner


# -- the search ------------------------------------------------------------------------


class Integral(NamedTuple):
    """What the search has found.

    Attributes:
      value: the integral.
      errors: the estimates of its elements' errors.
      error: the norm of these.
      used: int: the number of boxes.
      converged: bool: whether the error is small enough, or as small as rounding
        allows.
    """

    value: Array
    errors: Array
    error: Array
    used: Array
    converged: Array


class _Split(NamedTuple):
    """Boxes in the cube, the first `used` ones in use."""

    lows: Array
    widths: Array
    values: Array
    errors: Array
    scales: Array
    used: Array


def largest(values: Array) -> Array:
    """Returns the largest absolute value, and 0 of no values."""
    return fnp.max(fnp.abs(values), initial=0)


def integrated(
    integrand: Callable[..., Any],
    given: tuple[Any, ...],
    rule: Rule,
    epsabs: Any,
    epsrel: Any,
    limit: int,
    *,
    pieces: int = 1,
    starts: tuple[Array, Array] | None = None,
    norm: Callable[[Array], Array] | None = largest,
    watch: Callable[..., None] | None = None,
) -> Integral:
    """Integrates a function over the unit cube, differentiably.

    Args:
      integrand: called with a point, float[d], and `given`; returns float or
        complex[...].
      given: float arrays on which the integrand depends; with those that it closes
        over, what derivatives are by.
      rule: the rule of each box.
      epsabs: the error that is small enough.
      epsrel: likewise, relative to the integral.
      limit: the maximum number of boxes.
      pieces: the number of equal boxes at first, along the first dimension.
      starts: the first boxes in place of these: corners and widths, float[k, d].
      norm: of an array of elements; None means that each element has to satisfy the
        tolerances by itself.
      watch: called with the integrals so far, their errors, the numbers of boxes and
        `given`, before the first division and after each, where `vmap` maps the
        integrals: all of these have the mapped axis in front.
    """
    d = rule.nodes.shape[1]
    dtype = given[0].dtype
    tiny = float(np.finfo(dtype).eps)
    nodes, weights, inner = (fnp.asarray(v, dtype) for v in rule[:3])
    converted, captured = closure_convert(integrand, fnp.zeros(d, dtype), *given)

    def values(lows: Array, widths: Array, *given: Any) -> Array:
        """Returns the integrand at the nodes of boxes, array[k, m, ...]."""
        at = lows[:, None] + widths[:, None] * nodes
        one = vmap(lambda u: fnp.asarray(converted(u, *given)))
        y = one(fnp.reshape(at, (-1, d)))
        return fnp.reshape(y, at.shape[:2] + y.shape[1:])

    fixed = [lax.stop_gradient(v) for v in (*given, *captured)]

    def estimated(lows: Array, widths: Array) -> tuple[Array, Array, Array]:
        y = values(lows, widths, *fixed)
        volumes = fnp.prod(widths, 1)
        value = _weighted(weights, volumes, y)
        error = fnp.abs(value - _weighted(inner, volumes, y))
        size = _weighted(weights, volumes, fnp.abs(y))
        if rule.sharp:
            mean = (value / _over(volumes, value))[:, None]
            spread = _weighted(weights, volumes, fnp.abs(y - mean))
            safe = fnp.where(spread == 0, 1, spread)
            sharper = spread * fnp.minimum(1, (200 * error / safe) ** 1.5)
            error = fnp.where((spread != 0) & (error != 0), sharper, error)
        return value, fnp.maximum(error, 50 * tiny * fnp.abs(size)), fnp.abs(size)

    def bound(split: _Split) -> Array:
        """Returns the error that is small enough: a number, or of each element."""
        total, scale = fnp.sum(split.values, 0), fnp.sum(split.scales, 0)
        if norm is None:
            size, rounding = fnp.abs(total), scale
        else:
            size, rounding = norm(total), norm(scale)
        return fnp.maximum(fnp.maximum(epsabs, epsrel * size), 60 * tiny * rounding)

    def error_of(split: _Split) -> Array:
        errors = fnp.sum(split.errors, 0)
        return errors if norm is None else norm(errors)

    def is_met(split: _Split) -> Array:
        return fnp.all(error_of(split) <= bound(split))

    halves = fnp.asarray(list(itertools.product((0, 0.5), repeat=d)), dtype)
    count = 2**d
    if starts is None:
        starts = _equal_boxes(pieces, d, dtype)
    pieces = len(starts[0])
    room = max(limit, pieces)

    def goes_on(split: _Split) -> Any:
        return (split.used + (count - 1) <= room) & ~is_met(split)

    def divided(split: _Split) -> _Split:
        if norm is None:
            share = split.errors / fnp.maximum(bound(split), tiny**2)
            order = vmap(largest)(share)
        else:
            order = vmap(norm)(split.errors)
        worst = fnp.argmax(order)
        widths = split.widths[worst]
        lows = split.lows[worst] + widths * halves
        widths = fnp.broadcast_to(widths / 2, lows.shape)
        more = split.used + fnp.arange(count - 1, dtype=np.int32)
        at = fnp.concatenate([worst.astype(np.int32)[None], more])
        new = (lows, widths, *estimated(lows, widths))
        old = split[:5]
        parts = [o.at[at].set(v) for o, v in zip(old, new, strict=True)]
        return _Split._make([*parts, split.used + (count - 1)])

    first = (*starts, *estimated(*starts))
    start = [fnp.pad(v, [(0, room - pieces)] + [(0, 0)] * (v.ndim - 1)) for v in first]
    split = _Split._make([*start, fnp.asarray(pieces, np.int32)])
    if watch is None:
        split = lax.while_loop(goes_on, divided, split)
    else:
        shown = lambda s, given: (fnp.sum(s.values, 0), error_of(s), s.used, *given)
        split = _watched_loop(
            goes_on, divided, split, shown, fixed[: len(given)], watch
        )

    again = _parts_again(values, weights, room)
    total = _attached(again, (*given, *captured), split, fnp.sum(split.values, 0))
    errors = fnp.sum(split.errors, 0)
    error = largest(errors) if norm is None else norm(errors)
    return Integral(total, errors, error, split.used, is_met(split))


def _watched_loop(
    goes_on: Callable[[_Split], Any],
    divided: Callable[[_Split], _Split],
    start: _Split,
    shown: Callable[[_Split, Any], Any],
    given: Sequence[Array],
    watch: Callable[..., None],
) -> _Split:
    """Runs the loop of integrals that `vmap` maps, and shows the states of all."""
    test, of_test = closure_convert(goes_on, start)
    body, of_body = closure_convert(divided, start)

    @custom_vmap
    def loop(start: _Split, of_test: Any, of_body: Any, given: Any) -> Any:
        return lax.while_loop(
            lambda split: test(split, *of_test),
            lambda split: body(split, *of_body),
            start,
        )

    @loop.def_vmap
    def _(size: int, mapped: Any, *values: Any) -> Any:
        def whole(leaf: Any, is_mapped: bool) -> Any:
            return leaf if is_mapped else fnp.broadcast_to(leaf, (size, *leaf.shape))

        start, of_test, of_body, given = tree.map(whole, list(values), list(mapped))

        def step(split: _Split) -> _Split:
            left = vmap(test)(split, *of_test)
            new = vmap(body)(split, *of_body)
            # Integrals that are found stay as they are.
            new = _Split._make(
                fnp.where(_over(left, after), after, before)
                for before, after in zip(split, new, strict=True)
            )
            watch(*vmap(shown)(new, given))
            return new

        watch(*vmap(shown)(start, given))
        end = lax.while_loop(
            lambda split: fnp.any(vmap(test)(split, *of_test)), step, start
        )
        return end, True

    found: _Split = loop(start, of_test, of_body, list(given))
    return found


def _equal_boxes(pieces: int, d: int, dtype: Any) -> tuple[Array, Array]:
    """Returns corners and widths of equal boxes along the first dimension."""
    lows = fnp.zeros((pieces, d), dtype)
    lows = lows.at[:, 0].set(fnp.arange(pieces, dtype=dtype) / pieces)
    return lows, fnp.ones((pieces, d), dtype).at[:, 0].set(1 / pieces)


def _over(factors: Array, values: Array) -> Array:
    """Returns factors of rows with the number of dimensions of the values."""
    return fnp.reshape(factors, factors.shape + (1,) * (values.ndim - 1))


def _parts_again(values: Any, weights: Array, room: int) -> Callable[..., Array]:
    """Returns the function that integrates over found boxes, to be differentiated."""

    def part(given: Any, split: _Split, lows: Array, widths: Array, used: Array) -> Any:
        # Boxes that are not in use repeat the first one.
        lows = fnp.where(used[:, None], lows, split.lows[0])
        widths = fnp.where(used[:, None], widths, split.widths[0])
        parts = _weighted(weights, fnp.prod(widths, 1), values(lows, widths, *given))
        return fnp.sum(fnp.where(_over(used, parts), parts, 0), 0)

    def again(given: Any, split: _Split) -> Any:
        used = fnp.arange(room) < split.used
        if room <= _AT_ONCE:
            return part(given, split, split.lows, split.widths, used)

        def rows(v: Array) -> Array:
            more = [(0, -room % _AT_ONCE)] + [(0, 0)] * (v.ndim - 1)
            return fnp.reshape(fnp.pad(v, more), (-1, _AT_ONCE, *v.shape[1:]))

        def add(total: Array, row: Any) -> Any:
            return total + part(given, split, *row), None

        zero = fnp.zeros_like(split.values[0])
        return lax.scan(add, zero, (rows(split.lows), rows(split.widths), rows(used)))[
            0
        ]

    return again


def _weighted(weights: Array, volumes: Array, y: Array) -> Array:
    """Returns the integrals of boxes from values at their nodes, array[k, m, ...]."""
    total = fnp.tensordot(weights.astype(y.dtype), y, ((0,), (1,)))
    return _over(volumes, total) * total


@functools.partial(custom_jvp, nondiff_argnums=(0,))
def _attached(again: Any, given: Any, split: _Split, value: Array) -> Array:
    """Returns a value, with the derivative of `again`, which computes it anew."""
    return value


@_attached.defjvp
def _(again: Any, primals: Any, tangents: Any) -> tuple[Array, Array]:
    given, split, value = primals
    _, linear = linearize(lambda given: again(given, split), given)
    return _attached(again, given, split, value), linear(tangents[0])


# -- maps from 0 … 1 -------------------------------------------------------------------


def smoothed(u: Array) -> tuple[Array, Array, Array]:
    """Returns s = u² (3 - 2u), 1 - s, and ds/du.

    It makes weak singularities at the ends, such as 1 / √x, smooth.
    """
    rest = 1 - u
    return u * u * (1 + 2 * rest), rest * rest * (1 + 2 * u), 6 * u * rest


def placed(
    u: Array, a: Array, b: Array, infinite: tuple[bool, bool]
) -> tuple[Array, Array]:
    """Returns a point of an interval, and the derivative with respect to u.

    Args:
      u: from 0 to 1.
      a: the lower bound.
      b: the upper bound.
      infinite: whether a is -inf, and whether b is inf.
    """
    s, rest, slope = smoothed(u)
    if infinite == (False, False):
        # From the nearer end, so that no digits are lost there.
        x = fnp.where(u < 0.5, a + (b - a) * s, b - (b - a) * rest)
        return x, (b - a) * slope
    if infinite == (False, True):
        return a + s / rest, slope / (rest * rest)
    if infinite == (True, False):
        return b - rest / s, slope / (s * s)
    both = 2 * s * 2 * rest  # 1 - t² with t = 2s - 1
    t = s - rest
    return t / both, 2 * slope * (1 + t * t) / (both * both)
