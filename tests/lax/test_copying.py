"""Copies and barriers."""

from __future__ import annotations

import numpy as np

import fxflow
from fxflow import lax


def test_copy_has_memory_of_its_own() -> None:
    x = fxflow.numpy.asarray(np.ones(3, "f4"))
    y = lax.copy(x)
    x.delete()
    assert np.asarray(y).tolist() == [1, 1, 1]


def test_copy_of_keys() -> None:
    key = fxflow.random.key(0)
    assert lax.copy(key).dtype == key.dtype


def test_barrier_keeps_the_structure() -> None:
    tree = {"a": np.float32(1), "b": (np.int32(2), np.ones(2, "f4"))}
    out = lax.optimization_barrier(tree)
    assert int(out["b"][0]) == 2 and out["b"][1].shape == (2,)
    assert lax.optimization_barrier(()) == ()


def test_barrier_is_in_the_program() -> None:
    text = fxflow.jit(lax.optimization_barrier).lower(np.float32(1)).as_text()
    assert "optimization_barrier" in text


def test_barrier_is_differentiable_in_part() -> None:
    def f(x, n):
        x, n = lax.optimization_barrier((x, n))
        return lax.mul(x, lax.convert_element_type(n, "float32"))

    assert float(fxflow.grad(f)(2.0, 3)) == 3
