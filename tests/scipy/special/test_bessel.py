"""Bessel functions against SciPy."""

from typing import Any

import pytest

from fxflow.scipy import special
from tests.scipy.special import suite
from tests.scipy.special.suite import X

ONE: dict[str, Any] = {
    "i0": X,
    "i0e": X,
    "i1": X,
    "i1e": X,
}


@pytest.mark.parametrize("name", ONE)
def test_one_argument(name: str) -> None:
    suite.one_argument(name, ONE[name])


@pytest.mark.parametrize("name", ["i0", "i0e", "i1", "i1e"])
def test_edges(name: str) -> None:
    suite.edges(name)


def test_declared_functions_look_like_written_ones() -> None:
    assert special.i0e.__name__ == "i0e"
    assert "order 1, times exp" in (special.i1e.__doc__ or "")
