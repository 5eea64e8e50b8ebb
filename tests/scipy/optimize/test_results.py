"""Results are pytrees; their status in words, where it is known."""

from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow.errors import ConcretizationError
from fxflow.scipy.optimize import results


def test_messages_say_each_status() -> None:
    many = results.OptimizeResults(*[np.array([1, 0])] * 9)
    assert many.message == (
        "Converged. Stopped at the greatest number of iterations, or of calls."
    )
    one = results.ScalarRootResults(*[np.array(3)] * 5)
    assert one.flag == "The signs of f(a) and f(b) do not differ."
    fit = results.LeastSquaresResults(*[np.array(2)] * 11)
    assert "ftol" in fit.message
    assert "unbounded" in results.ProgramResults(*[3] * 11).message.lower()  # type: ignore[arg-type]
    assert "root" in results.RootResults(*[3] * 6).message  # type: ignore[arg-type]


def test_a_traced_status_has_no_message() -> None:
    def run(status: Any) -> Any:
        return results.RootResults(*[status] * 6).message

    with pytest.raises(ConcretizationError, match="outside jit"):
        fxflow.jit(run)(1)
