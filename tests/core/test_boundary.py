"""Errors of public functions: they name the argument, and pass the user's own."""

from __future__ import annotations

import inspect
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import extend, lax, optim, random, train
from fxflow.core import boundary
from fxflow.core.ir.trace import Tracer
from fxflow.errors import ArgumentError


@pytest.mark.parametrize(
    "annotation, good, bad, words",
    [
        ("int", 3, "three", "an integer"),
        ("int | None", None, 1.5, "an integer or None"),
        ("bool", True, np.zeros(2), "a bool"),
        ("Sequence[int]", [1, 2], (1, "b"), "a sequence of integers"),
        ("Axes", (0, 1), "ab", "an integer or a sequence of integers or None"),
        ("Callable[..., Any] | None", len, 3, "a function or None"),
        ("tuple[int, int] | None", (0, 1), (0, 1, 2), "a pair of integers or None"),
        ("ArrayLike", 1.5, {"a": 1}, "an array"),
        ("DTypeLike", "int8", "int9", "a dtype"),
    ],
)
def test_annotations_are_checked_on_failure(annotation, good, bad, words):
    assert boundary.words(annotation, [good]) == ""
    assert boundary.words(annotation, [good, bad]) == words


@pytest.mark.parametrize("annotation", ["Any", "int | Unheard", "Mesh | None"])
def test_annotations_that_say_nothing(annotation):
    assert boundary.words(annotation, ["anything"]) == ""


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: fnp.linspace(0, 1, "a"), "linspace: num must be an integer, got 'a'"),
        (lambda: lax.iota("int32", None), "iota: size"),
        (lambda: fnp.fromfunction(3, (2,)), "fromfunction: function must be a funct"),
        (lambda: fnp.sum(np.ones(3), keepdims=np.ones(3)), "keepdims must be a bool"),
    ],
)
def test_the_argument_is_named(call, text):
    with pytest.raises(ArgumentError, match=text):
        call()


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: optim.adam("x"), "adam: learning_rate must be a number or a schedule"),
        (lambda: optim.sgd(0.1, momentum="x"), "sgd: momentum must be a real number"),
        (lambda: optim.lion(0.1, mu_dtype="x"), "lion: mu_dtype must be a dtype"),
        (lambda: optim.constant_schedule("a"), "constant_schedule: value must be a re"),
    ],
)
def test_what_makes_functions_looks_at_its_arguments_at_once(call, text):
    with pytest.raises(ArgumentError, match=text):
        call()


def test_arguments_of_optimizers_that_are_right():
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        optim.adam()
    for rate in (0.1, fnp.asarray(0.1), optim.constant_schedule(0.1)):
        optim.adam(rate)
    # One factor for each row.
    optim.scale(fnp.ones((2, 1)))
    assert fxflow.jit(lambda rate: optim.scale(rate).update(1.0, ())[0])(0.5) == 0.5


def test_functions_that_return_their_result():
    def generator():
        yield 1

    async def coroutine():
        return 1

    boundary.require_callable(len, "jit")
    for wrong, text in (
        (3, "jit takes a function, got int 3: pass the function itself"),
        (fnp.ones(3), r"jit takes a function, got the array f32\[3\]"),
        (
            staticmethod(len),
            "got a staticmethod: put @staticmethod outside, above @jit",
        ),
        (generator, r"got the generator function .*generator: return a list"),
        (coroutine, r"got the coroutine function .*coroutine: await outside"),
    ):
        with pytest.raises(ArgumentError, match=text):
            boundary.require_callable(wrong, "jit")
    with pytest.raises(ArgumentError, match="scan: f must be a function, got int 3"):
        lax.scan(3, 0.0, fnp.ones(3))
    with pytest.raises(ArgumentError, match="scan: f must be a function that returns"):
        lax.scan(generator, 0.0, fnp.ones(3))


def test_the_users_own_errors_pass():
    def mistaken(x):
        return x.unheard_of

    with pytest.raises(AttributeError, match="unheard_of"):
        fnp.apply_along_axis(mistaken, 0, np.ones(3))


def test_a_wrong_number_of_arguments_is_pythons_error():
    with pytest.raises(TypeError, match=r"linspace\(\) missing 2 required"):
        fnp.linspace()


@pytest.mark.parametrize(
    "call, text",
    [
        (
            lambda: optim.adam(lr=0.1),
            "'lr' is learning_rate here; the signature is ",
        ),
        (lambda: fnp.sum(fnp.ones(3), axes=0), "; the signature is sum(a, axis="),
        (lambda: random.normal(random.key(0), size=3), "normal(key, shape=(), dtype="),
        (
            lambda: train.logs.Logger()(1, loss=0.5),
            "'loss'; the signature is Logger.__call__(step, values)",
        ),
    ],
)
def test_a_wrong_name_is_answered_with_the_signature(call, text):
    with pytest.raises(TypeError, match=re.escape(text)) as caught:
        call()
    assert caught.traceback[-1].path == Path(__file__)


@pytest.mark.parametrize("function", [fnp.sum, fnp.linspace])
def test_an_unknown_name_is_pythons_error(function):
    with pytest.raises(
        TypeError, match="unexpected keyword argument 'wrong'"
    ) as caught:
        function(fnp.zeros(3), wrong=1)
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_no_own_frames():
    with pytest.raises(TypeError) as caught:
        fnp.linspace(0, 1, "a")
    files = [str(entry.path) for entry in caught.traceback]
    assert files[0].endswith("test_boundary.py")
    assert len(files) == 1


@pytest.mark.parametrize(
    "function", [fnp.sum, lax.reshape, random.normal, fxflow.jit, lax.add, lax.sin]
)
def test_public_functions_pickle(function):
    assert pickle.loads(pickle.dumps(function)) is function


def test_boundaries_of_operands_alone_take_operands_alone():
    assert inspect.signature(lax.add) == inspect.signature(inspect.unwrap(lax.add))
    with pytest.raises(TypeError, match="positional"):
        lax.add(1.0)
    with pytest.raises(TypeError, match=r"^sin: x: got 'a'"):
        lax.sin("a")


def test_what_is_guarded_is_so_once():
    for function in (lax.sin, lax.add, fnp.sum):
        assert boundary.guarded(function, "fxflow.lax", "f") is function
    assert boundary.guarded(np.printoptions, "m", "printoptions") is np.printoptions


def test_what_is_made_of_the_users_functions_stays_theirs():
    mine = optim.GradientTransformationExtraArgs(lambda p: (), lambda u, s, p=None: u)
    assert optim.with_extra_args_support(mine) is mine
    adam = optim.with_extra_args_support(optim.adam(0.1))
    assert optim.with_extra_args_support(adam) is adam


def test_methods_that_fxflow_calls_itself_have_no_boundary():
    @boundary.guard_methods
    class Stage:
        _called_inside = ("run",)

        def run(self):
            """Runs."""

        def compile(self):
            """Compiles."""

    assert not hasattr(Stage.run, "__wrapped__")
    assert hasattr(Stage.compile, "__wrapped__")


def test_methods_of_arrays_and_tracers_have_no_boundaries() -> None:
    assert extend.Tracer is Tracer
    assert Tracer.item.__code__.co_name == "method"
