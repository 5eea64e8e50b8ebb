"""`shgo` beside SciPy's, under transformations, its options and errors."""

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy.optimize import shgo


def waves(x: Any, a: Any = 0.0, np: Any = fnp) -> Any:
    return ((x - a) ** 2).sum() - 2 * np.cos(5 * (x - a)).sum()


BOX = [(-2.0, 3.0)] * 2


@pytest.mark.slow
@pytest.mark.parametrize("method", ["simplicial", "sobol", "halton"])
def test_the_minima_are_those_of_scipy(method: str) -> None:
    # SciPy's own points may miss a basin: here all are near a known one.
    with fxflow.config.override(x64=True):
        found = shgo(waves, BOX, (0.3,), n=128, sampling_method=method)
    assert int(found.status) == 0
    np.testing.assert_allclose(found.x, 0.3, atol=1e-5)
    line = scipy.optimize.shgo(
        lambda x: waves(x, 0.3, np), BOX[:1], n=128, sampling_method="sobol"
    )
    one = np.asarray(line.xl).ravel()
    near = np.abs(np.asarray(found.xl)[:, :, None] - one).min(-1)
    assert near.max() < 1e-4
    assert np.all(np.diff(np.asarray(found.funl)) >= 0)


@pytest.mark.slow
def test_constraints_derivatives_and_batches() -> None:
    def run(a: Any) -> Any:
        return shgo(waves, BOX[:1], (a,), n=20)

    with fxflow.config.override(x64=True):
        slope = fxflow.grad(lambda a: run(a).x[0])(0.3)
        np.testing.assert_allclose(slope, 1.0, rtol=1e-6)
        many = fxflow.jit(fxflow.vmap(run))(fnp.array([0.1, 0.3]))
        np.testing.assert_allclose(many.x[:, 0], [0.1, 0.3], atol=1e-5)
        assert many.xl.shape == (2, 16, 1)
        alone = run(0.3)
        np.testing.assert_allclose(many.funl[1, : len(alone.funl)], alone.funl)
        assert np.isnan(np.asarray(many.xl[1, len(alone.funl) :])).all()
        row = {"type": "ineq", "fun": lambda x: x[0] + x[1] - 1.2}
        found = shgo(waves, BOX, constraints=row, n=50)
        want = scipy.optimize.shgo(
            lambda x: waves(x, 0.0, np), BOX, constraints=row, n=200
        )
        np.testing.assert_allclose(found.fun, want.fun, atol=1e-6)
        assert float(found.maxcv) < 1e-6
        never = {"type": "ineq", "fun": lambda x: -1 - x @ x}
        assert int(shgo(waves, BOX, constraints=never, n=9).status) == 4


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ArgumentError, match="sampling_method must be"):
        shgo(waves, BOX, sampling_method="random")
    with pytest.raises(ArgumentError, match="bounds must be finite"):
        shgo(waves, [(0.0, None)])
    with pytest.raises(ShapeError, match=r"must return float\[m, 2\]"):
        shgo(waves, BOX, sampling_method=lambda n, d: np.zeros((n, 3)))
    with pytest.raises(ArgumentError, match="has no options minhgrd"):
        shgo(waves, BOX, options={"minhgrd": 1})
