"""Arrays repeated to a common shape."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ShapeError
from tests.numpy.oracle import check, same

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def test_broadcasting() -> None:
    check("broadcast_to", X[:, :1], (5, 2, 3, 4))
    check("broadcast_to", np.float32(3), (2, 0), compiled=False)
    check("broadcast_to", X[0, 0], 4, compiled=False)
    want = np.broadcast_arrays(X, X[0, 0], 1)
    assert same(list(want), fnp.broadcast_arrays(X, X[0, 0], 1))
    assert fnp.broadcast_shapes((2, 1), 3, (1, 1)) == (2, 3)
    assert fnp.broadcast_arrays() == []


def test_gradient_of_broadcasting_is_a_sum() -> None:
    pull = fxflow.vjp(lambda x: fnp.broadcast_to(x, (3, 2)), fnp.ones(2))[1]
    assert pull(fnp.ones((3, 2)))[0].tolist() == [3, 3]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: fnp.broadcast_to(X, (2, 3)), ShapeError, r"to shape \(2, 3\)"),
        (lambda: fnp.broadcast_arrays(X, X[:, :2]), ShapeError, "lengths 3 and 2"),
        (lambda: fnp.broadcast_shapes((2,), (3,)), ShapeError, "do not broadcast"),
    ],
)
def test_shapes_that_do_not_broadcast_are_refused(
    call: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        call()
