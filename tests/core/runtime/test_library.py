"""Operands of plans: one key for arguments that one plan serves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fxflow import config, devices, jit, lax
from fxflow.core.arrays import as_array
from fxflow.core.runtime import execute
from fxflow.core.runtime.library import (
    classify,
    exact,
    library,
    number,
    wide_kinds,
    with_all_bits,
)
from fxflow.devices.compile import quick_options
from fxflow.errors import LeakedTracerError


def key_of(*values):
    key, arrays = [], []
    for value in values:
        classify(value, key, arrays, values)
    return tuple(key), arrays


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (5, 7, True),
        (3, 300, False),  # another dtype may hold one and not the other
        (-129, -200, True),
        (1.0, 2.5, True),
        (1, 1.0, False),
        (True, 1, False),
        (np.zeros(3, np.float32), as_array(np.ones(3, np.float32)), True),
        (np.zeros(3, np.float32), np.zeros(4, np.float32), False),
        ([1.0, (2.0,)], [3.0, (4.0,)], True),
        ([1.0, 2.0], (1.0, 2.0), False),
        ("sum", "mean", False),
        (None, "None", False),
    ],
)
def test_equal_graphs_have_equal_keys(one, other, alike):
    assert (key_of(one)[0] == key_of(other)[0]) is alike


def test_arrays_are_in_order():
    _, arrays = key_of(1, [np.float32(2), (3.0,)], "axis", np.arange(2))
    assert [a.tolist() for a in arrays] == [1, 2.0, 3.0, [0, 1]]


def test_numbers_are_weak():
    assert str(number(1.5, float, False).aval) == "f32[]~"
    assert str(number(True, bool, False).aval) == "bool[]"
    with pytest.raises(OverflowError, match="int32"):
        number(2**40, int, False)


def test_64_bits_beside_arrays_that_have_them():
    with config.override(x64=True):
        wide = as_array(np.arange(2.0))
    assert wide_kinds([1, [wide], None]) == "f"
    assert wide_kinds(["int64", np.float64]) == "if"
    assert wide_kinds([np.float64(1), 1.0]) == ""
    assert with_all_bits(1e-300, "f").tolist() == 1e-300
    assert with_all_bits(np.float64(1e-300), "f").tolist() == 1e-300
    assert with_all_bits(np.float64(1e-300), "i").tolist() == 0.0
    assert with_all_bits("axis", "f") == "axis"


def test_leaked_values_are_refused():
    kept = []
    jit(lambda x: kept.append(x) or x)(1.0)
    with pytest.raises(LeakedTracerError):
        key_of(kept[0])


def test_what_is_exact_tells_equal_values_apart():
    assert exact(1) != exact(1.0) != exact(True)
    assert exact((0.0, (1,))) != exact((-0.0, (1,)))
    assert exact(complex(0.0, -0.0)) != exact(0j)
    assert exact(np.float64(0.0)) != exact(np.float64(-0.0))
    assert exact((1.5, "a")) == exact((1.5, "a"))
    assert exact(len) is type(len), "of others their own equality decides"


def test_quick_programs_are_of_few_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []
    compile_text = execute.compile_text

    def record(*args: Any, **kwargs: Any) -> Any:
        given.append(kwargs["options"])
        return compile_text(*args, **kwargs)

    monkeypatch.setattr(execute, "compile_text", record)

    @library(quick=True)
    def waves(x: Any) -> Any:
        # NumPy does not run it.
        return lax.sin(x) * lax.exp(x) + 0 * lax.lgamma(x)

    few, many = (as_array(np.ones(n, np.float32)) for n in (3, 1000))
    np.testing.assert_allclose(np.asarray(waves(few)), np.sin(1) * np.e, 1e-6)
    np.testing.assert_allclose(np.asarray(waves(many)), np.sin(1) * np.e, 1e-6)
    wanted = quick_options(devices()[0])
    quick, usual = (options or {} for options in given)
    assert quick.items() >= wanted.items()
    assert not usual.keys() & wanted.keys()


def test_overridden_options_have_plans_of_their_own():
    traced = []

    @library()
    def double(x):
        traced.append(x.dtype)
        return x * 2.0

    for _ in range(2):
        assert double(1.5).dtype == np.float32
        with config.override(x64=True):
            assert double(1e-300).tolist() == 2e-300
            with config.override(x64=False):
                assert double(1.5).dtype == np.float32
            assert double(as_array(np.ones(2))).dtype == np.float64
    assert traced == [np.float32, np.float64, np.float32, np.float64]
