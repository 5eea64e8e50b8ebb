"""Comparisons."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
from fxflow import lax
from fxflow.errors import DtypeError


def test_result_is_a_strong_bool() -> None:
    out = lax.lt(1.0, 2.0)
    assert out.dtype == np.bool_ and not out.weak_type


def test_comparisons_have_no_slope() -> None:
    def chosen(x):
        return lax.select(lax.gt(x, 0.0), lax.mul(x, 3.0), x)

    assert float(fxflow.grad(chosen)(2.0)) == 3


def test_complex_order_and_mixed_dtypes_are_refused() -> None:
    z = np.complex64(1)
    with pytest.raises(DtypeError, match=r"lt: takes .*, got c64\[\]"):
        lax.lt(z, z)
    with pytest.raises(DtypeError, match=r"eq: operands must have one dtype"):
        lax.eq(np.int32(1), np.float32(1))


def test_relations_that_xla_gets_wrong_are_two() -> None:
    def count(function, *, zero_first: bool = False) -> int:
        def against_zero(x):
            return function(0.0, x) if zero_first else function(x, 0.0)

        text = fxflow.jit(against_zero).lower(np.ones(3, "f4")).as_text()
        return text.count("stablehlo.compare")

    assert count(lax.ge) == count(lax.le, zero_first=True) == 2
    assert count(lax.le) == count(lax.ge, zero_first=True) == count(lax.gt) == 1


@pytest.mark.parametrize("jitted", [False, True])
def test_keys_are_equal_if_all_their_words_are(jitted: bool) -> None:
    run = fxflow.jit if jitted else (lambda f: f)
    keys = fxflow.random.wrap_key_data(np.array([[1, 2], [1, 3], [2, 2]], np.uint32))
    assert run(lax.eq)(keys, keys[0]).tolist() == [True, False, False]
    assert run(lax.ne)(keys[0], keys).tolist() == [False, True, True]
    assert run(lax.eq)(keys[:0], keys[:0]).shape == (0,)
    with pytest.raises(DtypeError, match="key_data gives key data"):
        run(lax.lt)(keys, keys)
    with pytest.raises(DtypeError, match="keys compare with keys of their kind"):
        run(lambda k: lax.eq(k, 1))(keys)
