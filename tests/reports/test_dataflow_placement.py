"""Programs after reports of users about where parts of a program run."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import dataflow, random
from fxflow.dataflow import on
from fxflow.errors import ArgumentError, PlacementError

DEVICES = fxflow.local_devices()
HOST, CHIP = DEVICES[1], DEVICES[2]
X = np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4)


def places(f: Any, *args: Any) -> dict[str, set[Any]]:
    """Returns the devices on which a function runs each kind of operation."""
    found: dict[str, set[Any]] = {}
    for fragment in dataflow.jit(f).plan(*args).fragments:
        for node in fragment.graph.nodes:
            found.setdefault(node.primitive.name, set()).add(fragment.place.device)
    return found


def test_the_operation_that_needs_much_memory_runs_on_the_host() -> None:
    """One solve of a function runs on the host, the rest on the chip (jax#915)."""
    a, b = np.eye(4, dtype=np.float32) * 2, X.T

    def f(a: Any, b: Any) -> Any:
        with on(CHIP):
            a = fnp.sin(a) + 2 * fnp.eye(4)
        with on(HOST):
            x = fnp.linalg.solve(a, b)
        with on(CHIP):
            return fnp.cos(x)

    out = dataflow.jit(f)(a, b)
    assert out.devices() == {CHIP}
    np.testing.assert_allclose(out, fxflow.jit(f)(a, b), rtol=1e-6)
    where = places(f, a, b)
    assert where["lu"] == {HOST} and where["sin"] == where["cos"] == {CHIP}


def test_a_result_that_is_too_large_for_the_chip_is_made_on_the_host() -> None:
    """The factors of an outer product move, not the product (jax#2851)."""

    def f(x: Any) -> Any:
        with on(CHIP):
            u, v = fnp.sin(x), fnp.cos(x)
        with on(HOST):
            return fnp.outer(u, v)

    x = np.linspace(0, 1, 500, dtype=np.float32)
    split = dataflow.jit(f)
    np.testing.assert_allclose(split(x), np.outer(np.sin(x), np.cos(x)), rtol=1e-5)
    assert split(x).devices() == {HOST}
    sent = sum(e.nbytes for e in split.plan(x).edges if e.source is not None)
    assert sent == 2 * x.nbytes


def test_a_subroutine_on_the_host_within_a_program_on_the_chip() -> None:
    """A compiled function within another keeps its place (jax#5188)."""

    @fxflow.jit
    @on(HOST)
    def subroutine(x: Any) -> Any:
        return fnp.tan(x)

    @on(CHIP)
    def main(x: Any) -> Any:
        return fnp.cos(subroutine(fnp.sin(x)))

    where = places(main, X)
    assert where["tan"] == {HOST} and where["sin"] == where["cos"] == {CHIP}
    np.testing.assert_allclose(
        dataflow.jit(main)(X), np.cos(np.tan(np.sin(X))), rtol=1e-5
    )


def test_device_put_within_a_compiled_function_moves_what_follows() -> None:
    """A sum of arrays that were put on a device is computed there, compiled, too
    (jax#6040)."""

    def add(a: Any, b: Any) -> Any:
        return fxflow.device_put(a, HOST) + fxflow.device_put(b, HOST)

    a, b = fnp.ones(5), fnp.ones(5)
    assert add(a, b).devices() == {HOST}
    out = dataflow.jit(add)(a, b)
    assert out.devices() == {HOST} and out.tolist() == [2.0] * 5
    assert places(add, a, b)["add"] == {HOST}


CREATED = {
    "zeros": lambda d: fnp.zeros((2, 3), device=d),
    "ones": lambda d: fnp.ones((2, 3), device=d),
    "full": lambda d: fnp.full((2, 3), 7.0, device=d),
    "empty": lambda d: fnp.empty((2, 3), device=d),
    "arange": lambda d: fnp.arange(5, device=d),
    "linspace": lambda d: fnp.linspace(0.0, 1.0, 5, device=d),
    "eye": lambda d: fnp.eye(3, device=d),
    "asarray": lambda d: fnp.asarray(X, device=d),
    "zeros_like": lambda d: fnp.zeros_like(X, device=d),
    "ones_like": lambda d: fnp.ones_like(X, device=d),
    "full_like": lambda d: fnp.full_like(X, 2.0, device=d),
}


@pytest.mark.parametrize("make", CREATED.values(), ids=CREATED)
def test_creation_functions_honour_their_device(make: Any) -> None:
    """`device=` of a creation function holds in a compiled function (jax#26000)."""
    out = dataflow.jit(lambda: make(HOST))()
    assert out.devices() == {HOST} == make(HOST).devices()
    assert out.shape == make(HOST).shape and out.dtype == make(HOST).dtype


def test_a_new_array_is_made_where_an_unused_argument_is() -> None:
    """The result of `zeros_like` is on the device of its argument, although no
    operation uses it (jax#26040)."""
    x = fxflow.device_put(X, HOST)
    out = dataflow.jit(fnp.zeros_like)(x)
    assert out.devices() == x.devices()


def test_a_function_without_arguments_has_a_place() -> None:
    """A draw that depends on no argument runs where its scope says (jax#1431)."""

    def draw() -> Any:
        with on(HOST):
            return random.normal(random.key(1), (2, 3))

    out = dataflow.jit(draw)()
    assert out.devices() == {HOST}
    np.testing.assert_allclose(out, draw(), rtol=1e-6)


def test_one_function_on_two_devices_is_compiled_for_each() -> None:
    """The program of one device is not run on another, which may be of another type
    (jax#2721, jax#12669)."""

    def f(x: Any) -> Any:
        with on(HOST):
            a = fnp.sum(x)
        with on(CHIP):
            b = fnp.sum(x)
        return a, b

    split = dataflow.jit(f)
    a, b = split(X)
    assert (a.devices(), b.devices()) == ({HOST}, {CHIP})
    assert float(a) == float(b) == pytest.approx(float(X.sum()))


def test_two_gradients_are_computed_at_once() -> None:
    """The gradients of two halves of the parameters are computed on two devices at
    the same time (jax#1899): each waits for the other."""
    both = threading.Barrier(2)

    def meet(x: Any) -> Any:
        return fxflow.pure_callback(lambda v: both.wait(60) * 0 + v, x, x)

    def f(u: Any, v: Any) -> Any:
        def half(w: Any) -> Any:
            return fnp.sum(fnp.sin(w) ** 2)

        with on(HOST):
            first = meet(fxflow.grad(half)(u))
        with on(CHIP):
            second = meet(fxflow.grad(half)(v))
        return first, second

    u, v = X[0], X[1]
    first, second = dataflow.jit(f)(u, v)
    np.testing.assert_allclose(first, np.sin(2 * u), rtol=1e-5)
    np.testing.assert_allclose(second, np.sin(2 * v), rtol=1e-5)


def test_gradients_are_computed_where_their_layers_are() -> None:
    """Half of the layers on each device, so half of the backward pass, too
    (tensorflow#33688, gradient-checkpointing#43)."""

    def loss(params: Any, x: Any) -> Any:
        for i, w in enumerate(params):
            with on(HOST if i < 2 else CHIP):
                x = fnp.tanh(x @ w)
        return fnp.sum(x)

    params = [np.full((4, 4), 0.1 * (i + 1), np.float32) for i in range(4)]
    grads = dataflow.jit(fxflow.grad(loss))(params, X)
    assert [g.devices() for g in grads] == [{HOST}, {HOST}, {CHIP}, {CHIP}]
    fxflow.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7),
        grads,
        fxflow.grad(loss)(params, X),
    )


