"""Derivatives in 16 and 32 bits at large, tiny, equal and saturated points.

What is asked is that of 64 bits at the very same point: rounding may do what a change
of the operands by some units in their last place does, and no more. So a factor that
cancels (1 - tanh²), overflows on the way or underflows shows.
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
from fxflow.errors import DtypeError
from tests.sweeps.calls.lax_ import ELEMENTWISE
from tests.sweeps.catalogue import Call
from tests.sweeps.derivatives import FIXED, differentiable_calls
from tests.sweeps.sampling import sample

DTYPES = ("bfloat16", "float16", "float32")
#: How large numbers are at each point, for 16 and for 32 bits.
SIZES = {
    "huge": {"float16": 3e4, "bfloat16": 1e30, "float32": 1e30},
    "large": {"float16": 300.0, "bfloat16": 1e12, "float32": 1e12},
    "tiny": {"float16": 1e-4, "bfloat16": 1e-20, "float32": 1e-20},
    "saturated": {"float16": 9.0, "bfloat16": 40.0, "float32": 40.0},
}
POINTS = (*SIZES, "equal", "one of all")


#: Whose errors are those of their largest slope, and why.
BY_NORM = {
    **dict.fromkeys(
        (
            *("nn.standardize", "nn.layer_norm", "nn.instance_norm", "nn.rms_norm"),
            *("nn.group_norm", "nn.batch_norm", "numpy.std", "numpy.nanstd"),
            *("numpy.corrcoef", "numpy.linalg.norm"),
        ),
        "what is normalised loses its mean and its length: a difference",
    ),
    "nn.logsumexp": "factors of either sign may cancel",
    "lax.linalg.triangular_solve": "is made of products and differences",
}
#: What is not right, at which points, and why.
WRONG = {
    **dict.fromkeys(
        (
            *("nn.standardize", "nn.layer_norm", "nn.instance_norm", "nn.rms_norm"),
            *("nn.group_norm", "nn.batch_norm", "numpy.corrcoef"),
        ),
        (("large",), "second slopes are differences of numbers 1e12 times as large"),
    ),
    "numpy.corrcoef": (("large", "tiny"), "squares of 1e-20 have no float32"),
    "numpy.sinc": (("large",), "angles of 1e11 have no digits left"),
    "numpy.linalg.lstsq": (("tiny",), "the square of an inverse of 1e20 overflows"),
    "nn.logsumexp": (("tiny", "large"), "the square of a sum of 1e-20 underflows"),
    "nn.gru_cell": (("large",), "the products with the weights overflow in 16 bits"),
    "lax.linalg.cholesky_update": (("tiny",), "rotations mix large and small elements"),
    "lax.betainc": (("tiny",), "a quotient overflows in 16 bits"),
    "lax.bessel_i0e": (("saturated",), "second slopes near 9 are small differences"),
}


def at(point: str, dtype: str, operand: Any, x: Any) -> Any:
    """Returns an array of the shape of `x` at a point, within the operand's domain."""
    low, high = operand.low, operand.high
    if point == "equal":
        return np.full_like(x, 0.7)
    if point == "one of all":
        # One element outweighs all others.
        out = np.full_like(x, 0.0 if low < 0 else 0.25)
        out.flat[0] = SIZES["saturated"][dtype] if high > 1 else 0.9
        return out
    size = SIZES[point][dtype]
    if high <= 1:
        # Probabilities: near 0, or near the end of the domain.
        return x * size if size < 1 else np.sign(x) * (1 - 1e-2 * np.abs(x))
    out = x / max(abs(low), abs(high)) * size
    return out if low <= 0 or size > 1 else low + np.abs(out)


def active(call: Call, arrays: Sequence[Any]) -> list[int]:
    fixed = FIXED.get(call.name, ())
    return [
        i
        for i, (operand, a) in enumerate(zip(call.operands, arrays, strict=True))
        if a.dtype == np.float64 and a.size and i not in fixed
    ]


def is_free(operand: Any) -> bool:
    given = operand.make is not None or operand.dtype is not None
    return "f" in operand.kinds and not operand.rigid and not given


def is_elementwise(call: Call) -> bool:
    """Whether a call is of a ufunc, a primitive of its kind or an activation."""
    function = call.function
    if call.name.startswith("nn."):
        return function.__module__ == "fxflow.nn.activations"
    known = {c.name for c in ELEMENTWISE}
    return call.name in known or isinstance(function, fnp.ufunc)


CASES = [
    (call, dtype, point)
    for call in differentiable_calls()
    if call.name.startswith(("lax.", "nn.", "numpy."))
    and any(is_free(o) for o in call.operands)
    for dtype in DTYPES
    for point in POINTS
    if point != "huge" or (len(call.operands) < 3 and is_elementwise(call))
    if point not in WRONG.get(call.name, ((), ""))[0]
    # Loops are compiled anew for each of the points; their cells are here.
    if call.name not in ("nn.gru", "nn.lstm")
]


