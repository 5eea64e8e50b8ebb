"""Fragments reuse the memory of what they are the last to take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import dataflow, train
from fxflow import numpy as fnp
from fxflow.dataflow import on, stages
from fxflow.dataflow.donation import donations
from fxflow.errors import DeletedArrayError, DonationError

DEVICES = fxflow.local_devices()
#: More than what is handed over without a thread.
N = 60_000


def donated(step: Any) -> list[int]:
    """How many arguments each program donates, by fragment."""
    (made,) = step._caches.compiled.values()
    (rows,) = [[launch for _, row in made.rows for launch in row]]
    rows.sort(key=lambda launch: launch.number)
    return [launch.program.text.count("tf.aliasing_output") for launch in rows]


def test_values_between_fragments_are_donated() -> None:
    def f(x: Any) -> Any:
        with on("/device:cpu:1"):
            a = fnp.sin(x)  # sent to cpu:2, which has a copy
        with on("/device:cpu:2"):
            b = fnp.cos(a) + 1
        with on("/device:cpu:1"):
            return fnp.exp(b)

    step, x = dataflow.jit(f), fnp.ones(N)
    for _ in range(2):
        np.testing.assert_allclose(step(x), np.exp(np.cos(np.sin(1)) + 1), rtol=1e-6)
    # The argument stays; the copies of a and b are used for results.
    assert donated(step) == [0, 1, 1]
    assert float(x[0]) == 1


def test_what_is_needed_later_is_not_donated() -> None:
    def f(x: Any) -> Any:
        with on("/device:cpu:1"):
            a = fnp.sin(x)
        with on("/device:cpu:2"):
            b = fnp.cos(a)
        with on("/device:cpu:1"):
            c = fnp.exp(b)
        with on("/device:cpu:2"):
            d = c * a  # the copy of a is used again: for the last time
        with on("/device:cpu:1"):
            return d + a, b  # a is here, too; b is a result

    step, x = dataflow.jit(f), fnp.arange(N) / N
    plan = step.plan(x)
    by_fragment = donations(plan, [False])
    names = {i: len(found) for i, found in by_fragment.items()}
    assert names == {2: 1, 3: 2, 4: 1}
    a = np.sin(np.arange(N, dtype="f4") / N)
    b = np.cos(a)
    for _ in range(3):
        first, second = step(x)
        np.testing.assert_allclose(first, np.exp(b) * a + a, rtol=1e-5)
        np.testing.assert_allclose(second, b, rtol=1e-5)


def test_an_argument_that_is_donated_gives_its_memory() -> None:
    def f(w: Any, x: Any) -> Any:
        with on("/device:cpu:1"):
            g = fnp.sin(x)
        with on("/device:cpu:2"):
            return w - g

    step = dataflow.jit(f, donate_argnums=0)
    w = fxflow.device_put(fnp.ones(N), DEVICES[2])
    x = fnp.ones(N)
    w = step(w, x)
    address = w.unsafe_buffer_pointer()
    for _ in range(3):
        old, w = w, step(w, x)
        assert w.unsafe_buffer_pointer() == address
        with pytest.raises(DeletedArrayError):
            old + 1
    np.testing.assert_allclose(w, 1 - 4 * np.sin(1), rtol=1e-5)


def test_memory_that_numpy_sees_is_not_written() -> None:
    def f(w: Any) -> Any:
        with on("/device:cpu:1"):
            return w * 2

    step = dataflow.jit(f, donate_argnums=0)
    w = fxflow.device_put(fnp.ones(N), DEVICES[1]) + 0
    seen = np.asarray(w)
    out = step(w)
    assert (np.asarray(out) == 2).all() and (seen == 1).all()
    with pytest.raises(DonationError, match="the same array"):
        dataflow.jit(lambda a, b: a + b, donate_argnums=0)(out, out)


def test_an_argument_that_two_places_take_is_not_donated_to_one() -> None:
    def f(w: Any) -> Any:
        with on("/device:cpu:1"):
            a = w + 1
        with on("/device:cpu:2"):
            return a * w

    step = dataflow.jit(f, donate_argnums=0)
    for i in range(3):
        w = fxflow.device_put(fnp.full(N, float(i)), DEVICES[1])
        np.testing.assert_allclose(step(w), (i + 1) * i)
    assert donated(step) == [0, 1]  # the copy of a


@pytest.mark.parametrize("name", ["1f1b", "zb-h1"])
def test_accumulators_of_a_pipeline_are_donated(name: str) -> None:
    def loss(params: Any, x: Any) -> Any:
        for stage, w in zip(stages(2), params, strict=True):
            with on(stage):
                x = fnp.tanh(x @ w)
        return (x**2).mean()

    params = [fnp.full((64, 64), 0.1 * (i + 1)) for i in range(2)]
    x = fnp.ones((256, 64))
    step = train.accumulate_gradients(loss, 4)
    split = dataflow.jit(step, devices=DEVICES[:2], schedule=name)
    for _ in range(2):
        fxflow.tree.map(
            np.testing.assert_array_equal, split(params, x), fxflow.jit(step)(params, x)
        )
    plan = split.plan(params, x)
    counts = donated(split)
    weights = [counts[f.index] for f in plan.fragments if f.kind == "W"]
    assert min(weights[1:]) >= 1  # the sum of gradients so far
    assert (params[0] == 0.1).all()


def test_what_no_result_can_take_is_refused_as_by_jit() -> None:
    def f(w: Any, x: Any) -> Any:
        return fnp.sum(x * 2)

    args = fnp.ones((5, 5)), fnp.ones((12, 5))
    for jit in (fxflow.jit, dataflow.jit):
        with pytest.raises(DonationError, match=r"donated argument w f32\[5,5\]"):
            jit(f, donate_argnums=0)(*args)
    assert not args[0].is_deleted()
