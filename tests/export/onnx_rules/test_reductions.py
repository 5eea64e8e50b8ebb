import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow import errors, export, jit, lax, nn
from tests.export.onnx_rules.checks import check, kinds

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(3, 4, 5)).astype(np.float32)


def test_reductions():
    def f(x):
        return (
            x.sum(), x.mean(1), x.max((0, 2)), x.min(-1), x.prod(0), x.std(2),
            (x > 0).any(1), (x > 0).all(), fnp.logical_xor.reduce(x > 0, axis=1),
            nn.logsumexp(x, axis=1), nn.softmax(x),
        )  # fmt: skip

    check(f, X)


def test_argmax_sort_and_top_k_agree():
    whole = RANDOM.integers(0, 5, (4, 6)).astype(np.int32)

    def f(x, n):
        return (
            fnp.argmax(x, 1), fnp.argmin(x), fnp.argmax(n, -1), lax.top_k(x, 2),
            lax.top_k(n.astype("int16"), 3), fnp.sort(x, 1), fnp.argsort(n, axis=1),
            lax.sort((n[0], n[1], x[0, 0, 0] * n[2]), num_keys=2),
        )  # fmt: skip

    check(f, X, whole)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_nan_propagates_through_extrema(dtype):
    special = [np.nan, np.inf, -np.inf, 1, -1, 0.0, 2]
    x = fnp.array(RANDOM.choice(special, (4, 9, 5)).astype(np.float32)).astype(dtype)

    def f(x):
        return (
            x.max(), x.max(1), x.min((0, 2)), fnp.argmax(x, 0), fnp.argmin(x, 1),
            fnp.argmax(x), nn.softmax(fnp.where(fnp.isinf(x), 0, x)),
        )  # fmt: skip

    check(f, x)


def test_cumulative_reductions_agree():
    def f(x):
        return (
            fnp.cumsum(x, 1), lax.cumsum(x, 0, reverse=True), fnp.cumprod(x, 2),
            lax.cummax(x, 1), lax.cummin(x, 1, reverse=True), lax.cumlogsumexp(x, 2),
        )  # fmt: skip

    check(f, X)


@pytest.mark.parametrize("kind", [nn.max_pool, nn.avg_pool])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_pooling_is_one_node(kind, padding):
    x = RANDOM.normal(size=(2, 8, 7, 3)).astype(np.float32)
    made = check(lambda x: kind(x, (3, 2), strides=(2, 2), padding=padding), x)
    assert kinds(made)["MaxPool"] + kinds(made)["AveragePool"] >= 1


@pytest.mark.parametrize("dtype", ["float32", "int32", "bfloat16"])
@pytest.mark.parametrize("name", ["add", "max", "min"])
def test_windows(name, dtype):
    combine = getattr(lax, name)
    init = {"add": 0, "max": -np.inf, "min": np.inf}[name]
    if dtype == "int32":
        info = np.iinfo(np.int32)
        init = {"add": 0, "max": info.min, "min": info.max}[name]
    x = fnp.array(RANDOM.integers(-9, 9, (2, 7, 6)).astype(dtype))

    def f(x):
        return lax.reduce_window(
            x, np.asarray(init, x.dtype), combine, (1, 3, 2), (1, 2, 1),
            ((0, 0), (1, 2), (0, 1)), (1, 1, 2), (1, 2, 1),
        )  # fmt: skip

    check(f, x)


def test_large_windows_of_integers_are_refused():
    def f(x):
        return lax.reduce_window(x, 0, lax.add, (2000,), (1,), "VALID")

    with pytest.raises(errors.ExportError, match="over windows of 2000 elements"):
        export.onnx(jit(f).trace(fnp.ones(3000, "int32")))


def test_a_reduction_by_a_function():
    def f(x):
        return lax.reduce(x, np.float32(0), lambda a, b: a + b + a * b, (1,))

    assert kinds(check(f, X))["Loop"] == 0
