import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, nn
from fxflow.lax.ordered_bits import sorts_before
from tests.export.onnx_rules.checks import check, kinds

EDGES = np.array(
    [0.0, -0.0, 1.0, -1.0, 1e-8, -1e-8, 0.4, 0.6, -0.6, 3.5, -2.5, 88.0, 1e30, -1e30]
    + [np.inf, -np.inf, np.nan],
    np.float32,
)


@pytest.mark.parametrize(
    "function",
    [lax.expm1, lax.log1p, lax.cbrt, lax.round, lax.is_finite, lax.logistic, lax.erf]
    + [lax.rsqrt, lax.exp2, lax.sign],
    ids=lambda f: f.__name__,
)
def test_compositions_agree_at_special_values(function):
    check(function, EDGES)


def test_the_order_of_a_sort_agrees_at_special_values():
    check(lambda x, y: sorts_before(x, y), *map(np.ravel, np.meshgrid(EDGES, EDGES)))


@pytest.mark.parametrize("function", [lax.logistic, lax.tanh])
def test_slopes_agree_at_special_values(function):
    check(fxflow.vmap(fxflow.grad(function)), EDGES)


def test_small_numbers_keep_their_precision():
    x = np.float32([1e-7, -1e-7, 1e-20, 1e-3])
    made = check(lambda x: (lax.expm1(x), lax.log1p(x)), x)
    for out in made(x):
        np.testing.assert_allclose(out, x, rtol=1e-3)


def test_atan2_agrees_in_all_quadrants():
    ends = np.float32([0.0, -0.0, 2.0, -3.0, np.inf, -np.inf])
    y, x = map(np.ravel, np.meshgrid(ends, ends))
    made = check(lambda y, x: lax.atan2(y, x), y, x)
    # ONNX Runtime's `Where` loses the sign of zeros.
    want = np.arctan2(y, x)
    turned = want != 0
    np.testing.assert_array_equal(
        np.signbit(made(y, x))[turned], np.signbit(want)[turned]
    )


def test_division_of_integers_does_not_crash():
    x = np.int32([7, -7, 5, -(2**31), 0])
    y = np.int32([2, 2, 0, -1, 0])
    check(lambda x, y: (lax.div(x, y), lax.rem(x, y)), x, y)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "uint32"])
def test_shifts(dtype):
    x = np.array([1, 100, 77, 0], dtype)
    x[1] = np.iinfo(dtype).min or np.iinfo(dtype).max
    by = np.array([1, 3, 60, 2], dtype)

    def f(x, by):
        return (
            lax.shift_left(x, by),
            lax.shift_right_logical(x, by),
            lax.shift_right_arithmetic(x, by),
            lax.population_count(x),
            lax.clz(x),
        )

    check(f, x, by)


def test_floats_are_clamped_to_integers():
    x = np.float32([1.9, -1.9, 300.0, -300.0, 3e9, -3e9, np.inf, -np.inf, np.nan])
    check(lambda x: (x.astype("int8"), x.astype("uint8"), x.astype("int32")), x)


def test_activations():
    x = np.linspace(-4, 4, 41, dtype=np.float32)

    def f(x):
        exact = nn.gelu(x, approximate=False)
        return nn.gelu(x), exact, nn.silu(x), nn.elu(x), nn.softplus(x), nn.relu(x)

    check(f, x)


def test_select_and_clamp_agree():
    x = fnp.arange(6.0).reshape(2, 3)
    which = fnp.array([[0, 1, 2], [2, 1, 5]])
    check(lambda w, x: lax.select_n(w, x, -x, 10 * x), which, x)
    check(lambda x: fnp.clip(x, 1, 3), x)
    made = check(lambda x: fnp.where(x > 2, x, 0), x)
    assert kinds(made)["Where"] == 1
