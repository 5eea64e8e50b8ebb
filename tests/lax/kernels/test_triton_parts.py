"""Reductions and moves of elements in Triton's IR: padding takes no part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax
from fxflow.lax.kernels.errors import UnsupportedError
from tests.lax.kernels.triton_samples import module_of, same, whole

N = np.random.default_rng(2).integers(-9, 9, (5, 7)).astype(np.int32)
X = N.astype(np.float32)
X[1, 2], X[3, 4] = np.nan, np.inf


def of(body: Any, *args: Any) -> None:
    same(whole(body, fxflow.eval_shape(body, *args)), *args)


@pytest.mark.parametrize("x", [X, N, N.astype("uint16"), N > 0], ids=str)
@pytest.mark.parametrize("axis", [0, 1, (0, 1)])
def test_reductions(x: Any, axis: Any) -> None:
    def body(x: Any) -> Any:
        found = [f(x, axis) for f in (fnp.sum, fnp.prod, fnp.max, fnp.min, fnp.any)]
        return fnp.stack([v.astype("float32") for v in found])

    of(body, x)


def test_padding_is_not_reduced() -> None:
    # Zeros behind the end of the block would change each of these.
    of(lambda x: fnp.sum(fnp.exp(x * 0), 1), N.astype("float32"))
    of(lambda x: fnp.max(-1 - abs(x), 1), N)
    of(lambda x: fnp.argmin(1 + abs(x), 1), N)
    of(lambda x: lax.cumsum(x + 5, 1, reverse=True), N)


@pytest.mark.parametrize("x", [X, N], ids=["float", "int"])
def test_extrema_and_running_reductions(x: Any) -> None:
    for axis in (0, 1):
        of(lambda x, axis=axis: fnp.argmax(x, axis), x)
        of(lambda x, axis=axis: fnp.argmin(x, axis), x)
        of(lambda x, axis=axis: fnp.cumsum(x, axis), x)
    of(lambda x: lax.cummax(x, 1), N)


def test_moves() -> None:
    def body(x: Any, i: Any) -> Any:
        at = i[0, 0], i[0, 1]
        found = [
            x.reshape(7, 5).T,
            x[::-1],
            fnp.pad(x[1:4, ::3], ((2, 0), (1, 3)), constant_values=9),
            fnp.concatenate([x[:2], x[2:] * 2], 0),
            fnp.pad(lax.dynamic_slice(x, at, (3, 4)), ((0, 2), (3, 0))),
            lax.dynamic_update_slice(x, x[:2, :3] * 0, at),
            x[i[:, 0]],
            fnp.take(x, i[0], axis=1, fill_value=7, mode="fill"),
            lax.pad(x, 0, ((-1, 1, 0), (2, -2, 0))),
            x[:, None, :].sum(1) + fnp.tril(x),
        ]
        return fnp.stack(found)

    of(body, N, abs(N) % 6)


def test_what_has_no_rule() -> None:
    for body, what in (
        (lambda x: fnp.sort(x, 1), "sort"),
        (lambda x: lax.pad(x, 0, ((0, 0, 1), (0, 0, 0))), "padding between elements"),
    ):
        with pytest.raises(UnsupportedError, match=what):
            module_of(whole(body, fxflow.eval_shape(body, N)), N)
