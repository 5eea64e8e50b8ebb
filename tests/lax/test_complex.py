"""Complex numbers: parts, and the convention of their derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
from fxflow import lax
from fxflow.errors import DtypeError

Z = np.complex64(3 + 4j)


def test_gradient_of_a_real_function() -> None:
    # ∂f/∂x - i ∂f/∂y, so that a step against the conjugate descends.
    gradient = fxflow.grad(lax.abs)(Z)
    np.testing.assert_allclose(np.asarray(gradient), 0.6 - 0.8j, 1e-6)
    assert np.asarray(fxflow.grad(lax.real)(Z)) == 1
    assert np.asarray(fxflow.grad(lax.imag)(Z)) == -1j


def test_conj_of_a_real_array_is_complex() -> None:
    out = lax.conj(np.float32(2))
    assert out.dtype == np.complex64
    gradient = fxflow.grad(lambda x: lax.real(lax.conj(x)))(np.float32(2))
    assert gradient.dtype == np.float32 and float(gradient) == 1


def test_pieces_make_the_whole() -> None:
    assert np.asarray(lax.complex(lax.real(Z), lax.imag(Z))) == Z
    assert np.asarray(lax.complex(np.float32(1), 2.0)) == 1 + 2j


def test_slope_of_sign_turns_about_the_origin() -> None:
    _, tangent = fxflow.jvp(lax.sign, (Z,), (Z,))
    np.testing.assert_allclose(np.asarray(tangent), 0, atol=1e-7)
    _, tangent = fxflow.jvp(lax.sign, (Z,), (Z * np.complex64(1j),))
    np.testing.assert_allclose(np.asarray(tangent), (0.6 + 0.8j) * 1j, 1e-6)


def test_operands_of_a_wrong_dtype_are_refused() -> None:
    with pytest.raises(DtypeError, match=r"real: takes complex arrays, got f32\[\]"):
        lax.real(np.float32(1))
    with pytest.raises(DtypeError, match=r"complex: parts must be f32 or f64.*f16"):
        lax.complex(np.float16(1), np.float16(1))
    with pytest.raises(DtypeError, match=r"conj: takes complex arrays, got i32\[\]"):
        lax.conj(np.int32(1))
