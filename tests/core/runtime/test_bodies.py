"""Which functions are the same, and which may change."""

from __future__ import annotations

import abc
import enum
import functools
import gc
import weakref

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import jit, lax
from fxflow.core import caches, tree
from fxflow.core.arrays.array import as_array
from fxflow.core.arrays.aval import Aval
from fxflow.core.runtime import bodies
from fxflow.core.runtime.bodies import function_key, trace_body

SCALAR = Aval((), np.dtype(np.float32))
ONE = tree.structure((0,))
FACTOR = 2.0


def trace(function):
    return trace_body(function, ONE, [SCALAR], name="f").graph


def adder(value):
    return lambda x: lax.add(x, value)


def test_same_code_and_values_are_traced_once():
    assert trace(adder(1.0)) is trace(adder(1.0))
    assert trace(adder(1.0)) is not trace(adder(2.0))
    assert trace(adder(1.0)) is not trace(adder(True)), "equal, but not the same"
    assert trace(adder(0.0)) is not trace(adder(-0.0))


@pytest.mark.parametrize(
    "value",
    [1, 2.0, "s", None, (1, (2,)), int, np.dtype("f4"), lax, len, np.add, lax.add],
)
def test_functions_that_capture_constants_have_a_key(value):
    assert function_key(adder(value)) == function_key(adder(value)) != None  # noqa: E711


@pytest.mark.parametrize("value", [np.ones(2), object(), {1}, [object()]])
def test_functions_that_capture_mutable_values_have_no_key(value):
    assert function_key(adder(value)) is None


@pytest.mark.parametrize("size", [3, 1 << 15])
def test_arrays_by_identity(size):
    array = as_array(np.ones(size, np.float32))
    assert function_key(adder(array)) == function_key(adder(array))
    assert function_key(adder(array)) != function_key(adder(as_array(np.ones(size))))
    graph = trace(adder(array))
    assert trace(adder(array)) is graph
    known, freed = len(bodies._bodies), weakref.ref(array)
    del array
    assert freed() is None, "neither the key nor the graph keeps it alive"
    assert len(bodies._bodies) == known - 1, "and the graph is forgotten"


def test_a_function_with_a_rule_that_closes_over_an_array_is_not_kept():
    def with_rule(value):
        f = fxflow.custom_jvp(lambda x: x)
        f.defjvp(lambda primals, tangents: (*primals, tangents[0] * value))
        return f

    array = as_array(np.ones(3, np.float32))
    freed = weakref.ref(array)
    trace(with_rule(array))
    del array
    gc.collect()
    assert freed() is None
    kept = with_rule(2.0)
    assert trace(kept) is trace(kept)


def test_globals_defaults_and_functions_called():
    global FACTOR
    f = lambda x: lax.mul(x, FACTOR)
    first = trace(f)
    assert trace(f) is first
    FACTOR = 3.0
    try:
        assert trace(f) is not first
    finally:
        FACTOR = 2.0
    inner = adder(1.0)
    assert function_key(lambda x: inner(x)) is not None
    changeable = adder({1.0})
    assert function_key(lambda x: changeable(x)) is None
    key = lambda n: function_key(lambda x, n=n: x)
    assert key(1) == key(1) != key(2)
    only = lambda n: function_key(functools.partial(inner, n))
    assert only(1) == only(1) != only(2)
    assert function_key(jit(inner)) is not None
    assert function_key(jit(changeable)) is None

    def recursive(n):
        return recursive(n - 1) if n else 0

    assert function_key(recursive) is not None


def test_classes_whose_metaclass_runs_code_may_change():
    made = []

    class Counted(type):
        def __call__(cls, *args):
            made.append(cls.__name__)
            return super().__call__(*args)

    class Layer(metaclass=Counted):
        pass

    class Plain(metaclass=abc.ABCMeta):
        @abc.abstractmethod
        def apply(self): ...

    class Kind(enum.Enum):
        A = 1

    assert function_key(lambda x: (Layer(), x)) is None
    assert function_key(lambda x: (Plain, Kind, fnp.float32, x)) is not None


def test_traced_values_are_never_remembered():
    keys = []

    def outer(y):
        keys.append(function_key(lambda x: lax.add(x, y)))
        return y

    jit(outer)(1.0)
    assert keys == [None]


def test_options_and_types_matter():
    f = adder(1.0)
    first = trace(f)
    with fxflow.config.override(x64=True):
        assert trace(f) is not first
    assert trace_body(f, ONE, [Aval((2,), SCALAR.dtype)], name="f") is not first
    assert trace(f) is first


def test_check_sees_the_result_and_structure_is_kept():
    def refuse(out):
        raise ValueError(out["y"].shape)

    f = lambda x: {"y": x}
    with pytest.raises(ValueError, match=r"\(\)"):
        trace_body(f, ONE, [SCALAR], name="g", check=refuse)
    body = trace_body(f, ONE, [SCALAR], name="g")
    assert body.out_tree == tree.structure({"y": 0})


def test_the_oldest_are_forgotten():
    for i in range(bodies.MAX_BODIES + 3):
        trace(adder(float(i)))
    assert caches.sizes()["traced bodies"] <= bodies.MAX_BODIES


def test_lists_and_dicts_are_what_they_hold():
    config = {"scale": 2.0, "layers": [1, 2]}
    function = lambda x: lax.mul(x, config["scale"])
    first = function_key(function)
    assert first == function_key(function) is not None
    config["layers"].append(3)
    assert function_key(function) != first
    config["layers"].pop()
    assert function_key(function) == first
    config["self"] = config
    assert function_key(function) is None
    many = list(range(bodies.MAX_ITEMS + 1))
    assert function_key(lambda x: lax.mul(x, many[0])) is None


def test_a_loop_sees_what_a_dict_holds_now():
    config = {"step": 1}

    def run():
        return int(
            lax.while_loop(lambda c: lax.lt(c, 10), lambda c: c + config["step"], 0)
        )

    assert (run(), run()) == (10, 10)
    config["step"] = 7
    assert run() == 14


def test_objects_are_not_asked_for_what_they_lack():
    class Module:
        def __getattr__(self, name):
            raise AssertionError(f"asked for {name}")

    module = Module()

    def body(carry, _):
        return carry + (module is None), None

    out, _ = lax.scan(body, as_array(np.ones(2)), None, length=2)
    assert out.tolist() == [1.0, 1.0]
