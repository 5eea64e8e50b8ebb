"""Callbacks of solvers."""

from typing import Any

import pytest

import fxflow
from fxflow.errors import ArgumentError
from fxflow.scipy._callbacks import showing


def test_callbacks_must_be_functions() -> None:
    assert showing("f", None) is None
    with pytest.raises(ArgumentError, match="f: callback must be a function, got 3"):
        showing("f", 3)
    seen: list[Any] = []
    tell = showing("f", lambda x: seen.append(float(x)))
    assert tell is not None
    fxflow.jit(lambda x: tell(2 * x))(1.5)
    assert seen == [3]
