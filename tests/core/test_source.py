"""The user's line: remembered cheaply, told when asked, own frames left out."""

from __future__ import annotations

import sys
import traceback

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import config, grad, jit, lax
from fxflow.core import source


def here_line():
    return sys._getframe(1).f_lineno


def test_here_is_this_function():
    place, line = source.here(), here_line()
    assert place is not None
    assert place[0].co_name == "test_here_is_this_function"
    assert source.line_number(place) == line
    assert source.describe(place) == f"{__file__}:{line} ({place[0].co_name})"


def test_nobody():
    assert source.describe(None) == "unknown line"


def test_what_is_internal():
    assert source.is_internal(source.__file__)
    assert source.is_internal("<fxflow host plan of add>")
    assert not source.is_internal(__file__)


def test_nodes_know_the_line_that_made_them():
    def fun(x):
        y = fnp.sin(x)
        return fnp.cos(y)

    graph = fxflow.make_graph(fun)(1.0)
    first = fun.__code__.co_firstlineno
    lines = {n.primitive.name: source.line_number(n.source) for n in graph.nodes}
    assert lines == {"sin": first + 1, "cos": first + 2}
    assert all(n.source[0] is fun.__code__ for n in graph.nodes)


def test_user_line_skips_own_frames():
    seen = []

    def fun(x):
        seen.append((source.user_line(), here_line()))
        return x

    jit(fun)(1.0)
    ((text, line),) = seen
    assert text == f"{__file__}:{line} (fun)"


def boom(x):
    raise ValueError("mine")


@pytest.mark.parametrize(
    "call",
    [
        lambda: jit(boom)(1.0),
        lambda: grad(boom)(1.0),
        lambda: jit(grad(boom))(1.0),
        lambda: fxflow.vmap(boom)(fnp.ones(2)),
        lambda: fxflow.jvp(boom, (1.0,), (1.0,)),
        lambda: fxflow.vjp(boom, 1.0),
        lambda: fxflow.make_graph(boom)(1.0),
        lambda: fxflow.eval_shape(boom, 1.0),
        lambda: lax.scan(lambda c, x: boom(c), 1.0, fnp.ones(2)),
        lambda: lax.cond(True, boom, boom, 1.0),
        lambda: lax.while_loop(lambda x: True, boom, 1.0),
    ],
)
def test_tracebacks_hold_the_users_frames_alone(call):
    with pytest.raises(ValueError, match="mine") as info:
        call()
    files = [f.filename for f in traceback.extract_tb(info.value.__traceback__)]
    assert not [f for f in files if source.is_internal(f)]
    assert files[-1] == __file__


def test_full_tracebacks_on_request():
    with config.override(full_tracebacks=True), pytest.raises(ValueError) as info:
        jit(boom)(1.0)
    files = [f.filename for f in traceback.extract_tb(info.value.__traceback__)]
    assert [f for f in files if source.is_internal(f)]


def test_without_own_frames_of_nothing():
    assert source.without_own_frames(None) is None


def test_errors_from_inside_name_function_and_argument():
    with pytest.raises(TypeError, match=r"^sin: x: got a masked array"):
        lax.sin(np.ma.masked_array([1.0, 2.0], [True, False]))
    with pytest.raises(TypeError, match=r"^zeros: dtype: expected a dtype, got 'f7'"):
        fnp.zeros(3, dtype="f7")
    with pytest.raises(OverflowError, match=r"^full: fill_value: Python int"):
        fnp.full((2,), 10**30)


def test_axes_out_of_range_tell_of_what():
    with pytest.raises(ValueError, match=r"^sum: axis 7 .* a is f32\[2,3\]$"):
        fnp.sum(fnp.ones((2, 3)), 7)
    with pytest.raises(ValueError, match=r"^cumsum: .*; operand is f32\[2,3\]$"):
        jit(lambda x: lax.cumsum(x, 4))(fnp.ones((2, 3)))


def test_what_is_at_fault_is_not_guessed():
    # Both arguments are the value: the function alone is named.
    with pytest.raises(TypeError, match=r"^add: got 'a' of type str"):
        fnp.add("a", "a")
