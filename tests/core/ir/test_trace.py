"""The current interpreter, named axes, and what a traced value cannot be used for."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import grad, jit, lax, vmap
from fxflow.core.ir.staging import GraphTrace
from fxflow.core.ir.trace import axis_size_of, named_axes, state, under
from fxflow.core.runtime.eager import EVAL


def test_current_interpreter():
    assert state.trace is EVAL
    trace = GraphTrace()

    def inside():
        assert state.trace is trace
        assert under(EVAL, lambda: state.trace) is EVAL
        assert state.trace is trace

    under(trace, inside)
    assert state.trace is EVAL


def test_it_is_restored_after_errors():
    def fail():
        raise ValueError

    with pytest.raises(ValueError):
        under(GraphTrace(), fail)
    for transform in (jit, grad, lambda f: vmap(f, axis_name="i")):
        with pytest.raises(ValueError):
            transform(lambda x: fail())(fnp.ones(2))
        assert state.trace is EVAL
        assert state.axes == ()


def test_each_thread_has_its_own():
    seen = []

    def start():
        thread = threading.Thread(target=lambda: seen.append(state.trace))
        thread.start()
        thread.join()

    under(GraphTrace(), start)
    assert seen == [EVAL]


def test_named_axes():
    with named_axes([("i", 3), ("j", 4)]):
        assert (axis_size_of("i"), axis_size_of("j")) == (3, 4)
        with named_axes([("i", 7)]):
            assert axis_size_of("i") == 7
        assert axis_size_of("i") == 3
        with pytest.raises(NameError, match=r"unbound axis name 'k'.*'i', 'j'"):
            axis_size_of("k")
    with pytest.raises(NameError, match="no axis is in scope"):
        axis_size_of("i")


def test_named_scope_reaches_the_nodes():
    def fun(x):
        with fxflow.named_scope("outer"), fxflow.named_scope("inner"):
            y = lax.sin(x)
        return lax.cos(y)

    graph = fxflow.make_graph(fun)(1.0)
    assert [n.scope for n in graph.nodes] == [("outer", "inner"), ()]
    assert "outer/inner/sin" in jit(fun).lower(1.0).as_text()


# -- what needs a concrete value -------------------------------------------------------


TRANSFORMS = [
    pytest.param(jit, "argument x of", id="jit"),
    pytest.param(lambda f: jit(grad(f)), "argument x of", id="jit-grad"),
    pytest.param(lambda f: vmap(f), "vectorized", id="vmap"),
]


@pytest.mark.parametrize(("transform", "origin"), TRANSFORMS)
@pytest.mark.parametrize(
    ("use", "words"),
    [
        (bool, "control flow.*fnp.where"),
        (float, r"float\(\)"),
        (complex, r"complex\(\)"),
        (int, r"int\(\).*static"),
        (range, "Python integer.*static_argnames"),
        (np.asarray, "NumPy array.*fxflow.numpy"),
        (lambda x: x.item(), r"item\(\)"),
        (lambda x: x.tolist(), r"tolist\(\)"),
        (pickle.dumps, "pickle"),
        (lambda x: np.sin(x), "NumPy array"),
        (lambda x: 1.0 if x else 2.0, "control flow"),
        (lambda x: [1, 2][x], "Python integer"),
    ],
)
def test_concrete_value_needed(transform, origin, use, words):
    def fun(x):
        use(x)
        return x

    if origin == "vectorized":
        argument = fnp.ones(2)
    else:
        argument = fnp.array(1.0)
    with pytest.raises(TypeError, match=rf"(?s){words}") as info:
        transform(fun)(argument)
    assert "f32[]" in str(info.value)
    assert origin in str(info.value)


def test_an_intermediate_value_names_its_line():
    def fun(x):
        y = fnp.sin(x)
        return y if y > 0 else x

    with pytest.raises(
        TypeError, match=r"computed by gt at .*test_trace\.py:\d+ \(fun"
    ):
        jit(fun)(1.0)


def test_what_traced_values_can_do():
    seen = {}

    def fun(x):
        seen["repr"] = repr(x)
        seen["html"] = x._repr_html_()
        seen["format"] = f"{x}|{x:>20}"
        seen["parts"] = (x.shape, x.dtype, x.ndim, x.size, x.weak_type, len(x))
        seen["copies"] = copy.copy(x) is x and copy.deepcopy(x) is x
        seen["ready"] = x.block_until_ready() is x
        return x

    jit(fun)(fnp.ones((2, 3)))
    assert seen["repr"] == "Traced<f32[2,3]>"
    assert seen["html"] == "<code>Traced&lt;f32[2,3]&gt;</code>"
    assert seen["format"] == "Traced<f32[2,3]>|    Traced<f32[2,3]>"
    assert seen["parts"] == ((2, 3), np.float32, 2, 6, False, 2)
    assert seen["copies"] and seen["ready"]


def test_traced_values_are_not_hashable():
    with pytest.raises(TypeError, match="not hashable"):
        jit(lambda x: hash(x))(1.0)


# -- leaks -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "transform",
    [jit, grad, vmap, lambda f: lambda x: fxflow.jvp(f, (x,), (x,))],
    ids=["jit", "grad", "vmap", "jvp"],
)
def test_leaks(transform):
    kept = []

    def fun(x):
        kept.append(x * 2.0)
        return x * 1.0

    argument = fnp.ones(2) if transform is vmap else fnp.array(1.0)
    transform(fun)(argument)
    for use in (
        lambda x: x + 1,
        lambda x: fnp.sin(x),
        lambda x: fnp.stack([x, x]),
        lambda x: jit(lambda y: y)(x),
        lambda x: fnp.where(True, x, x),
    ):
        with pytest.raises(
            (RuntimeError, TypeError), match=r"(outside the transformed|leaked)"
        ):
            use(kept[0])


def test_a_leak_into_another_trace():
    kept = []
    jit(lambda x: kept.append(x))(fnp.ones(3))
    with pytest.raises(RuntimeError):
        jit(lambda y: y + kept[0])(fnp.ones(3))


def test_traced_values_have_no_places() -> None:
    names = ["device", "sharding", "committed", "addressable_shards", "global_shards"]
    names += ["is_fully_addressable", "is_fully_replicated", "_type"]
    found = []

    def look(x):
        found.extend(name for name in names if hasattr(x, name))
        with pytest.raises(AttributeError, match="a traced value has no device, shard"):
            x.devices()
        return x

    fxflow.grad(fxflow.jit(look))(1.0)
    assert not found
