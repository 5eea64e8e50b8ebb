"""Errors that name the lines of a double where."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import NonFiniteError

X = np.array([0.0, 1.0], np.float32)


def hidden(x: Any) -> Any:
    r = fnp.sqrt(x)
    z = 2 * r
    return fnp.where(x > 0, z, 0.0).sum()


def plain(x: Any) -> Any:
    return (fnp.sqrt(x) * 0.0).sum()


FIRST = hidden.__code__.co_firstlineno
WAYS = [
    fxflow.grad,
    lambda f: fxflow.jit(fxflow.grad(f)),
    lambda f: fxflow.grad(fxflow.jit(f)),
    lambda f: fxflow.jit(fxflow.grad(fxflow.jit(f))),
]


@pytest.mark.parametrize("way", range(len(WAYS)))
def test_both_lines_are_named(way: int) -> None:
    assert np.isnan(WAYS[way](hidden)(X)[0])
    message = (
        rf"double where.*test_double_where.py:{FIRST + 1} \(hidden\) is infinite "
        rf".*test_double_where.py:{FIRST + 3} \(hidden\).*lax.masked"
    )
    with fxflow.debug_nans(), pytest.raises(NonFiniteError, match=message):
        WAYS[way](hidden)(X)


@pytest.mark.parametrize("way", range(len(WAYS)))
def test_a_nan_of_another_kind_is_not_called_so(way: int) -> None:
    with fxflow.debug_nans(), pytest.raises(NonFiniteError) as found:
        WAYS[way](plain)(X)
    assert "double where" not in str(found.value)
