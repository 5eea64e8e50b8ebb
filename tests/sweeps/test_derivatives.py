"""Derivatives of all functions, in 64 bits, against differences of their values.

At ordinary points: forward, reverse, and both of the gradient. At odd ones (zeros,
ties, the ends of the domain) each partial derivative that has a limit from either side
must lie between the two, so that a kink may have any slope between those beside it, and
is never nan; what has a limit from one side only, at an end of the domain, must be it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import tree
from tests.sweeps.catalogue import Call, catalogue
from tests.sweeps.derivatives import FIXED, differentiable_calls
from tests.sweeps.sampling import sample

#: What need only have one derivative in both directions at odd points, and why.
LOOSE = dict.fromkeys(
    (
        "numpy.linalg.svd",
        "numpy.linalg.svdvals",
        "numpy.linalg.norm-matrix2",
        "numpy.linalg.norm-matrix-2",
        "numpy.linalg.norm-matrixnuc",
        "lax.linalg.svd",
        "scipy.linalg.svd",
    ),
    "any vectors may be taken for equal singular values, so there are many slopes",
) | {
    "numpy.linalg.lstsq": "the solution jumps where the rank does",
}
LOOSE |= {
    str(c): "a density is an exponential, of minus infinity at the end of its support"
    for c in catalogue()
    if c.name.startswith("scipy.stats.")
}

Function = Callable[..., Any]


def _active(call: Call, arrays: Sequence[Any]) -> list[int]:
    """Returns which operands are of wide numbers that have derivatives."""
    fixed = FIXED.get(call.name, ())
    return [i for i, a in enumerate(arrays) if _wide(a) and a.size and i not in fixed]


def _wide(value: Any) -> bool:
    return getattr(value, "dtype", None) in (np.float64, np.complex128)


def _flat(call: Call, arrays: Sequence[Any], active: Sequence[int]) -> Function:
    """Returns the call as a function of its active operands to one vector."""

    def f(*values: Any) -> Any:
        given = list(arrays)
        for i, value in zip(active, values, strict=True):
            given[i] = value
        parts = [fnp.ravel(x) for x in tree.leaves(call.run(*given)) if _wide(x)]
        return fnp.concatenate(parts) if parts else fnp.zeros(0)

    return f


def _values(f: Function, values: Sequence[Any]) -> Any:
    with np.errstate(all="ignore"):
        return np.asarray(f(*values))


def _direction(rng: np.random.Generator, value: Any) -> Any:
    """Returns where to go: of a symmetric matrix, so that it stays one."""
    out = rng.normal(size=value.shape)
    if value.dtype.kind == "c":
        out = out + 1j * rng.normal(size=value.shape)
    square = value.ndim > 1 and value.shape[-1] == value.shape[-2]
    if square and np.allclose(value, np.conj(np.swapaxes(value, -1, -2))):
        out = out + np.conj(np.swapaxes(out, -1, -2))
    return out


def _along(values: Sequence[Any], ways: Sequence[Any], step: float) -> list[Any]:
    return [v + step * w for v, w in zip(values, ways, strict=True)]


def _difference(f: Function, values: Sequence[Any], ways: Sequence[Any]) -> Any:
    """Returns the central difference of order 4."""
    h = 1e-4
    with np.errstate(all="ignore"):
        near, far = (
            (_values(f, _along(values, ways, s)) - _values(f, _along(values, ways, -s)))
            / (2 * s)
            for s in (h, 2 * h)
        )
        return (4 * near - far) / 3


def _dot(xs: Sequence[Any], ys: Sequence[Any]) -> float:
    return float(
        sum(np.sum(np.asarray(x) * y).real for x, y in zip(xs, ys, strict=True))
    )


def _close(got: Any, want: Any, tolerance: float) -> None:
    got, want = np.asarray(got), np.asarray(want)
    scale = max(1.0, float(np.max(np.abs(want), initial=0)))
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize(
    "call", sample(differentiable_calls(), 60, of="derivatives"), ids=str
)
def test_at_an_ordinary_point(call: Call) -> None:
    with fxflow.config.override(x64=True):
        arrays = call.draw(np.float64)
        active = _active(call, arrays)
        f = _flat(call, arrays, active)
        values = [arrays[i] for i in active]
        if not values:
            return
        rng = np.random.default_rng(zlib.crc32(str(call).encode()))
        ways = [_direction(rng, v) for v in values]
        first, slope = fxflow.jvp(f, values, ways)
        if not first.size:
            return
        finite = np.isfinite(first)
        assert np.isfinite(np.asarray(slope)[finite]).all()
        _close(slope[finite], _difference(f, values, ways)[finite], 1e-6)

        weights = np.where(finite, rng.normal(size=first.shape), 0).astype(first.dtype)
        slope = np.where(finite, slope, 0)

        def gradient(*values: Any) -> Any:
            return fxflow.vjp(f, *values)[1](weights)

        slopes = gradient(*values)
        _close(_dot(slopes, ways), _dot([weights], [slope]), 1e-9)

        flat = lambda *values: fnp.concatenate(
            [fnp.ravel(g) for g in gradient(*values)]
        )
        bend = fxflow.jvp(flat, values, ways)[1]
        _close(bend, _difference(flat, values, ways), 1e-5)
        weights_2 = rng.normal(size=bend.shape).astype(bend.dtype)
        bends = fxflow.vjp(flat, *values)[1](weights_2)
        _close(_dot(bends, ways), _dot([weights_2], [bend]), 1e-9)


# -- odd points ------------------------------------------------------------------------


def _filled(value: float) -> Function:
    return lambda operand, array: np.full_like(array, value)


def _first_zero(operand: Any, array: Any) -> Any:
    out = array.copy()
    out.flat[0] = 0
    return out


def _first_twice(operand: Any, array: Any) -> Any:
    out = array.copy()
    out.flat[-1] = out.flat[0]
    return out


POINTS: dict[str, Function] = {
    "zeros": _filled(0.0),
    "ones": _filled(1.0),
    "minus ones": _filled(-1.0),
    "ties": _filled(0.7),
    "a zero": _first_zero,
    "a tie": _first_twice,
    "lowest": lambda operand, array: np.full_like(array, operand.low),
    "highest": lambda operand, array: np.full_like(array, operand.high),
}

H = 1e-7


def _one_sided(f: Function, values: Sequence[Any], sign: int) -> Any:
    """Returns differences to one side where they converge, else nan.

    Returns:
      A matrix of results by elements.
    """
    sizes = [v.size for v in values]
    count, ends = sum(sizes), np.cumsum([0, *sizes])
    moved = []
    for k, v in enumerate(values):
        rows = np.repeat(v[None], 2 * count + 1, axis=0)
        flat = rows.reshape(2 * count + 1, -1)
        for i in range(v.size):
            flat[1 + ends[k] + i, i] += sign * H
            flat[1 + count + ends[k] + i, i] += sign * H / 4
        moved.append(rows)
    with np.errstate(all="ignore"):
        found = np.asarray(fxflow.vmap(f)(*moved))
        here, wide, narrow = found[0], found[1 : count + 1], found[count + 1 :]
        wide = (wide - here) / (sign * H)
        narrow = (narrow - here) / (sign * H / 4)
        settled = np.abs(wide - narrow) <= 1e-3 * (1 + np.abs(narrow))
    return np.where(settled, narrow, np.nan).T


def _require_between(
    slopes: Any, sides: Sequence[Any], near: Callable[[], list[Any]], what: str
) -> None:
    """Checks derivatives where there is a limit from either side, or from one.

    Where a result has no limit by some element, neither its other derivatives are
    asked for nor those of other results by that element: they are 0 times infinity.

    Args:
      slopes: a matrix of derivatives.
      sides: differences from above and from below, nan where there is no limit.
      near: the derivatives at points nearby, between which those at a kink of several
        elements together (of a sort, say) may also lie.
      what: for the message.
    """
    open_ = np.isnan(np.fmin(*sides))
    known = ~open_.any(axis=1, keepdims=True) & ~open_.any(axis=0, keepdims=True)

    def outside(limits: Sequence[Any]) -> Any:
        low, high = np.fmin.reduce(limits), np.fmax.reduce(limits)
        with np.errstate(invalid="ignore"):
            slack = 3e-3 * (1 + np.abs(low) + np.abs(high))
            return known & ~((slopes >= low - slack) & (slopes <= high + slack))

    wrong = outside(sides)
    if wrong.any():
        wrong = outside([*sides, *near()])
    above, below = sides
    assert not wrong.any(), (
        f"{what}: {slopes[wrong][:4]} at {np.argwhere(wrong)[:4].tolist()}, "
        f"differences {above[wrong][:4]} above, {below[wrong][:4]} below"
    )


def _nearby(values: Sequence[Any]) -> list[list[Any]]:
    """Returns points nearby at which no two elements are equal."""
    rng = np.random.default_rng(0)
    ordered = [
        (1 + k / 3 + np.arange(v.size)).reshape(v.shape) for k, v in enumerate(values)
    ]
    steps = [ordered, [-s for s in ordered]]
    steps += [[rng.normal(size=v.shape) for v in values] for _ in range(40)]
    return [[v + 1e-6 * s for v, s in zip(values, ss, strict=True)] for ss in steps]


def _odd_cases() -> list[tuple[Call, str]]:
    return [
        (c, point)
        for c in differentiable_calls()
        for point in POINTS
        if any("f" in o.kinds and not o.rigid for o in c.operands)
    ]


def _matrix(jacobian: Function, f: Function, values: Sequence[Any]) -> Any:
    """Returns the derivatives of all results by all elements."""
    parts = jacobian(f, tuple(range(len(values))))(*values)
    rows = [
        np.asarray(p).reshape(-1, v.size) for p, v in zip(parts, values, strict=True)
    ]
    return np.concatenate(rows, axis=1)


def _check_matrices(
    f: Function, values: Sequence[Any], what: str, loose: bool
) -> list[Any]:
    """Checks and returns the derivatives, forward and reverse."""
    sides = [_one_sided(f, values, sign) for sign in (1, -1)]
    found = []
    for mode in (fxflow.jacfwd, fxflow.jacrev):
        matrix = _matrix(mode, f, values)
        near = lambda mode=mode: [_matrix(mode, f, at) for at in _nearby(values)]
        if not loose:
            _require_between(matrix, sides, near, f"{what}, {mode.__name__}")
        found.append(matrix)
    return found


@pytest.mark.parametrize(
    ("call", "point"), sample(_odd_cases(), 60, of="odd points"), ids=str
)
def test_at_an_odd_point(call: Call, point: str) -> None:
    with fxflow.config.override(x64=True):
        arrays = call.draw(np.float64)
        active = [
            i
            for i in _active(call, arrays)
            if arrays[i].dtype.kind == "f" and not call.operands[i].rigid
        ]
        for i in active:
            arrays[i] = POINTS[point](call.operands[i], arrays[i])
        _check_at(call, arrays, active)


def _masked_cases() -> list[tuple[Call, float]]:
    return [
        (c, value)
        for c in differentiable_calls()
        if "where" in c.kwargs
        for value in (np.nan, np.inf, -np.inf, 1e3)
    ]


@pytest.mark.parametrize(
    ("call", "value"),
    sample(_masked_cases(), 10, of="masked elements"),
    ids=str,
)
def test_at_masked_elements(call: Call, value: float) -> None:
    """What does not count has derivative 0, whatever it is."""
    with fxflow.config.override(x64=True):
        arrays = call.draw(np.float64)
        mask = call.arguments(arrays)[1]["where"]
        active = _active(call, arrays)
        first = active[0]
        shape = arrays[first].shape
        arrays[first] = np.where(np.broadcast_to(mask, shape), arrays[first], value)
        _check_at(call, arrays, active)


def _check_at(call: Call, arrays: Sequence[Any], active: Sequence[int]) -> None:
    with fxflow.config.override(x64=True):
        f = _flat(call, arrays, active)
        values = [arrays[i] for i in active]
        here = _values(f, values)
        if not active or not here.size or here.dtype.kind == "c":
            return
        loose = str(call) in LOOSE or call.name in LOOSE
        forward, reverse = _check_matrices(f, values, "first", loose)
        both = np.isfinite(forward) & np.isfinite(reverse)
        _close(np.where(both, forward, 0), np.where(both, reverse, 0), 1e-9)

        rng = np.random.default_rng(zlib.crc32(str(call).encode()))
        finite = np.isfinite(forward).all(axis=1)
        weights = np.where(finite, rng.normal(size=here.shape), 0)

        def gradient(*values: Any) -> Any:
            slopes = fxflow.vjp(f, *values)[1](weights)
            return fnp.concatenate([fnp.ravel(g) for g in slopes])

        _check_matrices(gradient, values, "second", loose)
