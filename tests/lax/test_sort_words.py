"""Sorts of many elements in compiled programs beside NumPy's order of the same ones."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import fxflow
from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Aval, dtypes
from fxflow.lax import sort_words

COUNT = 1200
FLOATS = ["bfloat16", "float16", "float32", "float64"]
INTEGERS = ["bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"]
COMPLEX = ["complex64", "complex128"]


def values_of(dtype: str, shape: tuple[int, ...] = (COUNT,)) -> Any:
    """Returns an array with many equal elements, extremes, zeros and nans."""
    rng = np.random.default_rng(27)
    kind = dtypes.dtype(dtype)
    if dtypes.is_complex(kind):
        part = f"float{8 * kind.itemsize // 2}"
        x = np.asarray(values_of(part, shape))
        both = np.stack([x, rng.permuted(x)], -1)
        return fnp.asarray(both.view(kind)[..., 0])
    if dtypes.is_floating(kind):
        # Programs for CPUs compare subnormal numbers as zeros.
        least = float(ml_dtypes.finfo(kind).smallest_subnormal)
        special = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40]
        special += [least, -least, 3 * least, -3 * least]
        x = np.concatenate([rng.normal(size=300), np.repeat(special, 20)])
        return fnp.asarray(rng.choice(x, shape), kind)
    if kind == np.bool_:
        return fnp.asarray(rng.integers(0, 2, shape), kind)
    info = np.iinfo(kind)
    ends = np.array([info.min, info.max, info.max - 1, 0, 1, info.max // 2], kind)
    some = rng.integers(info.min, info.max, 300, kind, endpoint=True)
    return fnp.asarray(rng.choice(np.concatenate([some, ends.repeat(20)]), shape), kind)


def bits_of(x: Any) -> Any:
    return np.asarray(x).view(np.uint8)


@pytest.mark.parametrize(
    ("dtype", "count"),
    [
        *((dtype, COUNT) for dtype in (*FLOATS, *INTEGERS, *COMPLEX)),
        *((dtype, 40) for dtype in (*FLOATS, *COMPLEX)),  # by XLA
    ],
)
def test_the_order_is_that_of_numpy_to_the_bit(dtype: str, count: int) -> None:
    with fxflow.config.override(x64=True):
        x = values_of(dtype, (count,))
        places = np.arange(count, dtype=np.int32)

        def run(x: Any, places: Any) -> Any:
            return lax.sort(x), lax.sort((x, places))

        alone, (keys, order) = run(x, places)  # NumPy's, when eager
        got = fxflow.jit(run)(x, places)
    assert got[1][1].tolist() == order.tolist()
    np.testing.assert_array_equal(bits_of(got[1][0]), bits_of(keys))
    np.testing.assert_array_equal(bits_of(got[0]), bits_of(alone))


@pytest.mark.parametrize("count", [40, COUNT])
def test_floats_of_eight_bits(count: int) -> None:
    x = values_of("float8_e5m2", (count,))
    got, want = fxflow.jit(lax.sort)(x), lax.sort(x)  # XLA may write another nan
    np.testing.assert_array_equal(got.astype("float32"), want.astype("float32"))


@pytest.mark.parametrize(
    ("shape", "axis"), [*(((12, 9, 13), axis) for axis in range(3)), ((3, 4, 5), 1)]
)
def test_lines_along_an_axis_by_several_keys(shape: Any, axis: int) -> None:
    x = fnp.asarray(np.asarray(values_of("int8", shape)) % 3)
    y = values_of("float32", shape)
    places = np.arange(x.size).reshape(shape)
    run = lambda *arrays: lax.sort(arrays, axis, num_keys=2)
    arrays = (x, y, places)
    for got, want in zip(fxflow.jit(run)(*arrays), run(*arrays), strict=True):
        np.testing.assert_array_equal(bits_of(got), bits_of(want))


def test_derivatives_and_batches() -> None:
    x = values_of("int16", (6, 300)).astype("float32")
    weights = np.arange(300, dtype=np.float32)
    slope = fxflow.jit(fxflow.vmap(fxflow.grad(lambda x: lax.sort(x) @ weights)))(x)
    want = np.argsort(np.argsort(np.asarray(x), 1, kind="stable"), 1)
    np.testing.assert_array_equal(slope, want)


def test_what_is_sorted_by_words() -> None:
    many, few = Aval((COUNT,), np.dtype("float32")), Aval((9,), np.dtype("float32"))
    whole = Aval((COUNT,), np.dtype("int32"))
    wide = Aval((COUNT,), np.dtype("complex128"))

    class Module:
        partitioned = False

    class Ctx:
        platform = "cpu"
        module = Module()

    def applies(*avals: Aval, num_keys: int = 1) -> bool:
        return sort_words.applies(Ctx(), avals, 0, num_keys)  # type: ignore[arg-type]

    assert applies(many) and applies(whole, many) and applies(wide)
    assert not applies(few)
    assert not applies(whole), "XLA has a sort of integers"
    assert not applies(wide, many, num_keys=2), "too many words"
    Module.partitioned = True
    assert not applies(many), "the partitioner divides sorts, not gathers"
