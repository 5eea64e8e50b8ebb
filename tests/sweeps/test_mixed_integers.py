"""Operands of two integer dtypes, or one of bools: int32 beside uint32, and so on.

Each function of several operands gives, at once and under `jit`, what NumPy gives for
operands that were converted to the dtype fxflow computes in: their common dtype, or the
float dtype that belongs to it, into which each operand goes by itself.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow import Array, errors, jit, tree
from fxflow.core.arrays import dtypes
from tests.sweeps.catalogue import Call, Operand, catalogue, kind_of
from tests.sweeps.sampling import sample

INTEGERS = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]
#: Functions that do not compute in the common dtype of their operands.
OWN_DTYPE = {
    "numpy.broadcast_arrays": "each array stays as it is",
    "numpy.ix_": "each array stays as it is",
    "numpy.meshgrid": "each array stays as it is",
    "numpy.choose": "the first operand says which, and is not combined",
    "numpy.ediff1d": "all goes into the dtype of the first operand",
    "numpy.fill_diagonal": "all goes into the dtype of the first operand",
    "numpy.full_like": "all goes into the dtype of the first operand",
    "numpy.insert": "all goes into the dtype of the first operand",
    "numpy.histogram": "weights are added up as integers if the data is",
    "numpy.histogram2d": "each axis is cut by itself",
    "numpy.polymul": "leading zeros stay, which NumPy cuts off",
    "scipy.special.hyperu": "SciPy's has half the digits",
    "scipy.special.ncfdtri": "SciPy's of 32 bits is computed in 32 bits",
    "scipy.special.zeta": "its poles are those of the compiler's zeta",
    "scipy.special.fdtridfd": "without a root SciPy gives an end of its search",
    "numpy.setdiff1d": "the result has the dtype of the first operand",
}


#: NumPy and XLA give different results for integers divided by 0.
DIVISIONS = {
    "numpy.floor_divide",
    "numpy.divmod",
    "numpy.mod",
    "numpy.remainder",
    "numpy.fmod",
}


def mixes(operand: Operand) -> bool:
    """Whether an operand may be of any integer dtype."""
    return operand.dtype is None and not operand.rigid and {*"iu"} <= {*operand.kinds}


def mixed(call: Call) -> bool:
    return not (call.one_dtype or call.random) and sum(map(mixes, call.operands)) > 1


CASES = [
    (call, one, other, values)
    for call in catalogue()
    if mixed(call)
    for one, other in itertools.permutations(INTEGERS, 2)
    for values in ("ordinary", "extreme")
]


def drawn(call: Call, one: str, other: str, values: str) -> list[Any]:
    """Arrays of the two dtypes by turns; bools only where they are taken."""
    turns = itertools.cycle((one, other))
    arrays = call.draw()
    rng = call.rng(1)
    for i, operand in enumerate(call.operands):
        if not mixes(operand):
            continue
        dtype = np.dtype(next(turns))
        if kind_of(dtype) not in operand.kinds:
            dtype = np.dtype("int8")
        array = operand.draw(rng, dtype)
        if i and call.name in DIVISIONS:
            array = np.maximum(array, np.ones((), dtype))
        elif values == "extreme" and dtype.kind != "b":
            info = np.iinfo(dtype)
            low, high = operand.low, operand.high
            some = [0, 1, 2, info.max, info.max - 1, info.min, info.min // 2 + 1]
            if (low, high) == (-2.0, 2.0):  # any values will do
                array = rng.choice(np.array(some, dtype), array.shape)
        arrays[i] = np.asarray(array)
    return arrays


def arrays_of(result: Any) -> list[Any]:
    return [np.asarray(x) for x in tree.leaves(result) if isinstance(x, Array)]


def check(call: Call, one: str, other: str, values: str) -> None:
    host = drawn(call, one, other, values)
    given = [fnp.asarray(a, a.dtype) for a in host]
    try:
        got = arrays_of(call.run(*given))
    except (errors.FxflowError, OverflowError) as error:
        if call.traceable:
            with pytest.raises(type(error)):
                jit(call.run)(*given)
        return
    if call.traceable and got:
        try:
            jitted = arrays_of(jit(call.run)(*given))
        except errors.ConcretizationError:
            jitted = got  # the shape depends on the values of bools
        for x, y in zip(got, jitted, strict=True):
            assert x.dtype == y.dtype
            close(x, y, "eager and jitted")
    if call.oracle is None or call.name in OWN_DTYPE:
        return
    free = [i for i, o in enumerate(call.operands) if mixes(o)]
    common = fnp.result_type(*(host[i].dtype for i in free))
    if any(dtypes.is_inexact(x.dtype) for x in got):
        common = dtypes.to_inexact(common)
    for i in free:
        host[i] = np.asarray(given[i].astype(common))
    try:
        wanted = call.expected(*host)
    except (TypeError, ValueError, SystemError):  # SciPy's, of a warning in C
        return  # NumPy does not do it in this dtype
    for x, y in zip(got, tree.leaves(wanted), strict=False):
        with np.errstate(all="ignore"):
            close(x, np.asarray(y).astype(x.dtype), "NumPy")


def close(x: Any, y: Any, what: str) -> None:
    if kind_of(x.dtype) in "biu":
        np.testing.assert_array_equal(x, y, err_msg=what)
    else:
        eps = float(dtypes.finfo(x.dtype).eps)
        size = float(np.max(np.abs(y[np.isfinite(y)]), initial=0))
        np.testing.assert_allclose(
            x, y, rtol=64 * eps, atol=8 * eps * size, err_msg=what
        )


@pytest.mark.parametrize(
    ("call", "one", "other", "values"),
    [
        pytest.param(*c, id="-".join(map(str, c)))
        for c in sample(CASES, 160, "mixed integers")
    ],
)
def test_mixed_integers(call: Call, one: str, other: str, values: str) -> None:
    check(call, one, other, values)
