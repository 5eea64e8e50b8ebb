"""First values of weights."""

from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import random
from fxflow.errors import ArgumentError, AxisError, DtypeError, ShapeError
from fxflow.nn import initializers
from tests.nn import golden

KEY = random.key(42)
NAMES = [name for name in golden.VALUES if name.startswith("init_")]


@pytest.mark.parametrize("name", NAMES)
def test_as_jax(name: str) -> None:
    value = golden.VALUES[name]
    have = np.asarray(eval(value["call"], {"I": initializers, "key": KEY}))
    assert list(have.shape) == value["shape"]
    if np.iscomplexobj(have):
        have = np.stack([have.real, have.imag], -1)
    golden.near(have, golden.array(name), 5e-6)


@pytest.mark.parametrize("kind", ["normal", "truncated_normal", "uniform"])
@pytest.mark.parametrize(
    ("mode", "fan"), [("fan_in", 150), ("fan_out", 75), ("fan_avg", 112.5)]
)
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_variance(kind: str, mode: str, fan: float, dtype: str) -> None:
    init = initializers.variance_scaling(2.0, mode, kind)
    drawn = np.asarray(init(KEY, (3, 50, 25), dtype))
    assert drawn.dtype == dtype
    np.testing.assert_allclose((np.abs(drawn) ** 2).mean(), 2.0 / fan, rtol=0.06)
    assert abs(drawn.mean()) < 0.01


def test_truncation() -> None:
    drawn = np.asarray(initializers.truncated_normal(1.0)(KEY, (2000,)))
    assert np.abs(drawn).max() < 2
    lopsided = initializers.truncated_normal(2.0, lower=0.0, upper=1.0)(KEY, (100,))
    assert float(np.asarray(lopsided).min()) >= 0
    assert float(np.asarray(lopsided).max()) < 2


def test_fixed_values() -> None:
    assert initializers.zeros(None, (2, 1)).tolist() == [[0.0], [0.0]]
    assert initializers.ones(KEY, (2,), "int8").dtype == "int8"
    row = np.array([1.0, 2.0], np.float32)
    assert initializers.constant(row)(None, (2, 2)).tolist() == [[1, 2], [1, 2]]
    assert initializers.constant(1, "bfloat16")(None, ()).dtype == "bfloat16"


def test_default_dtypes() -> None:
    assert initializers.normal()(KEY, (2,)).dtype == "float32"
    assert initializers.normal(dtype="bfloat16")(KEY, (2,)).dtype == "bfloat16"
    assert (
        initializers.normal(dtype="bfloat16")(KEY, (2,), "float16").dtype == "float16"
    )
    assert initializers.he_normal(dtype="float16")(KEY, (2, 3)).dtype == "float16"


def test_orthogonal_columns() -> None:
    wide = np.asarray(initializers.orthogonal(3.0)(KEY, (2, 5)))
    np.testing.assert_allclose(wide @ wide.T, 9 * np.eye(2), atol=1e-5)
    kernel = np.asarray(initializers.delta_orthogonal()(KEY, (3, 5, 2, 4)))
    centre = kernel[1, 2]
    np.testing.assert_allclose(centre @ centre.T, np.eye(2), atol=1e-6)
    assert np.abs(kernel).sum() == pytest.approx(np.abs(centre).sum())


def test_jit_and_empty() -> None:
    init = initializers.glorot_uniform()
    jitted: Any = fxflow.jit(lambda k: init(k, (2, 3)))(KEY)
    np.testing.assert_allclose(jitted, init(KEY, (2, 3)), rtol=1e-6)
    assert init(KEY, (0, 3)).shape == (0, 3)


def test_invalid_modes_dtypes_and_shapes_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"mode must be one of .*, got 'fan'"):
        initializers.variance_scaling(1.0, "fan", "normal")
    with pytest.raises(ArgumentError, match=r"distribution must be one of .*, got 'x'"):
        initializers.variance_scaling(1.0, "fan_in", "x")
    with pytest.raises(
        AxisError, match=r"in_axis -2 is not an axis of weights of shape"
    ):
        initializers.he_normal()(KEY, (3,))
    with pytest.raises(DtypeError, match="dtype must be float or complex, got i32"):
        initializers.normal()(KEY, (3,), "int32")
    with pytest.raises(ShapeError, match="weights need at least two axes"):
        initializers.orthogonal()(KEY, (3,))
    with pytest.raises(ShapeError, match="weights need 3, 4 or 5 axes"):
        initializers.delta_orthogonal()(KEY, (3, 3))
    with pytest.raises(ShapeError, match="must not be fewer channels out than in"):
        initializers.delta_orthogonal()(KEY, (3, 4, 3))
    with pytest.raises(ShapeError, match="lengths in shape must not be negative"):
        initializers.uniform()(KEY, (-3,))


MAKERS = {
    "zeros": lambda: initializers.zeros,
    "ones": lambda: initializers.ones,
    "constant": lambda: initializers.constant(np.arange(4.0)),
    "uniform": initializers.uniform,
    "normal": initializers.normal,
    "truncated_normal": initializers.truncated_normal,
    "he_normal": initializers.he_normal,
    "glorot_uniform": initializers.glorot_uniform,
    "scaled normal": lambda: initializers.variance_scaling(2.0, "fan_in", "normal"),
    "orthogonal": initializers.orthogonal,
}


REAL_ONLY = ("uniform", "truncated_normal")


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        (name, dtype)
        for name in MAKERS
        for dtype in ("float32", "complex64")
        if dtype == "float32" or name not in REAL_ONLY
    ],
)
def test_laid_out_over_devices(name, dtype):
    mesh = fxflow.make_mesh((4, 2), ("x", "y"))
    where = fxflow.NamedSharding(mesh, fxflow.P("x", "y"))
    init, key = MAKERS[name](), random.key(3)
    got = init(key, (8, 4), dtype, where)
    assert got.sharding.is_equivalent_to(where, 2)
    np.testing.assert_allclose(got, init(key, (8, 4), dtype), rtol=1e-5, atol=1e-6)
    with fxflow.set_mesh(mesh):
        by_spec = init(key, (8, 4), dtype, out_sharding=fxflow.P("x", "y"))
    assert by_spec.sharding.is_equivalent_to(where, 2)


def test_convolutions_laid_out_over_devices():
    mesh = fxflow.make_mesh((4, 2), ("x", "y"))
    where = fxflow.NamedSharding(mesh, fxflow.P(None, "x", "y"))
    init = initializers.delta_orthogonal()
    got = init(random.key(3), (3, 4, 4), out_sharding=where)
    assert got.sharding.is_equivalent_to(where, 3)
    np.testing.assert_allclose(got, init(random.key(3), (3, 4, 4)), rtol=1e-6)


@pytest.mark.parametrize("name", ["normal", "uniform", "truncated_normal"])
def test_the_scale_does_not_change_the_dtype(name: str) -> None:
    init = getattr(initializers, name)(np.float32(0.5), "bfloat16")
    assert init(random.key(0), (3,)).dtype == "bfloat16"
    assert init(random.key(0), (3,), "float16").dtype == "float16"
