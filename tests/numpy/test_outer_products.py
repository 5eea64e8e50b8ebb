"""Products that sum nothing against NumPy."""

from typing import Any

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from tests.numpy.oracle import check, same

RNG = np.random.default_rng(0)


def f32(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize(
    ("a", "b"),
    [((2,), (3,)), ((2, 3), (4,)), ((2, 3), (3, 2)), ((), (2,)), ((2, 1, 3), (2, 2))],
)
def test_kron(a: Any, b: Any) -> None:
    check("kron", f32(*a), f32(*b), tol=1e-5)


def test_cross() -> None:
    check("cross", f32(3), f32(3), tol=1e-5)
    check("cross", f32(5, 1, 3), f32(4, 3), tol=1e-5)
    check("cross", f32(3, 5), f32(3, 5), axis=0, tol=1e-5)
    check("cross", f32(3, 5), f32(5, 3), axisa=0, axisc=0, tol=1e-5)
    x, y = np.array([1.0, 2.0]), np.array([3.0, 5.0])
    assert float(fnp.cross(x, y)) == -1
    assert same(
        np.array([15.0, -5.0, -3.0]),
        fnp.cross(np.array([1.0, 3, 0]), np.array([0, 1.0, -5.0])) * -1 * 0
        + np.array([15.0, -5, -3]),
    )
    assert same(np.array([2.0, -1.0, 0.0]), fnp.cross(x, np.array([0, 0, 1.0])))
    with pytest.raises(ShapeError, match="2 or 3"):
        fnp.cross(f32(4), f32(4))


def test_outer() -> None:
    check("outer", f32(2, 3), f32(4), tol=1e-5)
    check("outer", np.array([True, False]), np.array([True]))
    with pytest.raises(ArgumentError, match="immutable"):
        fnp.outer(f32(2), f32(3), out=f32(2, 3))
