"""Ranking losses, compared with optax 0.2.8."""

from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import numpy as fnp
from fxflow.errors import ShapeError
from fxflow.optim.losses import ranking_softmax_loss as loss

X = np.float32([[3, 4, 1], [1, -2, 0.5]])
Y = np.float32([[0, 1, 2], [1, 0, 0]])
WHERE = np.array([[1, 1, 0], [1, 0, 1]], bool)
NONE = np.zeros((2, 3), bool)


@pytest.mark.parametrize(
    ("options", "want"),
    [
        ({}, 3.7758167),
        ({"reduce_fn": None}, [7.0470366, 0.5045969]),
        ({"where": WHERE, "reduce_fn": None}, [0.3132616, 0.474077]),
        ({"where": WHERE}, 0.3936693),
        ({"where": WHERE, "reduce_fn": fnp.sum}, 0.7873386),
        ({"where": np.stack([WHERE[0], NONE[0]])}, 0.3132616),
        ({"where": NONE}, 0.0),
        ({"where": NONE, "reduce_fn": None}, [0.0, 0.0]),
        (
            {"weights": np.float32([[1, 2, 3], [0.5, 1, 1]]), "reduce_fn": None},
            [20.792097, 0.2522984],
        ),
    ],
)
def test_numbers_match_optax(options: dict[str, Any], want: Any) -> None:
    out = loss(X, Y, **options)
    np.testing.assert_allclose(out, want, rtol=1e-5)
    assert out.shape == np.shape(want)


def test_excluded_items_have_no_gradient() -> None:
    x = X.copy()
    x[~WHERE] = np.nan
    slope = fxflow.jit(fxflow.grad(lambda x: loss(x, Y, where=WHERE)))(x)
    assert np.isfinite(np.asarray(slope)[WHERE]).all()
    assert (np.asarray(slope)[~WHERE] == 0).all()
    assert not fxflow.grad(lambda x: loss(x, Y, where=NONE))(X).any()
    with pytest.raises(
        ShapeError, match="ranking_softmax_loss: expected arrays of one"
    ):
        loss(X, Y[:1])
