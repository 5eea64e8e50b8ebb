"""Every public function under the strict settings of promotion that careful users set.

`numpy_rank_promotion="raise"` and `numpy_dtype_promotion="strict"` refuse what a user
combines. What a function of fxflow combines on its way is its own affair: a call whose
arguments have nothing to promote gives under them what it gives without.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import config, jit, lax, nn, optim, scipy
from fxflow.errors import DtypeError, ShapeError
from tests.sweeps.catalogue import Call, catalogue
from tests.sweeps.sampling import sample

SETTINGS = {
    "ranks": {"numpy_rank_promotion": "raise"},
    "dtypes": {"numpy_dtype_promotion": "strict"},
}
#: Calls that are there to broadcast operands of several ranks.
BROADCASTING = {
    "numpy.add-broadcast",
    "numpy.multiply-broadcast",
    "numpy.maximum-broadcast",
    "numpy.clip-arrays",
    "scipy.special.logsumexp-weights",
}


def promotes(call: Call, setting: str) -> bool:
    """Returns whether a call is there to promote ranks, or orders of functions."""
    if setting == "ranks":
        return str(call) in BROADCASTING
    special = str(call).startswith("scipy.special.")
    return special and len({x.dtype for x in call.draw()}) > 1


CALLS = [c for c in catalogue() if c.operands and not c.random]
CASES = [(call, s) for call in CALLS for s in SETTINGS if not promotes(call, s)]


def same(a: Any, b: Any) -> None:
    for x, y in zip(fxflow.tree.leaves(a), fxflow.tree.leaves(b), strict=True):
        if hasattr(x, "dtype") and not fnp.issubdtype(x.dtype, fxflow.dtypes.prng_key):
            assert x.dtype == y.dtype
            x, y = np.asarray(x), np.asarray(y)
            inexact = x.dtype.kind not in "biu"
            rtol, atol = (1e-4, 1e-5) if inexact else (0, 0)
            np.testing.assert_allclose(
                x.astype("c8") if inexact else x,
                y.astype("c8") if inexact else y,
                rtol,
                atol,
            )


@pytest.mark.parametrize(
    ("call", "setting"),
    [pytest.param(*c, id=f"{c[0]}-{c[1]}") for c in sample(CASES, 500, "strict")],
)
def test_what_is_combined_inside_is_not_refused(call: Call, setting: str) -> None:
    arrays = call.draw()
    plain = call.run(*arrays)
    with config.override(**SETTINGS[setting]):
        same(plain, call.run(*arrays))
        if call.traceable:
            fxflow.eval_shape(lambda *xs: fxflow.tree.leaves(call.run(*xs)), *arrays)


X, W, B = np.ones((2, 3), "f4"), np.ones((3, 4), "f4"), np.ones(4, "f4")
ROTATION = scipy.spatial.transform.Rotation.from_euler("x", fnp.array([[0.1], [0.2]]))
W_B = {"w": W, "b": B}
PHASES = fnp.ones(3) * 1j
HALF = fnp.ones(3, fnp.bfloat16)


def minimized() -> Any:
    return scipy.optimize.minimize(
        lambda x: fnp.sum(x**4), fnp.ones(3), method="BFGS"
    ).x


def stepped() -> Any:
    optimizer = optim.adamw(1e-2)
    params = {"w": HALF}
    updates, _ = optimizer.update(params, optimizer.init(params), params)
    return optim.apply_updates(params, updates)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(
    "function",
    [
        lambda: nn.linear(W_B, X),
        lambda: fnp.add.outer(X, B),
        lambda: fnp.einsum("ij,jk,k->i", X, W, B),
        lambda: scipy.special.logsumexp(PHASES),
        lambda: ROTATION.inv().as_quat(),
        lambda: ROTATION.mean().as_quat(),
        lambda: scipy.spatial.transform.Slerp.init(fnp.arange(2.0), ROTATION)(
            0.5
        ).as_quat(),
        minimized,
        stepped,
    ],
    ids=[
        "linear",
        "outer",
        "einsum",
        "logsumexp",
        "inv",
        "mean",
        "slerp",
        "minimize",
        "adamw",
    ],
)
def test_more_functions_that_combine_inside(
    function: Callable[[], Any], setting: str
) -> None:
    with config.override(**SETTINGS[setting]):
        assert fxflow.tree.leaves(function())


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: a + b,
        lambda a, b: fnp.add(a, b),
        lambda a, b: fnp.logaddexp(a, b),
        lambda a, b: fnp.hypot(a, b),
        lambda a, b: scipy.special.xlogy(a, b),
    ],
    ids=["operator", "add", "logaddexp", "hypot", "xlogy"],
)
def test_what_the_user_combines_is_refused(function: Callable[..., Any]) -> None:
    a, b, whole = fnp.ones((2, 4)), fnp.ones(4), fnp.ones((2, 4), fnp.int32)
    with config.override(numpy_rank_promotion="raise"):
        with pytest.raises(ShapeError, match="have different ranks"):
            function(a, b)
        with pytest.raises(ShapeError, match="have different ranks"):
            jit(function)(a, b)
    with config.override(numpy_dtype_promotion="strict"):
        with pytest.raises(DtypeError, match="no implicit promotion of f32 and i32"):
            function(a, whole)
        with pytest.raises(DtypeError, match="no implicit promotion"):
            lax.scan(lambda c, _: (function(c, whole), None), a, None, length=2)


def test_a_warning_names_what_the_user_combines_alone() -> None:
    with config.override(numpy_rank_promotion="warn"):
        nn.linear(W_B, X)
        with pytest.warns(
            UserWarning, match=r"f32\[2,4\], f32\[4\] of different ranks"
        ):
            fnp.ones((2, 4)) * fnp.ones(4)
