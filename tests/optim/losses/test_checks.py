"""Losses' errors for wrong arguments."""

import numpy as np
import pytest

from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.optim.losses import checks


def test_arguments_must_be_float_arrays() -> None:
    x = np.ones(2, np.float32)
    assert checks.floats("f", "x", x) is x
    with pytest.raises(DtypeError, match=r"f: x must be floats, got i32\[2\]"):
        checks.floats("f", "x", np.ones(2, np.int32))
    with pytest.raises(ArgumentError, match="f: x is"):
        checks.floats("f", "x", "1")


def test_shapes_that_differ_are_refused() -> None:
    x = np.ones(2, np.float32)
    assert checks.difference("f", x, np.float32(1)).tolist() == [0, 0]
    with pytest.raises(ShapeError, match=r"got f32\[2\] and f32\[1\]"):
        checks.difference("f", x, x[:1])
    with pytest.raises(ShapeError, match=r"got f32\[2\] and f32\[1\]"):
        checks.same_shapes("f", x, x[:1])
    with pytest.raises(ArgumentError, match="f: targets is"):
        checks.same_shapes("f", x, None)
