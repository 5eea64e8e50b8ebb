"""The logistic function and entropies against SciPy."""

from typing import Any

import pytest

from tests.scipy.special import suite
from tests.scipy.special.suite import P, U, X

ONE: dict[str, Any] = {
    "expit": X,
    "logit": U,
    "log_expit": X * 20,
    "entr": P,
}
TWO: dict[str, Any] = {
    "xlogy": (P - P[0], P[:, None]),
    "xlog1py": (P - P[0], U[:, None]),
    "rel_entr": (P, U[:, None]),
    "kl_div": (P, U[:, None]),
}


@pytest.mark.parametrize("name", ONE)
def test_one_argument(name: str) -> None:
    suite.one_argument(name, ONE[name])


@pytest.mark.parametrize("name", TWO)
def test_two_arguments(name: str) -> None:
    suite.two_arguments(name, *TWO[name])


@pytest.mark.parametrize("name", ["expit", "logit", "entr"])
def test_edges(name: str) -> None:
    suite.edges(name)