def test_arguments_on_several_devices_are_accepted() -> None:
    """Committed arrays of different devices meet in one function; each is sent to
    where it is used (openpi#261, jax#1914)."""
    a, b = fxflow.device_put(X, HOST), fxflow.device_put(X + 1, CHIP)

    def f(a: Any, b: Any) -> Any:
        with on(CHIP):
            return a / a.shape[0] + b + fnp.ones_like(a)

    with pytest.raises(ArgumentError, match="committed to different devices"):
        fxflow.jit(f)(a, b)
    out = dataflow.jit(f)(a, b)
    assert out.devices() == {CHIP}
    np.testing.assert_allclose(out, X / 3 + X + 1 + 1, rtol=1e-6)


def test_threads_use_a_device_each() -> None:
    """Four threads that each drive a device do not wait for each other (jax#8551)."""
    all_four = threading.Barrier(4)

    def worker(i: int) -> Any:
        @dataflow.jit
        @on(DEVICES[i])
        def run(x: Any) -> Any:
            x = fnp.sin(x)
            return fxflow.pure_callback(lambda v: all_four.wait(60) * 0 + v, x, x)

        return run

    results: dict[int, Any] = {}
    threads = [
        threading.Thread(target=lambda i=i: results.update({i: worker(i)(X)}))
        for i in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert {i: out.devices() for i, out in results.items()} == {
        i: {DEVICES[i]} for i in range(4)
    }
    for out in results.values():
        np.testing.assert_allclose(out, np.sin(X), rtol=1e-6)


def test_callbacks_that_compute_do_not_hang() -> None:
    """Callbacks of large arrays on two devices, which call compiled functions
    themselves (jax#24255, jax#25861)."""
    inner = dataflow.jit(on(HOST)(fnp.sin))

    def call(x: Any) -> Any:
        return fxflow.pure_callback(lambda v: np.asarray(inner(v)), x, x)

    def f(x: Any) -> Any:
        with on(HOST):
            a = call(x)
        with on(CHIP):
            b = call(x + 1)
        with on(HOST):
            return a + b

    x = np.linspace(0, 1, 200_000, dtype=np.float32)
    done: list[Any] = []
    thread = threading.Thread(target=lambda: done.append(dataflow.jit(f)(x)))
    thread.daemon = True
    thread.start()
    thread.join(120)
    assert done, "the callbacks wait for each other"
    np.testing.assert_allclose(done[0], np.sin(x) + np.sin(x + 1), rtol=1e-5)


def test_a_device_that_is_missing_is_an_error_with_the_line() -> None:
    """A device that does not exist is never replaced silently (tensorflow#22304,
    tensorflow#48559); a label makes the same function run elsewhere."""

    def f(x: Any) -> Any:
        with on("/device:cpu:77"):
            return fnp.sin(x)

    with pytest.raises(PlacementError, match=r"cpu:77.*test_dataflow_placement\.py"):
        dataflow.jit(f)(X)

    def portable(x: Any) -> Any:
        with on("accelerator"):
            return fnp.sin(x)

    for device in (HOST, CHIP):
        out = dataflow.jit(portable, devices={"accelerator": device})(X)
        assert out.devices() == {device}


def test_the_plan_shows_where_each_operation_went() -> None:
    """What was placed where can be read before anything runs (tensorflow#29342,
    DeepSpeech#228)."""

    def f(x: Any) -> Any:
        with on(HOST):
            y = fnp.sin(x)
        with on(CHIP):
            return fnp.cos(y)

    plan = dataflow.jit(f).plan(fxflow.ShapeDtypeStruct((3, 4), np.float32))
    rows = [line.split() for line in str(plan).splitlines()]
    assert ["0", "cpu:1", "1", "12", "-", "sin"] in rows
    assert ["1", "cpu:2", "1", "12", "0", "cos"] in rows
    assert "test_dataflow_placement.py" in plan.to_text(lines=True)
