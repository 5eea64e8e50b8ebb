"""Finding elements against NumPy."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from tests.numpy.oracle import check, same

X = (np.arange(12, dtype=np.float32).reshape(3, 4) * 7) % 5
A = np.array


@pytest.mark.parametrize("name", ("nonzero", "flatnonzero", "argwhere"))
def test_finding(name: str) -> None:
    check(name, X > 2, compiled=False)
    check(name, X, compiled=False)
    check(name, X[:0], compiled=False)
    want = getattr(np, name)(X > 2)
    count = int((X > 2).sum())
    found = fxflow.jit(lambda x: getattr(fnp, name)(x > 2, size=count))(X)
    assert same(want, found)


def test_finding_a_number_of_places() -> None:
    mask = A([[True, False], [False, True]])
    rows, columns = fnp.nonzero(mask, size=4, fill_value=(-1, -2))
    assert rows.tolist() == [0, 1, -1, -1] and columns.tolist() == [0, 1, -2, -2]
    assert fnp.nonzero(mask, size=1)[0].tolist() == [0]
    assert fnp.flatnonzero(mask, size=3).tolist() == [0, 3, 0]
    assert fnp.flatnonzero(mask[:0], size=2, fill_value=9).tolist() == [9, 9]
    assert fnp.where(mask, size=3)[1].tolist() == [0, 1, 0]


def test_compressing() -> None:
    want = np.compress([True, False, True], X, 0)
    assert same(want, fnp.compress([True, False, True], X, 0))
    assert same(np.extract(X > 2, X), fnp.extract(X > 2, X))
    got = fxflow.jit(lambda x: fnp.extract(x > 2, x, size=9, fill_value=-1))(X)
    full = np.extract(X > 2, X)
    assert same([*full, *[-1] * (9 - len(full))], got)
