"""`dataflow.jit` gives the numbers of `fxflow.jit`, on the devices that scopes name."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import dataflow, lax, random
from fxflow import numpy as fnp
from fxflow.dataflow import on, stages
from fxflow.errors import (
    ArgumentError,
    DeletedArrayError,
    DonationError,
    PlacementError,
)

DEVICES = fxflow.local_devices()
RNG = np.random.default_rng(0)


def near(a: Any, b: Any) -> None:
    fxflow.tree.map(
        lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-6), a, b
    )


def network(params: Any, x: Any) -> Any:
    for stage, w in zip(stages(4), params, strict=True):
        with on(stage):
            x = fnp.tanh(x @ w)
    return (x**2).mean()


PARAMS = [RNG.normal(size=(8, 8)).astype("f4") for _ in range(4)]
X = RNG.normal(size=(5, 8)).astype("f4")


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_values_and_gradients_are_those_of_jit(count: int) -> None:
    f = fxflow.value_and_grad(network)
    split = dataflow.jit(f, devices=DEVICES[:count])
    near(split(PARAMS, X), fxflow.jit(f)(PARAMS, X))
    near(split(PARAMS, X), split(PARAMS, X))  # and again, by the short path
    assert len(split.plan(PARAMS, X).places) == count


def test_gradients_stay_with_their_stage() -> None:
    _, grads = dataflow.jit(fxflow.value_and_grad(network))(PARAMS, X)
    assert [g.devices() for g in grads] == [
        {DEVICES[i * len(DEVICES) // 4]} for i in range(4)
    ]


def test_an_argument_is_taken_from_where_it_is() -> None:
    x = fxflow.device_put(X, DEVICES[3])
    w = [fxflow.device_put(w, DEVICES[2]) for w in PARAMS]
    near(dataflow.jit(network)(w, x), network(PARAMS, X))


def test_a_label_means_what_the_mapping_says() -> None:
    def f(x: Any) -> Any:
        with on("encoder"):
            x = fnp.sin(x)
        with on("decoder"):
            return fnp.cos(x)

    g = dataflow.jit(f, devices={"encoder": "cpu:2", "decoder": DEVICES[1]})
    assert g(1.0).devices() == {DEVICES[1]}
    near(g(1.0), np.cos(np.sin(1.0)))
    with pytest.raises(PlacementError, match="no device for the label 'encoder'"):
        dataflow.jit(f)(1.0)


def test_the_error_of_a_missing_device_has_the_users_line() -> None:
    def f(x: Any) -> Any:
        with on("/device:cpu:99"):
            return fnp.sin(x)

    with pytest.raises(PlacementError, match=r"cpu:99.*test_partitioned\.py"):
        dataflow.jit(f)(1.0)


def test_a_mesh_is_a_place() -> None:
    mesh = fxflow.make_mesh((2,), ("d",), devices=DEVICES[:2])

    def f(x: Any) -> Any:
        with on(mesh):
            x = fnp.sin(x) @ x.T
        with on("/device:cpu:3"):
            return fnp.cos(x)

    near(dataflow.jit(f)(X), np.cos(np.sin(X) @ X.T))


def test_device_put_inside_moves_what_follows() -> None:
    def f(x: Any) -> Any:
        y = fxflow.device_put(fnp.sin(x), DEVICES[1])
        return fnp.cos(y)

    out = dataflow.jit(f)(X)
    assert out.devices() == {DEVICES[1]}
    near(out, np.cos(np.sin(X)))


def test_results_that_are_arguments_or_constants() -> None:
    const = fnp.arange(3.0)

    def f(x: Any, y: Any) -> Any:
        with on("/device:cpu:1"):
            return x, const, 2.0, y + const, y

    near(dataflow.jit(f)(1.0, X[0, :3]), fxflow.jit(f)(1.0, X[0, :3]))


def test_a_function_without_operations() -> None:
    near(dataflow.jit(lambda x: x)(X), X)
    assert dataflow.jit(lambda: ())() == ()


def test_a_large_constant_is_sent_once() -> None:
    table = fnp.asarray(RNG.normal(size=(64, 64)).astype("f4"))

    def f(i: Any) -> Any:
        with on("/device:cpu:2"):
            return table[i]

    g, i = dataflow.jit(f), fnp.asarray([1, 2])
    near(g(i), table[np.array([1, 2])])
    there = fxflow.device_put(i + 1, DEVICES[2])
    g(there)
    with fxflow.transfer_guard_device_to_device("disallow"):
        again = g(there)
    near(again, table[np.array([2, 3])])


def test_keys_loops_and_branches() -> None:
    def f(key: Any, x: Any) -> Any:
        with on("/device:cpu:1"):
            x = x + random.normal(key, x.shape)
        with on("/device:cpu:2"):
            x, _ = lax.scan(lambda c, r: (fnp.sin(c + r), None), x[0], x)
        return lax.cond(x.sum() > 0, lambda a: a * 2, lambda a: a - 1, x)

    key = random.key(1)
    near(dataflow.jit(f)(key, X), fxflow.jit(f)(key, X))
    split = random.split(key, 3)
    near(
        dataflow.jit(fxflow.vmap(f, in_axes=(0, None)))(split, X),
        fxflow.vmap(f, in_axes=(0, None))(split, X),
    )


def test_a_donated_argument_is_deleted() -> None:
    f = dataflow.jit(on("/device:cpu:1")(lambda x: x + 1), donate_argnums=0)
    x = fnp.ones(4)
    near(f(x), fnp.full(4, 2.0))
    with pytest.raises(DeletedArrayError):
        x + 1


def test_static_arguments_and_keywords() -> None:
    @dataflow.jit(static_argnames="n")
    def f(x: Any, *, n: int) -> Any:
        for i in range(n):
            with on(f"/device:cpu:{i}"):
                x = x + i
        return x

    assert f(1.0, n=3) == 4 and f(1.0, n=4) == 7
    assert f(fnp.ones(2), n=2).tolist() == [2.0, 2.0]


def test_references_are_written() -> None:
    def f(ref: Any, x: Any) -> Any:
        with on("/device:cpu:1"):
            ref[...] += x
            return ref[...] * 2

    ref = fxflow.new_ref(fnp.ones(3))
    assert dataflow.jit(f)(ref, 2.0).tolist() == [6.0] * 3
    assert ref[...].tolist() == [3.0] * 3


def test_effects_run_in_order_and_in_one_place() -> None:
    seen: list[float] = []

    def note(x: Any) -> None:
        fxflow.io_callback(lambda v: seen.append(float(v)), None, x, ordered=True)

    def f(x: Any) -> Any:
        with on("/device:cpu:1"):
            note(x)
            note(x + 1)
        with on("/device:cpu:2"):
            return x * 2

    assert dataflow.jit(f)(1.0) == 2
    fxflow.effects_barrier()
    assert seen == [1.0, 2.0]

    def g(x: Any) -> Any:
        with on("/device:cpu:1"):
            note(x)
        with on("/device:cpu:2"):
            note(x)
        return x

    with pytest.raises(PlacementError, match="effects run in order"):
        dataflow.jit(g)(1.0)


def test_inside_another_transformation_it_is_jit() -> None:
    split = dataflow.jit(network)
    near(fxflow.grad(split)(PARAMS, X), fxflow.grad(network)(PARAMS, X))
    near(fxflow.jit(split)(PARAMS, X), network(PARAMS, X))


def test_strict_refuses_what_the_plan_would_note() -> None:
    def back(x: Any) -> Any:
        for i in (1, 2, 1):
            with on(f"/device:cpu:{i}"):
                x = fnp.sin(x)
        return x

    near(dataflow.jit(back)(0.5), fxflow.jit(back)(0.5))
    path = r"leaves cpu:1 and comes back: sin on cpu:1 \(.*\) → sin on cpu:2 .*cpu:1 \("
    with pytest.raises(PlacementError, match=path):
        dataflow.jit(back, strict=True)(0.5)

    def branch(x: Any) -> Any:
        with on("/device:cpu:1"):
            x = fnp.sin(x)
        with on("/device:cpu:2"):
            return fnp.cos(x)

    def f(x: Any) -> Any:
        return lax.cond(x > 0, branch, fnp.exp, x)

    assert "one place as a whole" in str(dataflow.jit(f).plan(0.5))
    with pytest.raises(PlacementError, match="put the scopes outside"):
        dataflow.jit(f, strict=True)(0.5)


@pytest.mark.parametrize(
    ("devices", "message"),
    [(3, "a sequence of devices"), ([], "empty"), ("cpu:1", "a sequence of devices")],
)
def test_devices_are_checked_at_once(devices: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        dataflow.jit(network, devices=devices)
    with pytest.raises(ArgumentError, match="strict is a bool"):
        dataflow.jit(network, strict=1)  # type: ignore[call-overload]
    with pytest.raises(ArgumentError, match="no schedule 'late'"):
        dataflow.jit(network, schedule="late")
    with pytest.raises(ArgumentError, match="takes a function"):
        dataflow.jit(3)  # type: ignore[call-overload]


def test_it_has_no_single_program_to_lower() -> None:
    with pytest.raises(ArgumentError, match="a program for each fragment, so it"):
        dataflow.jit(network).lower(PARAMS, X)


def test_it_is_pickled_by_name() -> None:
    again = pickle.loads(pickle.dumps(dataflow.jit(network, devices=None)))
    near(again(PARAMS, X), network(PARAMS, X))


def test_equal_fragments_of_one_place_are_compiled_once() -> None:
    def f(x: Any) -> Any:
        for i in (1, 2, 1, 2, 1):
            with on(f"/device:cpu:{i}"):
                x = fnp.sin(x)
        return x

    made = dataflow.jit(f)
    made(0.5)
    (partitioned,) = made._caches.compiled.values()
    assert len(partitioned.plan.fragments) == 5
    assert len(partitioned._programs) == 2


def test_fragments_that_differ_in_their_callbacks_are_not_one_program() -> None:
    def f(x: Any) -> Any:
        calls = [lambda v: v + 1, lambda v: v * 10, lambda v: v - 2]
        for i, call in enumerate(calls):
            with on("/device:cpu:1"):
                x = fxflow.pure_callback(call, x, x)
            with on(f"/device:cpu:{2 + i % 2}"):
                x = lax.cond(
                    x > 0, lambda x, c=call: fxflow.pure_callback(c, x, x), fnp.sin, x
                )
        return x

    assert dataflow.jit(f)(1.0) == ((1 + 1 + 1) * 100) - 4


def test_what_is_passed_on_is_not_the_argument_itself() -> None:
    const = fnp.arange(3.0)

    def f(x: Any, y: Any) -> Any:
        with on("/device:cpu:1"):
            z = fnp.sin(x)
        return x, y, z, z, const, y

    split, last = (
        dataflow.jit(f, donate_argnums=1),
        fxflow.jit(lambda *xs: [x + 1 for x in xs], donate_argnums=tuple(range(6))),
    )
    for _ in range(2):
        x, y = fnp.ones(3), fnp.full(3, 2.0)
        outs = split(x, y)
        with pytest.raises(DeletedArrayError):
            y + 1
        near(list(outs), [x, np.full(3, 2.0), np.sin(x), np.sin(x), const, [2.0] * 3])
        # Each result has memory of its own.
        last(*(fxflow.device_put(out, DEVICES[0]) for out in outs))
        near(x, np.ones(3))


def test_an_array_that_is_donated_and_passed_twice() -> None:
    x = fnp.ones(3)
    split = dataflow.jit(lambda x, y: x + y, donate_argnums=0)
    with pytest.raises(DonationError, match="x and y are the same array, and x is"):
        split(x, x)
    near(x + 1, np.full(3, 2.0))


def test_references_made_inside_pass_between_places() -> None:
    def f(x: Any) -> Any:
        ref = fxflow.new_ref(x)
        with on("/device:cpu:1"):
            ref[...] += 1
        with on("/device:cpu:2"):
            ref[...] *= 2
            return ref[...]

    near(dataflow.jit(f)(X), (X + 1) * 2)
    near(dataflow.jit(f).plan(X).places[0].device.id, 1)


def test_unordered_effects_may_be_anywhere() -> None:
    seen: list[float] = []

    def note(x: Any) -> None:
        fxflow.debug.callback(lambda v: seen.append(float(v)), x)

    def f(x: Any) -> Any:
        with on("/device:cpu:1"):
            note(x)
        with on("/device:cpu:2"):
            note(x + 1)
        return x

    dataflow.jit(f)(1.0)
    fxflow.effects_barrier()
    assert sorted(seen) == [1.0, 2.0]
