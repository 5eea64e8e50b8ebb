"""Conversion by value."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
from fxflow import lax
from fxflow.core.arrays import dtypes
from fxflow.errors import DtypeError
from tests.sweeps.sampling import sample


@pytest.mark.parametrize("run", [lambda f: f, fxflow.jit], ids=["eager", "jit"])
def test_floats_saturate(run) -> None:
    x = np.array([1e20, -1e20, np.nan, -1.5, 300.0], "f4")

    def to(dtype):
        return np.asarray(run(lambda x: lax.convert_element_type(x, dtype))(x)).tolist()

    assert to("int32") == [2**31 - 1, -(2**31), 0, -1, 300]
    assert to("uint8") == [255, 0, 0, 0, 255]
    assert to("int8") == [127, -128, 0, -1, 127]
    assert to(bool) == [True, True, True, True, True]


def test_wide_host_values_keep_their_bits() -> None:
    assert float(lax.convert_element_type(0.1, "float64")) == 0.1
    assert float(lax.convert_element_type(np.float64(0.1), "float64")) == 0.1
    big = np.array([2**40], "i8")
    assert int(lax.convert_element_type(big, "int64")[0]) == 2**40
    assert int(lax.convert_element_type(2**40, "int64")) == 2**40


def test_python_types_mean_default_dtypes() -> None:
    assert lax.convert_element_type(1.5, int).dtype == np.int32
    assert lax.convert_element_type(1, float).dtype == np.float32
    assert not lax.convert_element_type(1, float).weak_type


def test_a_conversion_to_the_same_dtype_adds_no_node() -> None:
    x = np.float32(1)
    graph = fxflow.make_graph(lambda x: lax.convert_element_type(x, "float32"))(x)
    assert "convert" not in str(graph)


def test_complex_to_real_warns() -> None:
    with pytest.warns(np.exceptions.ComplexWarning, match=r"c64\[\] to f32 drops"):
        assert float(lax.convert_element_type(np.complex64(1 + 2j), "float32")) == 1


def test_gradient_has_the_argument_dtype() -> None:
    def loss(x):
        return lax.convert_element_type(lax.mul(x, 3.0), "float32")

    gradient = fxflow.grad(loss)(np.float16(1))
    assert gradient.dtype == np.float16 and float(gradient) == 3


def test_keys_unknown_dtypes_and_overflow_are_refused() -> None:
    key = fxflow.random.key(0)
    with pytest.raises(DtypeError, match=r"no conversion from key<fry>\[\] to f32"):
        lax.convert_element_type(key, "float32")
    with pytest.raises(TypeError, match="object"):
        lax.convert_element_type(1.0, object)
    with pytest.raises(OverflowError, match="300 does not fit uint8"):
        lax.convert_element_type(300, "uint8")


SMALL = [d for d in dtypes.ALL if d.itemsize == 1]


@pytest.mark.parametrize("source", sample(SMALL, 6, of="small dtypes"))
def test_small_dtypes_convert_eagerly_as_compiled(source) -> None:
    values = np.arange(-8, 9)
    if dtypes.is_unsigned(source) or source == dtypes.bool_ or "e8m0" in source.name:
        values = np.abs(values)
    x = fxflow.numpy.asarray(values.astype(np.float32).astype(source))
    together = fxflow.jit(lambda x: [lax.convert_element_type(x, d) for d in SMALL])
    for compiled, d in zip(together(x), SMALL, strict=True):
        eager = np.asarray(lax.convert_element_type(x, d))
        assert eager.dtype == d
        # float4 has no nan: what becomes of one has either sign.
        np.testing.assert_array_equal(eager.astype("f4"), np.asarray(compiled, "f4"))


def test_float4_to_integers_is_in_range_when_compiled() -> None:
    x = fxflow.numpy.asarray(np.array([6, -6, 1.5], "f4"), "float4_e2m1fn")
    for d in ("int8", "int32", "uint4"):
        out = fxflow.jit(lambda x, d=d: lax.convert_element_type(x, d))(x)
        assert np.asarray(out).astype(int).tolist() == [6, -6 if d[0] == "i" else 0, 1]


def test_false_times_nan_is_nan_when_compiled() -> None:
    x = np.array([np.nan, np.inf, 2], "f4")
    masked = fxflow.jit(lambda m, x: lax.convert_element_type(m, x.dtype) * x)
    np.testing.assert_array_equal(
        masked(np.array([False, False, True]), x), [np.nan, np.nan, 2]
    )
