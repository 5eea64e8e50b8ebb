"""where, select, clip and the others that choose."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from tests.numpy.oracle import check, same

X = np.array([-1.0, 0.0, 2.0, 5.0, np.nan], np.float32)
V = np.arange(5, dtype=np.int32)


def test_where_agrees_with_numpy() -> None:
    check("where", X > 0, X, -X)
    check("where", X > 0, X, np.float32(1))
    check("where", np.array([[True], [False]]), X, np.float32(0))
    check("where", V, X, X[::-1].copy(), compiled=False)
    check("where", np.array(True), X, V)
    check("where", X > 0, np.float32(1), np.float32(2))


def test_where_takes_python_numbers() -> None:
    assert fnp.where(V > 1, 1, 0).dtype == np.int32
    assert fnp.where(V > 1, V, 0.5).dtype == np.float32
    assert fnp.where(True, 1.0, 2.0).weak_type


def test_the_gradient_of_where_goes_where_it_was_taken() -> None:
    slope = fxflow.grad(lambda x: fnp.where(x > 0, x * 3, x)[()])
    assert (float(slope(1.0)), float(slope(-1.0))) == (3.0, 1.0)


def test_where_under_vmap() -> None:
    out = fxflow.vmap(lambda c, x: fnp.where(c, x, 0.0))(X > 0, X)
    assert same(np.where(X > 0, X, 0), out)


def test_where_of_keys() -> None:
    keys = fxflow.random.split(fxflow.random.key(0), 2)
    out = fnp.where(np.array([True, False]), keys[0], keys)
    assert out.dtype == keys.dtype and np.asarray(out == keys).all()


def test_where_with_one_branch() -> None:
    with pytest.raises(ArgumentError, match="both x and y, or neither"):
        fnp.where(X > 0, X)
    with pytest.raises(ShapeError, match="where: operands"):
        fnp.where(X > 0, X[:2], X)


def test_select() -> None:
    conditions, choices = [V > 3, V > 1], [V, V * 10]
    assert same(np.select(conditions, choices, -1), fnp.select(conditions, choices, -1))
    with pytest.raises(ArgumentError, match="as many choices as conditions"):
        fnp.select(conditions, choices[:1])
    with pytest.raises(DtypeError, match="conditions must be boolean"):
        fnp.select([V], [V])


def test_piecewise() -> None:
    conditions, pieces = [X < 0, X > 1], [lambda x: -x, 7.0, lambda x: x / 2]
    assert same(
        np.piecewise(X, conditions, pieces), fnp.piecewise(X, conditions, pieces)
    )
    assert same(np.piecewise(X, X > 1, [3.0]), fnp.piecewise(X, X > 1, [3.0]))
    with pytest.raises(ArgumentError, match="2 conditions need as many functions"):
        fnp.piecewise(X, conditions, [1.0])


@pytest.mark.parametrize("mode", ("wrap", "clip"))
def test_choose(mode: str) -> None:
    which = np.array([0, 1, -1, 5])
    cases = [V[:4], V[1:]]
    want = np.choose(which, cases, mode=mode)
    assert same(want, fnp.choose(which, cases, mode=mode))


def test_choose_out_of_range() -> None:
    with pytest.raises(ArgumentError, match="out of range for 2 choices"):
        fnp.choose(np.array([0, 2]), [V[:2], V[:2]])
    with pytest.raises(DtypeError, match="takes integers"):
        fnp.choose(X, [V])


def test_clip() -> None:
    check("clip", X, 0.0, 3.0)
    check("clip", V, 1, 3)
    assert same(np.clip(X, None, 1), fnp.clip(X, None, 1))
    assert same(np.clip(X, 1, None), fnp.clip(X, min=1))
    assert same(np.clip(X, X[:, None], 3), fnp.clip(X, X[:, None], 3))
    assert fnp.clip(V, 0.5).dtype == np.float32
    with pytest.raises(DtypeError, match="clip: complex numbers have no order"):
        fnp.clip(1j, 0, 1)


def test_nan_to_num() -> None:
    bad = np.array([np.nan, np.inf, -np.inf, 1.0], np.float32)
    pairs = np.empty(4, np.complex64)
    pairs.real, pairs.imag = bad, bad[::-1]
    check("nan_to_num", bad)
    check("nan_to_num", bad, nan=1.0, posinf=2.0, neginf=3.0)
    check("nan_to_num", pairs, compiled=False)
    assert fnp.nan_to_num(V) is not None and same(V, fnp.nan_to_num(V))


@pytest.mark.parametrize("dtype", ("int8", "uint8", "uint4", "int32"))
def test_clip_by_numbers_that_the_dtype_does_not_hold(dtype) -> None:
    x = fnp.array([0, 5], dtype)
    for low, high in ((-1, 1), (-(2**40), 2**40), (None, 2**40), (-(2**40), None)):
        inside = np.clip(np.array([0, 5]), low, high)
        for run in (fnp.clip, fxflow.jit(lambda x, a=low, b=high: fnp.clip(x, a, b))):
            out = run(x, low, high) if run is fnp.clip else run(x)
            assert out.dtype == x.dtype and out.astype(int).tolist() == inside.tolist()
    for bounds in ((2**40, None), (None, -(2**40))):
        with pytest.raises(OverflowError, match=f"does not fit {dtype}"):
            fnp.clip(x, *bounds)
