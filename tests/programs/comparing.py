"""When two answers are the same.

Programs round, and some blow up what rounding leaves (a difference of large numbers, a
sine of a huge one, a comparison of what is nearly equal). What changes as much when the
arguments are changed a little tells nothing, and is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.programs.drawing import Program
from tests.programs.running import uses_half_floats, uses_narrow_floats

Answer = list[Any]


def precision(program: Program, answer: Answer) -> float:
    """The relative tolerance: that of the narrowest floats on the way."""
    if uses_half_floats(program):
        return 5e-2
    narrow = {str(a.dtype) for a in answer} & {"float32", "complex64"}
    return 1e-3 if narrow or uses_narrow_floats(program) else 1e-8


def changed(arguments: Sequence[Any], by: float, seed: int) -> list[Any]:
    """The arguments, each a little larger: equal elements stay equal."""
    rng = np.random.default_rng(seed)
    result = []
    for argument in arguments:
        if argument.dtype.kind in "fc":
            with np.errstate(all="ignore"):
                factor = 1 + by * rng.choice([-1, 1]) * rng.uniform(0.5, 1)
                argument = (argument * factor).astype(argument.dtype)
        result.append(argument)
    return result


def jittered(arguments: Sequence[Any], by: float, seed: int) -> list[Any]:
    """The arguments, each element changed a little by itself, but for equal ones."""
    rng = np.random.default_rng(seed)
    result = []
    for argument in arguments:
        if argument.dtype.kind in "fc":
            values = argument.reshape(-1)
            if len(np.unique(values)) == len(values):
                with np.errstate(all="ignore"):
                    factor = 1 + by * rng.uniform(-1, 1, argument.shape)
                    argument = (argument * factor).astype(argument.dtype)
        result.append(argument)
    return result


def differences(
    got: Answer,
    want: Answer,
    tolerance: float,
    near: Callable[[], Sequence[Answer]],
    strict: bool = True,
) -> list[str]:
    """Says where `got` is not `want`.

    Args:
      got: one answer.
      want: the right one.
      tolerance: relative to the largest number of an array.
      near: computes the right answers to slightly changed arguments, when asked.
      strict: whether dtypes have to be equal, not only their kinds.

    Returns:
      A line for each array that differs.
    """
    if len(got) != len(want):
        return [f"{len(got)} results, expected {len(want)}"]
    lines = []
    neighbours: Sequence[Answer] | None = None
    for i, (g, w) in enumerate(zip(got, want)):
        if not strict and g.dtype.kind == w.dtype.kind:
            g = g.astype(w.dtype)
        if g.shape != w.shape or g.dtype != w.dtype:
            lines.append(f"result {i}: {g.dtype}{g.shape}, expected {w.dtype}{w.shape}")
            continue
        wrong = ~_close(g, w, tolerance)
        if wrong.any():
            if neighbours is None:
                neighbours = near()
            for other in neighbours:
                wrong &= _close(other[i], w, tolerance * 1e-2)
        if wrong.any():
            place = np.unravel_index(np.argmax(wrong), wrong.shape)
            count = int(wrong.sum())
            lines.append(
                f"result {i}: {count} of {wrong.size} differ, first at "
                f"{tuple(map(int, place))}: {g[place]}, expected {w[place]}"
            )
    return lines


def _close(a: Any, b: Any, tolerance: float) -> Any:
    if a.dtype.kind not in "fc":
        return np.asarray(a == b)
    if a.dtype.kind == "c":
        # Operations on complex numbers with a NaN or an infinity in them agree on
        # little: that one of the two parts is not finite is all that is compared.
        with np.errstate(all="ignore"):
            finite = np.isfinite(a) & np.isfinite(b)
            scale = np.abs(np.where(np.isfinite(b), b, 0)).max(initial=1e-30)
            near = np.abs(a - b) <= tolerance * np.maximum(np.abs(b), scale)
        return np.where(finite, near, np.isfinite(a) == np.isfinite(b))
    with np.errstate(all="ignore"):
        scale = np.abs(np.where(np.isfinite(b), b, 0)).max(initial=1e-30)
        near = np.abs(a - b) <= tolerance * np.maximum(np.abs(b), scale)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return np.asarray(same | (np.isfinite(a) & np.isfinite(b) & near))
