"""Compiled calls that are given references."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import new_ref
from fxflow.errors import ArgumentError


def increment(r, x):
    r[...] += x
    return r[0] * 2


def test_given_and_captured() -> None:
    r, count = new_ref(fnp.zeros(3)), new_ref(0)
    traces = []

    @fxflow.jit
    def f(r, x):
        traces.append(1)
        count[...] += 1
        return increment(r, x)

    for n in range(1, 4):  # the long way, then the short one
        assert f(r, 1.0) == 2 * n
        assert int(count[...]) == n and r[...].tolist() == [n] * 3
    r[0] = 10.0
    count[...] = 0
    assert f(r, 1.0) == 22 and count[...] == 1
    assert len(traces) == 1
    f(new_ref(fnp.zeros(2)), 1.0)
    assert len(traces) == 2


def test_numbers_and_options_beside_references() -> None:
    @fxflow.jit(static_argnums=1, donate_argnums=2)
    def f(tree, n, x):
        tree["r"][n] = x[0]
        return x + 1

    tree = {"r": new_ref(fnp.zeros(3)), "unused": new_ref(1.0)}
    for n in (0, 0, 2):
        x = fnp.full(2, 5.0 + n)
        assert f(tree, n, x).tolist() == [6 + n] * 2 and x.is_deleted()
    assert tree["r"][...].tolist() == [5, 0, 7] and tree["unused"][...] == 1


def test_in_place() -> None:
    r = new_ref(fnp.zeros(1 << 16))
    f = fxflow.jit(lambda r, i: r.__setitem__(i, 1.0))
    f(r, 0)  # a copy, since the zeros were not only the reference's
    where = r.unsafe_buffer_pointer()
    for i in range(1, 4):
        f(r, i)
        assert r.unsafe_buffer_pointer() == where
    memory = f.lower(r, 0).compile().memory_analysis()
    assert memory["alias_size_in_bytes"] == r[...].nbytes
    assert memory["temp_size_in_bytes"] < 1000
    seen = r[...]
    f(r, 5)
    assert seen[5] == 0 and r[5] == 1 and not seen.is_deleted()


def test_what_is_only_read_is_not_taken() -> None:
    x = fnp.arange(3.0)
    r = new_ref(x)
    f = fxflow.jit(lambda r, y: r[...] + y)
    for _ in range(3):
        assert f(r, r[...]).tolist() == [0, 2, 4]
    assert "aliasing" not in f.lower(r, x).as_text()
    assert not x.is_deleted()


def test_stages_of_a_function_of_references() -> None:
    r = new_ref(fnp.zeros(3))
    f = fxflow.jit(increment)
    assert str(f.trace(r, 1.0).in_avals[0]) == "Ref{f32[3]}"
    assert f.eval_shape(r, 1.0).shape == ()
    lowered = f.lower(r, 1.0)
    assert "tf.aliasing_output = 0" in lowered.as_text()
    compiled = lowered.compile()
    assert compiled(r, 1.0) == 2 and compiled(r, 1.0) == 4
    assert r[...].tolist() == [2, 2, 2]
    assert compiled.in_tree == lowered.in_tree == f.trace(r, 1.0).in_tree
    with pytest.raises(ArgumentError, match=r"compiled for Ref\{f32\[3\]\}"):
        compiled(fnp.zeros(3), 1.0)


def test_returned_and_repeated_references_are_refused() -> None:
    r = new_ref(fnp.zeros(3))
    for f in (lambda r: r, lambda r: {"a": [r]}, lambda r: new_ref(1.0)):
        with pytest.raises(ArgumentError, match=r"returned a reference.*return its"):
            fxflow.jit(f)(r)
    with pytest.raises(ArgumentError, match=r"one reference .* twice, as a and b"):
        fxflow.jit(lambda a, b: a[0] + b[0])(r, r)
    both = fxflow.jit(lambda a, b: a[0] + b[0])
    both(r, new_ref(fnp.zeros(3)))
    with pytest.raises(ArgumentError, match="twice, as a and b"):
        both(r, r)  # known by its types
    with pytest.raises(ArgumentError, match="as a and a captured variable"):
        fxflow.jit(lambda a: a[0] + r[0])(r)


def test_several_devices() -> None:
    mesh = fxflow.Mesh(fxflow.devices()[:2], ("i",))
    where = fxflow.NamedSharding(mesh, fxflow.P("i"))
    r = new_ref(fxflow.device_put(fnp.zeros(4), where))
    f = fxflow.jit(increment)
    for n in range(1, 4):
        assert f(r, 1.0) == 2 * n
        assert r.sharding == where and r[...].tolist() == [n] * 4


def test_checks_of_values() -> None:
    r = new_ref(fnp.zeros(2))
    f = fxflow.jit(increment)
    with fxflow.debug_nans(True), pytest.raises(FloatingPointError):
        f(r, np.float32(np.nan))
    assert f(new_ref(fnp.zeros(2)), 1.0) == 2


def test_disabled() -> None:
    r = new_ref(fnp.zeros(2))
    with fxflow.disable_jit():
        assert fxflow.jit(increment)(r, 1.0) == 2
    assert r[...].tolist() == [1, 1]
