"""Products of arrays with scales of blocks."""

import ml_dtypes
import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax
from fxflow.errors import DtypeError, ShapeError

RNG = np.random.default_rng(0)
BATCHED = (((2,), (2,)), ((0,), (0,)))


def test_products_agree_with_einsum_of_scaled_operands() -> None:
    a = RNG.normal(size=(2, 4, 64)).astype(ml_dtypes.float8_e4m3fn)
    b = RNG.normal(size=(2, 8, 64)).astype(ml_dtypes.float8_e4m3fn)
    scale_a = np.exp2(RNG.integers(-2, 3, (2, 4, 2))).astype(ml_dtypes.float8_e8m0fnu)
    scale_b = np.exp2(RNG.integers(-2, 3, (2, 8, 4))).astype(ml_dtypes.float8_e8m0fnu)
    wide_a = a.astype(float) * np.repeat(scale_a.astype(float), 32, 2)
    wide_b = b.astype(float) * np.repeat(scale_b.astype(float), 16, 2)
    expected = np.einsum("bmk,bnk->bmn", wide_a, wide_b)

    def ours(a: fxflow.Array, b: fxflow.Array, **options: object) -> fxflow.Array:
        return lax.scaled_dot(
            a,
            b,
            lhs_scale=fnp.asarray(scale_a),
            rhs_scale=fnp.asarray(scale_b),
            dimension_numbers=BATCHED,
            **options,  # type: ignore[arg-type]
        )

    x, y = fnp.asarray(a), fnp.asarray(b)
    for function in (ours, fxflow.jit(ours, static_argnames="preferred_element_type")):
        out = function(x, y, preferred_element_type=fnp.float32)
        np.testing.assert_allclose(out, expected, 1e-5, 1e-4)
        assert function(x, y).dtype == "bfloat16"
    plain = lax.scaled_dot(x[0], y[0].T, preferred_element_type=fnp.float32)
    expected = a[0].astype(float) @ b[0].astype(float).T
    np.testing.assert_allclose(plain, expected, 1e-5, 1e-4)


def test_derivatives_and_batches() -> None:
    a, b = RNG.normal(size=(3, 4)), RNG.normal(size=(4, 2))
    scale = np.array([[2.0, 3.0]] * 3)
    with fxflow.config.override(x64=True):
        product = lambda a: lax.scaled_dot(
            a, b, lhs_scale=scale, preferred_element_type=np.float64
        )
        slope = fxflow.grad(lambda a: product(a).sum())(a)
        np.testing.assert_allclose(slope, b.sum(1) * np.repeat(scale, 2, 1))
        each = fxflow.vmap(product)(np.stack([a, 2 * a]))
        np.testing.assert_allclose(each[1], 2 * product(a))


def test_scales_and_operands_that_do_not_fit_are_refused() -> None:
    x = fnp.ones((2, 4))
    for scale in (fnp.ones((2, 3)), fnp.ones((1, 2)), fnp.ones(4), fnp.ones((2, 0))):
        with pytest.raises(ShapeError, match="lhs_scale"):
            lax.scaled_dot(x, x.T, lhs_scale=scale)
    with pytest.raises(DtypeError, match="floats"):
        lax.scaled_dot(x, fnp.ones((4, 2), int))
    with pytest.raises(ShapeError):
        lax.scaled_dot(x, x)