def derivatives(
    call: Call,
    arrays: Sequence[Any],
    places: Sequence[int],
    seed: int,
    moved: Callable[[Any], Any] = lambda x: x,
) -> tuple[Callable[..., list[Any]], Callable[..., list[Any]]]:
    """Returns the call, and the gradient of a weighted sum with its change.

    Args:
      call: to differentiate.
      arrays: its operands.
      places: which are differentiated by.
      seed: of the weights and of the direction of the change.
      moved: changes both.
    """
    rng = np.random.default_rng(seed)

    def f(*values: Any) -> Any:
        given = list(arrays)
        for i, value in zip(places, values, strict=True):
            given[i] = value
        return [
            x
            for x in tree.leaves(call.run(*given))
            if getattr(x, "dtype", None) == values[0].dtype
        ]

    def both(*values: Any) -> list[Any]:
        outs = f(*values)
        drawn = [
            [rng.choice([-1.0, 0.5, 1.0], x.shape) for x in given]
            for given in (outs, values)
        ]
        weights, ways = (
            [fnp.asarray(moved(x), values[0].dtype) for x in given] for given in drawn
        )
        gradient = lambda *values: fxflow.vjp(f, *values)[1](weights)
        return list(tree.leaves(fxflow.jvp(gradient, values, ways)))

    return f, both


def difference(case: tuple[Call, str, str]) -> str:
    """Returns what is wrong, in words, or nothing.

    Nothing is asked where the values themselves overflow, or are not of the dtype.
    """
    call, dtype, point = case
    compiled = zlib.crc32(label(case).encode()) % 4 == 0
    narrow = fnp.dtype(dtype)
    info = fnp.finfo(narrow)
    eps, tiny, largest = float(info.eps), float(info.tiny), float(info.max)
    seed = zlib.crc32(str(call).encode())
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"), fxflow.config.override(x64=True):
        arrays = call.draw(np.float64)
        places = active(call, arrays)
        for i in places:
            if is_free(call.operands[i]):
                arrays[i] = at(point, dtype, call.operands[i], arrays[i])
        doubles = [i for i, a in enumerate(arrays) if a.dtype == np.float64]
        for i in doubles:
            arrays[i] = np.asarray(arrays[i]).astype(narrow)
        values = [arrays[i] for i in places]
        f, both = derivatives(call, arrays, places, seed)
        given = [fnp.asarray(v) for v in values]
        try:
            outs = f(*given)
        except DtypeError:
            return ""  # does not take 16 bits
        if not outs or not all(np.isfinite(x).all() for x in outs):
            return ""
        got = (fxflow.jit(both) if compiled else both)(*given)
        wide = [v.astype(np.float64) for v in values]
        for i in doubles:
            arrays[i] = arrays[i].astype(np.float64)

        def moved(x: Any) -> Any:
            return fnp.asarray(x * (1 + 4 * eps * rng.choice([-1.0, 1.0], x.shape)))

        f, both = derivatives(call, arrays, places, seed)
        if not f(*map(fnp.asarray, wide)):
            return ""  # always of the narrow dtype
        wants = [both(*map(fnp.asarray, wide))]
        for _ in range(6):
            _, both = derivatives(call, arrays, places, seed, moved)
            wants.append(both(*map(moved, wide)))
        half = len(got) // 2
        for i, (g, *ws) in enumerate(zip(got, *wants, strict=True)):
            g = np.asarray(g).astype(np.float64)
            ws = [np.asarray(w) for w in ws]
            want = ws[0]
            slack = np.max([np.abs(w - want) for w in ws], axis=0)
            size = np.abs(want)
            if call.name in BY_NORM:
                size = np.max(size)
            bound = 16 * (slack + 4 * eps * size) + 16 * tiny
            known = (
                np.isfinite(want) & np.isfinite(bound) & (np.abs(want) < largest / 8)
            )
            bad = known & ~(np.abs(g - want) <= bound)
            if bad.any():
                order = "first" if i < half else "second"
                return (
                    f"{order} by {i % half}: {g[bad][:3]} instead of {want[bad][:3]} "
                    f"at {[v.ravel()[:3].tolist() for v in values]}"
                )
    return ""


def label(case: tuple[Call, str, str]) -> str:
    return "-".join(map(str, case))


@pytest.mark.parametrize("case", sample(CASES, 80, of="extremes"), ids=label)
def test_at_an_extreme_point(case: tuple[Call, str, str]) -> None:
    wrong = difference(case)
    assert not wrong, wrong
