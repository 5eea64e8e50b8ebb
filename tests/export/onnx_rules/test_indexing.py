import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax
from tests.export.onnx_rules.checks import check, kinds

X = fnp.arange(24.0).reshape(4, 6)


def test_an_embedding_is_one_gather():
    made = check(lambda x, i: x[i], X, fnp.array([[0, 3], [2, -1]]))
    assert kinds(made)["Gather"] == 1


@pytest.mark.parametrize("mode", ["clip", "fill", "wrap"])
def test_take_agrees_out_of_bounds(mode):
    places = fnp.array([0, 3, 17, -9])
    check(lambda x, i: fnp.take(x, i, axis=1, mode=mode), X, places)


def test_indices_of_several_axes_agree_with_the_function():
    def f(x, i):
        return (
            x[i, i + 1],
            x[i, 1:3],
            x[:, i],
            fnp.take_along_axis(x, i[None] % 2, axis=1),
            x.at[i].get(mode="fill", fill_value=-1.0),
            lax.dynamic_slice(x, (i[0], i[1]), (2, 3)),
            x[i[2]],
        )

    check(f, X, fnp.array([0, 2, 7]))


def test_scatters_agree_with_the_function():
    def f(x, i):
        return (
            x.at[i].set(1.0),
            x.at[i, i].add(2.0),
            x.at[:, i].mul(3.0),
            x.at[i].max(9.0, mode="clip"),
            x.at[i].min(9.0, mode="drop"),
            lax.dynamic_update_slice(x, -x[:2, :2], (i[1], i[2])),
            (x > 3).at[i].set(True),
        )

    check(f, X, fnp.array([0, 2, 9]))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "uint32"])
@pytest.mark.parametrize("kind", ["set", "add", "multiply", "min", "max"])
def test_scatters_of_other_dtypes(kind, dtype):
    def f(x, i):
        return getattr(x.at[i], kind)(fnp.ones((3, 2), dtype) * 2)

    x = (fnp.arange(10).reshape(5, 2) % 3).astype(dtype)
    check(f, x, fnp.array([1, 3, 9] if kind == "set" else [1, 1, 9]))


def test_uint64_indices_are_clamped():
    places = np.array([1, 2**63 + 5, 3], np.uint64)
    with fxflow.config.override(x64=True):
        made = check(lambda x, i: x.at[i].get(mode="fill"), X, places)
        assert np.isnan(np.asarray(made(X, places))[1]).all()
