"""Parts of complex numbers."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ConcretizationError
from tests.numpy.oracle import COMPLEX, check


@pytest.mark.parametrize("name", ("real", "imag", "conjugate", "angle"))
def test_parts_agree_with_numpy(name: str) -> None:
    check(name, COMPLEX)
    check(name, np.array([1.0, -2.0], np.float32))


def test_angle_in_degrees() -> None:
    check("angle", COMPLEX, deg=True)


def test_real_if_close() -> None:
    assert fnp.real_if_close(fnp.asarray([1 + 1e-9j])).dtype == np.float32
    assert fnp.real_if_close(COMPLEX).dtype == np.complex64
    with pytest.raises(ConcretizationError):
        fxflow.jit(fnp.real_if_close)(COMPLEX)


def test_angle_of_minus_zero() -> None:
    check("angle", np.array([-0.0, 0.0, -1, 1, np.inf, -np.inf, np.nan], np.float32))
