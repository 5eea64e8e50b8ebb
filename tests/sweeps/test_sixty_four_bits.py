"""Explicit 64-bit arrays without the global switch: never silently 32 bits.

Each function is called with arrays of 64 bits while `config.x64` is off, at once and
under `jit`, and has to give what it gives with `config.x64` on: the same dtype (but for
integers that it makes itself, such as indices, which are 32-bit by default) and the
same numbers to the accuracy of 64 bits. So it is with Python numbers and NumPy's data
beside an array of 64 bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow import Array, config, errors, jit, tree
from fxflow.core.arrays import dtypes
from tests.sweeps.catalogue import Call, Operand, catalogue, kind_of
from tests.sweeps.sampling import sample

WIDE = ("float64", "complex128", "int64", "uint64")
#: What is added to integers, so that 32 bits do not hold them.
FAR = 1 << 40
#: Integers that a function makes itself are 32-bit by default.
MADE_HERE = {("int32", "int64"), ("uint32", "uint64")}


#: Functions whose result has a dtype of its own, with the reason.
OWN_DTYPE = {
    "nn.one_hot": "ones and zeros are of the default float",
    "scipy.signal.cont2discrete": "jit makes dt, a Python number, a default float",
}


def takes(operand: Operand, dtype: str) -> bool:
    return operand.dtype is None and kind_of(dtype) in operand.kinds


CASES = [
    (call, dtype)
    for call in catalogue()
    # 64 random bits are drawn from other words.
    if not call.random and call.name not in OWN_DTYPE
    for dtype in WIDE
    if any(takes(o, dtype) for o in call.operands)
]


def drawn(call: Call, dtype: str) -> list[Any]:
    """Arrays for a call; integers that may be anything are far from 32 bits."""
    arrays = call.draw(dtype)
    if kind_of(dtype) in "iu":
        for i, operand in enumerate(call.operands):
            if operand.kinds == "biufc" and arrays[i].dtype == dtype:
                arrays[i] = arrays[i] + arrays[i].dtype.type(FAR)
    return arrays


def numbers(result: Any) -> list[Any]:
    """The arrays in a result, but for random keys."""
    arrays = [x for x in tree.leaves(result) if isinstance(x, Array)]
    return [x for x in arrays if not fnp.issubdtype(x.dtype, dtypes.prng_key)]


def ran(call: Call, way: str, host: list[Any]) -> Any:
    """What comes out as NumPy arrays, or the class of the error."""
    given = [fnp.asarray(a, a.dtype) for a in host]
    try:
        result = call.run(*given)
        if way == "jit" and numbers(result):
            result = jit(call.run)(*given)
    except (errors.FxflowError, OverflowError) as error:
        return type(error)
    return [np.asarray(x) for x in numbers(result)]


def check(call: Call, dtype: str) -> None:
    host = drawn(call, dtype)
    for way in ("eager", "jit") if call.traceable else ("eager",):
        with config.override(x64=True):
            wanted = ran(call, way, host)
        got = ran(call, way, host)
        if isinstance(wanted, type):  # refused where 64 bits are the default, too
            assert got is wanted, f"{way}: {got}, with x64 {wanted}"
            continue
        assert not isinstance(got, type), f"{way}: {got.__name__}, with x64 a result"
        for x, y in zip(got, wanted, strict=True):
            default = (str(x.dtype), str(y.dtype)) in MADE_HERE
            assert x.dtype == y.dtype or default, f"{way}: {x.dtype} for {y.dtype}"
            if kind_of(x.dtype) in "biu":
                np.testing.assert_array_equal(x, y, err_msg=way)
            elif dtypes.is_wide(x.dtype):
                np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-12, err_msg=way)


@pytest.mark.parametrize(
    ("call", "dtype"),
    [pytest.param(*c, id=f"{c[0]}-{c[1]}") for c in sample(CASES, 60, "wide")],
)
def test_64_bits_stay_without_the_switch(call: Call, dtype: str) -> None:
    check(call, dtype)
