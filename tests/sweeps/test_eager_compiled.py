"""Every public function eagerly and under `jit`, on special values.

A function that is one operation when eager may run by NumPy, one that is several runs
as one program or as several: infinities and nan must be in the same places however it
runs, and numbers must agree up to rounding.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.core.arrays import dtypes
from fxflow.core.arrays.array import Array
from fxflow.errors import ConcretizationError
from tests.sweeps.catalogue import Call, catalogue, kind_of
from tests.sweeps.sampling import sample
from tests.sweeps.special_values import differing, drawn, explained

DTYPES = (
    *("bool", "int8", "int32", "uint8", "uint32"),
    *("bfloat16", "float16", "float32", "float64", "complex64"),
)
# Programs of several operations are rounded and ordered otherwise than the operations
# one by one, and XLA's simplifications do not keep the sign of every zero.
ULPS = 300.0
# Divides by the root of 1e-5 plus a variance that is a difference of squares.
AMPLIFIED = {"nn.standardize": 1e6}


def is_free(operand: Any, dtype: Any) -> bool:
    """Whether any array of the dtype may stand for the operand."""
    if operand.rigid or operand.make is not None or operand.dtype is not None:
        return False
    return kind_of(dtype) in operand.kinds


CASES = [
    (call, name)
    for call in catalogue()
    for name in DTYPES
    if call.traceable and not call.random
    if any(is_free(o, dtypes.dtype(name)) for o in call.operands)
]


def label(case: Any) -> str:
    call, name = case
    return f"{call}-{name}"


@pytest.mark.parametrize("case", sample(CASES, 80, "eager"), ids=label)
def test_eager_is_compiled(case: tuple[Call, str]) -> None:
    call, name = case
    dtype = dtypes.dtype(name)
    rng = np.random.default_rng(zlib.crc32(label(case).encode()))
    operands = []
    for operand, value in zip(call.operands, call.draw(dtype), strict=True):
        if is_free(operand, dtype) and value.dtype == dtype:
            value = drawn(rng, value.shape, dtype, extremes=False)
        operands.append(fnp.asarray(value, value.dtype))
    eager, eager_error = attempt(call.run, operands)
    if not all(isinstance(leaf, Array) for leaf in fxflow.tree.leaves(eager)):
        return  # names, dtypes, numbers of axes
    compiled, compiled_error = attempt(fxflow.jit(call.run), operands)
    if name == "bool" and isinstance(compiled_error, ConcretizationError):
        return  # a mask whose values decide the shape of the result
    assert type(eager_error) is type(compiled_error), (eager_error, compiled_error)
    near = max(greatest(operands), AMPLIFIED.get(call.name, 0.0))
    got, structure = fxflow.tree.flatten(eager)
    want, other = fxflow.tree.flatten(compiled)
    assert structure == other
    for a, b in zip(got, want, strict=True):
        assert (a.shape, a.dtype, a.weak_type) == (b.shape, b.dtype, b.weak_type)
        if dtypes.is_key(a.dtype):
            continue
        one, other = settled(np.asarray(a)), settled(np.asarray(b))
        bad = differing(one, other, ULPS, zeros=False, near=near)
        message = explained(bad, one, other, operands, "eager, jit")
        assert not bad.any(), message


def greatest(operands: Any) -> float:
    """Returns what results may be differences of: operands, or products of them."""
    near = 4.0
    for operand in operands:
        if dtypes.is_key(operand.dtype):
            continue
        x = np.asarray(operand)
        if dtypes.is_integer(x.dtype) or dtypes.is_inexact(x.dtype):
            with np.errstate(all="ignore"):
                size = np.abs(x.astype(np.complex128))
            largest = float(size[np.isfinite(size)].max(initial=0.0))
            near = max(near, largest if dtypes.is_integer(x.dtype) else largest**2)
    return near


def settled(x: Any) -> Any:
    """Returns an array whose complex elements are finite or nan in both parts.

    XLA divides by a constant by multiplying with its reciprocal, and by another number
    as C does: which part of a complex number is not finite depends on that.
    """
    if not dtypes.is_complex(x.dtype):
        return x
    return np.where(np.isfinite(x), x, np.asarray(complex(np.nan, np.nan), x.dtype))


def attempt(function: Any, operands: Any) -> tuple[Any, Exception | None]:
    """Returns the result, or the error."""
    try:
        return function(*operands), None
    except Exception as error:
        return None, error
