"""Matrices made smaller at random."""

import numpy as np
import pytest

import fxflow
from fxflow import random
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy.linalg import clarkson_woodruff_transform

RNG = np.random.default_rng(0)


def test_each_row_goes_to_one_row() -> None:
    rows = np.eye(40, dtype=np.float32)
    made = np.asarray(clarkson_woodruff_transform(rows, 7, random.key(1)))
    np.testing.assert_array_equal(np.abs(made).sum(0), np.ones(40))
    assert set(np.unique(made)) == {-1.0, 0.0, 1.0}
    a = RNG.normal(size=(2, 40, 3)).astype(np.float32)
    batch = clarkson_woodruff_transform(a, 7, random.key(1))
    np.testing.assert_allclose(batch, made @ a, 1e-4, 1e-5)
    slope = fxflow.jit(
        fxflow.grad(lambda a: clarkson_woodruff_transform(a, 7, random.key(1)).sum())
    )(a)
    np.testing.assert_array_equal(slope[..., 0], np.stack([made.sum(0)] * 2))


def test_norms_change_little() -> None:
    a = RNG.normal(size=(2000, 4)).astype(np.float32)
    small = clarkson_woodruff_transform(a, 400, random.key(2))
    ratio = np.linalg.norm(small, 2) / np.linalg.norm(a, 2)
    assert abs(ratio - 1) < 0.2


def test_bad_arguments_are_refused() -> None:
    a = np.ones((4, 2))
    with pytest.raises(ArgumentError, match="key"):
        clarkson_woodruff_transform(a, 2)
    with pytest.raises(ArgumentError, match="sketch_size"):
        clarkson_woodruff_transform(a, 0, random.key(0))
    with pytest.raises(ShapeError, match="matrices"):
        clarkson_woodruff_transform(a[0], 2, random.key(0))
