"""The package of SciPy functions."""

import pytest

import fxflow.scipy


def test_modules_are_found() -> None:
    assert callable(fxflow.scipy.special.erf)
    assert callable(fxflow.scipy.linalg.expm)
    assert "special" in dir(fxflow.scipy)
    with pytest.raises(AttributeError, match="nothing"):
        _ = fxflow.scipy.nothing
