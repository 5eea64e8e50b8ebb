"""Questions about numbers."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow.errors import DtypeError
from tests.numpy.oracle import COMPLEX, FLOATS, INTEGERS, check


@pytest.mark.parametrize(
    "name", ("isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit", "isreal")
)
def test_predicates_agree_with_numpy(name: str) -> None:
    check(name, FLOATS)
    check(name, INTEGERS, compiled=False)


@pytest.mark.parametrize("name", ("isnan", "isinf", "isfinite", "iscomplex", "isreal"))
def test_questions_about_complex_numbers(name: str) -> None:
    check(name, np.array([1 + 0j, np.nan, 1j * np.inf, 2j], np.complex64))


@pytest.mark.parametrize("name", ("isposinf", "signbit", "fabs", "floor"))
def test_questions_that_complex_numbers_cannot_answer(name: str) -> None:
    with pytest.raises(DtypeError, match=name):
        getattr(fnp, name)(COMPLEX)
