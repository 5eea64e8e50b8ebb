"""Named reductions."""

import numpy as np
import pytest

import fxflow
from fxflow import lax
from fxflow.devices import faults
from fxflow.errors import AxisError, DtypeError
from tests.conformance.harness import array

X = np.arange(12, dtype="f4").reshape(3, 4)


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (lambda: lax.reduce_sum(X, (-1,)), X.sum(1)),
        (lambda: lax.reduce_sum(X, ()), X),
        (lambda: lax.reduce_sum(2.0, ()), np.float32(2)),
        (lambda: lax.reduce_prod(X[1:], (1, 0)), X[1:].prod()),
        (lambda: lax.reduce_max(X, (0,)), X.max(0)),
        (lambda: lax.reduce_min(X, (0, 1)), np.float32(0)),
        (lambda: lax.reduce_and(np.uint8([6, 3]), (0,)), np.uint8(2)),
        (lambda: lax.reduce_or(X > 10, (1,)), np.array([False, False, True])),
        (lambda: lax.reduce_xor(np.int32([6, 3]), (0,)), np.int32(5)),
        (lambda: lax.reduce_sum(np.int8([100, 100]), (0,)), np.int8(-56)),
    ],
)
def test_agrees_with_numpy_and_keeps_the_dtype(got, expected: np.ndarray) -> None:
    out = np.asarray(got())
    assert out.dtype == np.asarray(expected).dtype
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(
    ("reduce_", "dtype", "expected"),
    [
        (lax.reduce_sum, "f4", 0),
        (lax.reduce_prod, "i4", 1),
        (lax.reduce_max, "f4", -np.inf),
        (lax.reduce_max, "i4", np.iinfo("i4").min),
        (lax.reduce_max, "float8_e4m3fn", -448),
        (lax.reduce_min, "f2", np.inf),
        (lax.reduce_min, "bool", True),
        (lax.reduce_and, "i4", -1),
        (lax.reduce_and, "u1", 255),
        (lax.reduce_or, "bool", False),
    ],
)
def test_of_nothing(reduce_, dtype: str, expected: float) -> None:
    from fxflow.core.arrays import dtypes

    out = reduce_(array(np.zeros((0, 2), dtypes.dtype(dtype))), (0,))
    np.testing.assert_array_equal(np.asarray(out).astype("f8"), [expected] * 2)


def test_nan_wins() -> None:
    x = np.array([1, np.nan, 2], "f4")
    assert np.isnan(lax.reduce_max(x, (0,))) and np.isnan(lax.reduce_min(x, (0,)))


def test_sixteen_bits_accumulate_in_more_on_the_host() -> None:
    x = array(np.full(1000, 0.1, np.float16))
    assert abs(float(lax.reduce_sum(x, (0,))) - 100) < 0.2


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lax.reduce_sum(X, (2,)), AxisError, "axes 2 is out of range"),
        (lambda: lax.reduce_max(X, (0, -2)), AxisError, "repeated axis"),
        (
            lambda: lax.reduce_sum(X > 1, (0,)),
            DtypeError,
            r"_sum: .* bool\[3,4\]",
        ),
        (lambda: lax.reduce_and(X, (0,)), DtypeError, r"reduce_and: takes bool"),
    ],
)
def test_invalid_axes_and_dtypes_are_refused(
    call, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("name", ["max", "min"])
def test_complex_numbers_are_ordered_when_compiled(name):
    x = np.array(
        [[14 + 2j, 3 + 1j], [14 + 10j, 3 - 1j], [3 + 1j, 3 + 0j]], np.complex64
    )
    reduce_ = getattr(lax, f"reduce_{name}")
    for axes in ((0,), (1,), (0, 1)):
        got = fxflow.jit(lambda v, axes=axes: reduce_(v, axes))(x)
        assert np.array_equal(got, getattr(np, name)(x, axes))
    x[1, 0] = complex(np.nan, 1)
    assert np.isnan(fxflow.jit(lambda v: reduce_(v, (0, 1)))(x))


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool"])
@pytest.mark.parametrize("name", ["reduce_and", "reduce_or", "reduce_xor"])
def test_bits_of_several_devices(name, dtype) -> None:
    mesh = fxflow.make_mesh((2, 2), ("x", "y"))
    bits = np.arange(32).reshape(4, 8) * 5 % 7
    bits = bits > 3 if dtype == "bool" else bits.astype(dtype)
    x = fxflow.device_put(bits, fxflow.NamedSharding(mesh, fxflow.P("x", "y")))
    function = getattr(lax, name)
    for axes in ((0,), (0, 1)):
        want = function(bits, axes)
        np.testing.assert_array_equal(function(x, axes), want)
        part = fxflow.shard_map(
            lambda x, axes=axes: function(x, axes),
            mesh=mesh,
            in_specs=fxflow.P(),
            out_specs=fxflow.P(),
            axis_names={"x"},
        )
        np.testing.assert_array_equal(part(x), want)


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((40_001,), (0,)),
        ((40_000, 3), (0,)),
        ((40, 1000), (0, 1)),
        ((8, 16, 16, 32), (0, 1, 2)),
        ((8, 16, 16, 32), (0, 1)),
        ((8, 16, 16, 32), (0, 2)),
        ((13, 47, 64), (0, 1)),
        ((8, 32, 16, 16), (0, 2, 3)),
        ((40_000, 1), (0, 1)),
        ((1, 40_000), (0, 1)),
        ((3, 40_000), (1,)),
    ],
)
def test_large_arrays_are_reduced_in_stages(shape, axes):
    x = np.random.default_rng(0).standard_normal(shape).astype("f4")
    for function, wanted in (
        (lax.reduce_sum, np.sum),
        (lax.reduce_max, np.max),
        (lax.reduce_min, np.min),
    ):
        found = np.asarray(fxflow.jit(lambda x, f=function: f(x, axes))(x))
        expected = wanted(x.astype("f8"), axes)
        assert found.dtype == x.dtype and found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-3)
    bad = x.copy()
    bad.reshape(-1)[-1] = np.nan
    found = np.asarray(fxflow.jit(lambda x: lax.reduce_max(x, axes))(bad))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(np.max(bad, axes)))


@pytest.mark.skipif(
    faults.present("sums of many axes", "cpu") is None,
    reason="this jaxlib's XLA reduces whole vectors itself",
)
def test_stages_are_for_large_arrays_of_one_device():
    def reductions(shape, **options):
        x = fxflow.ShapeDtypeStruct(shape, "float32")
        lowered = fxflow.jit(lambda x: lax.reduce_sum(x, (0, 1)), **options).lower(x)
        return lowered.as_text().count("stablehlo.reduce(")

    assert reductions((40, 1000)) == 2
    assert reductions((30, 1000)) == 1
    split = fxflow.NamedSharding(fxflow.make_mesh((2,), ("x",)), fxflow.P("x"))
    assert reductions((40, 1000), in_shardings=split) == 1
