"""Optimizers in 16 bits: what they compute in float32, rounded at the end.

`float16` ends at 65504, and squares of numbers below 2e-4 are 0 in it; `bfloat16` has
three digits, so a mean with a decay of 0.999 does not move. The references are the same
updates of float32 gradients, and of float64 ones for long runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import config, lax, optim, train, tree
from fxflow import numpy as fnp
from tests.optim import catalogue
from tests.sweeps.sampling import sample

#: Sizes of gradients; all squares of the first vanish in float16, all of the last
#: overflow.
SIZES = (0.0, 1e-5, 1.0, 1e3)
CASES = [(call, dtype) for call in catalogue.CALLS.values() for dtype in ("e", "bf")]
DTYPES = {"e": "float16", "bf": "bfloat16"}


@pytest.mark.parametrize(("call", "dtype"), sample(CASES, 90, "sixteen bits"))
def test_updates_are_those_of_float32(call: str, dtype: str) -> None:
    rng = np.random.default_rng(1)
    shapes = {"w": (3, 2), "s": (2,)}
    params = {
        k: fnp.array(rng.normal(size=n), DTYPES[dtype]) for k, n in shapes.items()
    }
    tx = catalogue.make(call)
    for size in SIZES:
        gradients = {
            k: fnp.array(rng.normal(size=n) * size, DTYPES[dtype])
            for k, n in shapes.items()
        }
        state = tx.init(params)
        found, later = tx.update(gradients, state, params, value=1.0)
        wide = (tree.map(lambda x: x.astype("float32"), t) for t in (gradients, params))
        g, p = wide
        expected, _ = tx.update(g, tx.init(p), p, value=1.0)
        digits = 2e-3 if dtype == "e" else 1.6e-2
        for have, want in zip(tree.leaves(found), tree.leaves(expected)):
            assert have.dtype == DTYPES[dtype]
            if np.abs(np.asarray(want)).max() < 6e4:  # what float16 holds
                scale = np.abs(np.asarray(want)).max()
                np.testing.assert_allclose(
                    np.asarray(have, np.float32),
                    np.asarray(want),
                    rtol=digits,
                    atol=digits * scale + 6e-8,
                    err_msg=f"{call} {size}",
                )
        for before, after in zip(tree.leaves(state), tree.leaves(later)):
            assert before.dtype == after.dtype


# -- long runs -------------------------------------------------------------------------

STEPS = 3000
LONG = {
    "adam": "scale_by_adam()",
    "adam-slow": "scale_by_adam(b2=0.9999)",
    "adafactor": "scale_by_factored_rms(min_dim_size_to_factor=2)",
    "amsgrad": "scale_by_amsgrad()",
    "belief": "scale_by_belief()",
    "ema": "ema(0.999)",
    "lion": "scale_by_lion(b2=0.999, mode='refined')",
    "radam": "scale_by_radam()",
    "rms": "scale_by_rms(0.999)",
    "rss": "scale_by_rss()",
    "sm3": "scale_by_sm3()",
    "trace": "trace(0.999)",
    "yogi": "scale_by_yogi()",
    "madgrad": "contrib.madgrad(0.01)",
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", sample([*LONG], 12, "long runs"))
def test_long_runs_against_float64(name: str, dtype: str) -> None:
    tx = catalogue.make(LONG[name])
    gradient = 0.01 * (1 + np.arange(6).reshape(3, 2))

    def run(params: Any) -> Any:
        def step(state: Any, t: Any) -> Any:
            noise = 1 + 0.5 * fnp.sin(t.astype("float32"))
            g = (gradient * noise).astype("bfloat16").astype(params.dtype)
            updates, state = tx.update(g, state, params)
            return state, updates

        return lax.scan(step, tx.init(params), fnp.arange(STEPS))[1][-1]

    found = fxflow.jit(run)(fnp.ones((3, 2), dtype))
    with config.override(x64=True):
        expected = np.asarray(fxflow.jit(run)(fnp.ones((3, 2), "float64")))
    digits = 2e-3 if dtype == "float16" else 1.6e-2
    np.testing.assert_allclose(np.asarray(found, np.float64), expected, rtol=digits)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_averages_of_long_runs(dtype: str) -> None:
    steps = np.linspace(0.5, 1.5, STEPS).astype("float16").astype("bfloat16")
    steps = steps.astype(np.float64)
    shares = 0.999 ** np.arange(STEPS)[::-1]
    expected = [(shares * steps).sum() / shares.sum(), steps.mean()]
    found = []
    for average in (train.averages.exponential(0.999), train.averages.uniform()):

        def step(state: Any, x: Any, average: Any = average) -> Any:
            return average.update(state, x), None

        start = average.init(fnp.zeros((), dtype))
        state, _ = lax.scan(step, start, fnp.array(steps, dtype))
        found.append(float(average.value(state)))
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_accumulated_gradients(dtype: str) -> None:
    x = fnp.full((512, 4), 200.0, dtype)
    loss = lambda w, x: fnp.mean(w * x)
    f = fxflow.jit(train.accumulate_gradients(loss, 512))
    value, gradient = f(fnp.ones((), dtype), x)
    assert (float(value), float(gradient)) == (200.0, 200.0)
    assert value.dtype == gradient.dtype == dtype
    for rule in optim.microbatching.AccumulationType:
        if rule.name == "CONCAT":
            continue
        total = optim.microbatching.microbatch(
            lambda x: fnp.sum(x) / 1000, 0, 1, accumulator=rule
        )(x)
        expected = 0.8 * (512 if rule.name == "SUM" else 1)
        assert total.dtype == dtype
        np.testing.assert_allclose(float(total), expected, rtol=4e-3)
