"""`custom_vmap`, `sequential_vmap`."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax
from fxflow.custom_batching import custom_vmap, sequential_vmap
from fxflow.errors import ArgumentError


def made():
    """A function whose rule is not its vectorized form, and what the rule got."""
    seen = []

    @custom_vmap
    def f(x, y):
        return fnp.sin(x) * y

    @f.def_vmap
    def rule(size, in_batched, x, y):
        seen.append((size, in_batched))
        return fnp.cos(x) * y, True

    return f, seen


def test_vmap_uses_the_rule_and_nothing_else_does():
    f, seen = made()
    np.testing.assert_allclose([f(1.0, 2.0), fxflow.jit(f)(1.0, 2.0)], 1.682942, 1e-6)
    assert not seen
    assert fxflow.vmap(f)(fnp.zeros(3), fnp.ones(3)).tolist() == [1, 1, 1]
    assert fxflow.vmap(f, (None, 0))(0.0, fnp.ones(2)).tolist() == [1, 1]
    assert fxflow.jit(fxflow.vmap(f))(fnp.zeros(2), fnp.ones(2)).tolist() == [1, 1]
    assert seen == [(3, [True, True]), (2, [False, True]), (2, [True, True])]


def test_derivatives_inside_and_around_vmap():
    f, seen = made()
    ones = fnp.ones(3)
    np.testing.assert_allclose(fxflow.grad(f)(1.0, 2.0), 2 * np.cos(1.0), rtol=1e-6)
    assert not seen
    # The derivative of the rule: forwards in either order, backwards around `vmap`.
    for fun in (
        lambda x: fxflow.vmap(lambda x: fxflow.jvp(f, (x, 1.0), (1.0, 0.0))[1])(x),
        lambda x: fxflow.jvp(lambda x: fxflow.vmap(f)(x, ones), (x,), (ones,))[1],
        fxflow.grad(lambda x: fxflow.vmap(f)(x, ones).sum()),
    ):
        np.testing.assert_allclose(fun(ones), -np.sin(np.ones(3)), rtol=1e-6)
    count = len(seen)
    # The derivative of the function: inside of `vmap`.
    out = fxflow.vmap(fxflow.grad(f))(ones, ones)
    np.testing.assert_allclose(out, np.cos(np.ones(3)), rtol=1e-6)
    assert len(seen) == count


def test_a_tangent_alone_is_mapped():
    f, seen = made()
    out = fxflow.vmap(lambda t: fxflow.jvp(f, (1.0, 1.0), (t, 0.0)))(fnp.ones(3))
    np.testing.assert_allclose(out[1], -np.sin(np.ones(3)), rtol=1e-6)
    assert seen == [(3, [True, False])]


def test_structures_and_unmapped_results():
    @custom_vmap
    def f(x):
        return {"sum": x["a"] + x["b"], "b": x["b"]}

    @f.def_vmap
    def rule(size, in_batched, x):
        (flags,) = in_batched
        return f(x), {"sum": True, "b": flags["b"]}

    x = {"a": fnp.arange(3.0), "b": 2.0}
    axes = ({"a": 0, "b": None},)
    out = fxflow.vmap(f, axes, {"sum": 0, "b": None})(x)
    assert out["sum"].tolist() == [2, 3, 4] and float(out["b"]) == 2.0
    twice = fxflow.vmap(fxflow.vmap(f, axes), ({"a": 0, "b": None},))
    assert twice({"a": fnp.ones((2, 3)), "b": 2.0})["sum"].shape == (2, 3)


def test_what_rules_return_is_checked():
    @custom_vmap
    def f(x):
        return x, {"a": x}

    x = fnp.ones(3)
    with pytest.raises(TypeError, match="f has no rule"):
        fxflow.vmap(f)(x)
    for returned, error in [
        (lambda x: x, "must return a pair"),
        (lambda x: ((x, x), True), "must have the structure of the result"),
        (lambda x: ((x, {"a": x}), (True, (True,))), "what the rule of f says is"),
        (lambda x: ((x, {"a": x}), False), r"must be f32\[\], got f32\[3\]"),
        (lambda x: ((x, {"a": x > 0}), True), r"must be f32\[3\], got bool\[3\]"),
    ]:
        f.def_vmap(lambda size, flags, x, returned=returned: returned(x))
        with pytest.raises((TypeError, ValueError), match=error):
            fxflow.vmap(f)(x)


def test_sequential():
    @sequential_vmap
    def f(x, y):
        return {"sum": x + y, "y": y}

    out = fxflow.vmap(f, (0, None))(fnp.arange(3.0), 1.0)
    assert out["sum"].tolist() == [1, 2, 3] and out["y"].tolist() == [1, 1, 1]
    nested = fxflow.vmap(fxflow.vmap(f, (0, None)), (0, 0))
    assert nested(fnp.ones((2, 3)), fnp.ones(2))["sum"].shape == (2, 3)
    gradient = fxflow.grad(lambda x: fxflow.vmap(f, (0, None))(x, 1.0)["sum"].sum())
    assert gradient(fnp.ones(3)).tolist() == [1, 1, 1]


# -- effects, and references -----------------------------------------------------------


def logged():
    """A function that calls Python, what it was called with, and what its rule was."""
    rows, batches = [], []

    @custom_vmap
    def f(x):
        fxflow.io_callback(lambda v: rows.append(v.tolist()), None, x)
        return x + 1

    @f.def_vmap
    def rule(size, in_batched, x):
        fxflow.io_callback(lambda v: batches.append(v.tolist()), None, x)
        return x + 1, in_batched[0]

    return f, rows, batches


def counting(f):
    """A loop of n steps of f."""

    def run(n):
        step = lambda c: (c[0] + 1, f(c[1]))
        return lax.while_loop(lambda c: c[0] < n, step, (0, 0.0))[1]

    return run


def test_effects_in_loops_and_branches_are_those_of_the_rule():
    f, rows, batches = logged()
    run = fxflow.jit(fxflow.vmap(counting(f)))
    assert run(fnp.array([1, 3])).tolist() == [1, 3]
    assert batches == [[0, 0], [1, 1], [1, 2]] and not rows
    batches.clear()
    branch = fxflow.jit(fxflow.vmap(lambda p, x: lax.cond(p, f, lambda x: -x, x)))
    x = fnp.arange(2.0)
    assert branch(fnp.array([False, True]), x).tolist() == [0, 2]
    assert batches == [[0, 1]] and not rows
    assert branch(fnp.array([False, False]), x).tolist() == [0, -1]
    assert batches == [[0, 1]], "no row takes the branch"


def test_a_rule_may_ask_which_effects_are_wanted():
    f, rows, batches = logged()

    @f.def_vmap
    def rule(size, in_batched, x, *, active=None):
        if active is None:
            active = fnp.ones(size, bool)
        log = lambda v, a: batches.append(v[a].tolist())
        fxflow.io_callback(log, None, x, active)
        return x + 1, in_batched[0]

    def nested(n, m):
        run = lambda x: lax.while_loop(
            lambda d: d[0] < m, lambda d: (d[0] + 1, f(d[1])), (0, x)
        )[1]
        step = lambda c: (c[0] + 1, run(c[1]))
        return lax.while_loop(lambda c: c[0] < n, step, (0, 0.0))[1]

    # The rows' steps in turn: both, then the first, then the second.
    assert fxflow.vmap(nested)(fnp.array([1, 2]), fnp.array([2, 1])).tolist() == [2, 2]
    assert batches == [[0, 0], [1], [1]] and not rows
    batches.clear()
    assert fxflow.vmap(f)(fnp.arange(2.0)).tolist() == [1, 2]
    assert batches == [[0, 1]]
    batches.clear()

    def from_start(x):
        step = lambda c: (c[0] + 1, f(c[1]))
        run = lambda n: lax.while_loop(lambda c: c[0] < n, step, (0, x))[1]
        return fxflow.vmap(run)(fnp.array([1, 2]))

    values, slopes = fxflow.jvp(from_start, (2.0,), (1.0,))
    assert values.tolist() == [3, 4] and slopes.tolist() == [1, 1]
    assert batches == [[2, 2], [3]]


def test_sequential_functions_of_references_are_refused():
    def add(ref, x):
        ref[...] += x
        return x

    f = lambda x: sequential_vmap(add)(fxflow.new_ref(x), x)
    assert float(f(fnp.ones(()))) == 1
    with pytest.raises(ArgumentError, match="sequential_vmap: add is given a ref"):
        fxflow.vmap(f)(fnp.ones(3))


def test_sequential_functions_run_for_the_rows_that_take_part():
    seen = []

    @sequential_vmap
    def f(x):
        fxflow.io_callback(lambda v: seen.append(v.tolist()), None, x)
        return {"twice": 2 * x}

    def run(n):
        step = lambda c: (c[0] + 1, f(c[1])["twice"])
        return lax.while_loop(lambda c: c[0] < n, step, (0, 1.0))[1]

    assert fxflow.vmap(run)(fnp.array([1, 3])).tolist() == [2, 8]
    assert seen == [1, 1, 2, 4]


def test_rules_of_references():
    def add(ref, x):
        ref[...] += x
        return x

    f = custom_vmap(add)

    @f.def_vmap
    def rule(size, in_batched, ref, x):
        ref[...] += 2 * x  # not its vectorized form: to be seen
        return x, in_batched[1]

    def once(x):
        ref = fxflow.new_ref(fnp.zeros(()))
        f(ref, x)
        return ref[...]

    def often(n):
        ref = fxflow.new_ref(fnp.zeros(()))
        lax.while_loop(lambda i: i < n, lambda i: (f(ref, 1.0), i + 1)[1], 0)
        return ref[...]

    assert once(3.0) == 3 and fxflow.jit(often)(3) == 3
    assert fxflow.vmap(once)(fnp.arange(3.0)).tolist() == [0, 2, 4]
    assert fxflow.jit(fxflow.vmap(often))(fnp.array([1, 3])).tolist() == [2, 6]
    f.def_vmap(lambda size, flags, ref, x: (x, flags[1]))
    assert fxflow.vmap(lambda x: once(x))(fnp.ones(2)).tolist() == [0, 0]
    only_reads = custom_vmap(lambda ref, x: ref[...] + x)

    @only_reads.def_vmap
    def writes(size, in_batched, ref, x):
        ref[...] = x
        return x, True

    def read(x):
        return only_reads(fxflow.new_ref(0 * x), x)

    with pytest.raises(ArgumentError, match=r"writes to a reference that .* does not"):
        fxflow.vmap(read)(fnp.ones(2))
