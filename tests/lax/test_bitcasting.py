"""The bits of one dtype as another."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
from fxflow import lax
from fxflow.errors import DtypeError, ShapeError


@pytest.mark.parametrize("run", [lambda f: f, fxflow.jit], ids=["eager", "jit"])
def test_widths(run) -> None:
    x = np.array([1.0, -2.5, 0.0], "f4")

    def there_and_back(x):
        narrow = lax.bitcast_convert_type(x, "uint8")
        assert narrow.shape == (3, 4)
        return lax.bitcast_convert_type(narrow, "float32")

    np.testing.assert_array_equal(np.asarray(run(there_and_back)(x)), x)


def test_zero_slope() -> None:
    def bits(x):
        word = lax.bitcast_convert_type(x, "int32")
        return lax.mul(x, lax.convert_element_type(word, "float32"))

    assert float(fxflow.grad(bits)(1.0)) == 0x3F800000


def test_dtypes_of_incompatible_widths_are_refused() -> None:
    with pytest.raises(DtypeError, match=r"bits of bool\[\] as u8"):
        lax.bitcast_convert_type(np.array(True), "uint8")
    with pytest.raises(DtypeError, match=r"bits of c64\[\] as f32"):
        lax.bitcast_convert_type(np.complex64(1), "float32")
    with pytest.raises(ShapeError, match=r"last axis of length 2, got u16\[3\]"):
        lax.bitcast_convert_type(np.zeros(3, "u2"), "float32")
    with pytest.raises(ShapeError, match=r"last axis of length 4, got u8\[\]"):
        lax.bitcast_convert_type(np.uint8(0), "float32")
