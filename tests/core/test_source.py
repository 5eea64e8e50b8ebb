"""The user's line: remembered cheaply, told when asked, own frames left out."""

from __future__ import annotations

import functools
import re
import sys
import traceback
import warnings

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import config, grad, jit, lax, nn, optim, random, train
from fxflow.core import source
from fxflow.errors import ShapeError


def here_line():
    return sys._getframe(1).f_lineno


def test_here_is_this_function():
    place, line = source.here(), here_line()
    assert place is not None
    assert place[0].co_name == "test_here_is_this_function"
    assert source.line_number(place) == line
    assert source.describe(place) == f"{__file__}:{line} ({place[0].co_name})"


def test_an_absent_place_is_an_unknown_line():
    assert source.describe(None) == "unknown line"


def test_files_of_the_package_are_internal():
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


def ones(*shape):
    return fnp.ones(shape)


def a_deleted():
    x = ones(3) + 1
    x.delete()
    return x


EAGER = {
    "operator": lambda: ones(3, 4) @ ones(5, 6),
    "reflected": lambda: [1] + ones(2),
    "comparison": lambda: ones(2) < ones(3),
    "unary": lambda: -random.key(0),
    "ufunc": lambda: fnp.add(ones(2), ones(3)),
    "ufunc of one": lambda: fnp.sin("text"),
    "ufunc method": lambda: fnp.add.reduce(ones(2), 7),
    "library function": lambda: nn.relu("text"),
    "lax of two": lambda: lax.add(ones(2), ones(3)),
    "lax of one": lambda: lax.sin("text"),
    "options": lambda: fnp.sum(ones(2), 7),
    "method": lambda: ones(2).sum(7),
    "reshape": lambda: ones(3).reshape(5),
    "transpose": lambda: ones(3).transpose(1, 0),
    "property": lambda: ones(3).mT,
    "index": lambda: ones(3)[7],
    "update": lambda: ones(3).at[7].set(1),
    "item assignment": lambda: ones(3).__setitem__(0, 1),
    "int": lambda: int(ones(3)),
    "bool": lambda: bool(ones(3)),
    "len": lambda: len(fnp.float32(1)),
    "hash": lambda: hash(ones(3)),
    "NumPy's conversion": lambda: np.asarray(random.key(0)),
    "deleted": lambda: a_deleted() + 1,
    "class": lambda: fxflow.NamedSharding(fxflow.make_mesh((1,), "x"), fxflow.P("y")),
    "vjp": lambda: fxflow.vjp(fnp.sin, 1.0)[1](ones(3)),
    "linearize": lambda: fxflow.linearize(fnp.sin, 1.0)[1](ones(3)),
    "program": lambda: jit(fnp.sin).lower(1.0).compile()(ones(3)),
    "made by optim": lambda: optim.adam(1e-3).update({"a": ones(3)}, 3),
    "initializer": lambda: nn.initializers.he_normal()(random.key(0), (3,)),
    "vectorized": lambda: fnp.vectorize(lambda x: x, signature="(n)->()")(1.0),
    "placed": lambda: fxflow.device_put(ones(3), "text"),
    "index expression": lambda: fnp.r_[1, "text"],
}


@pytest.mark.parametrize("name", EAGER)
def test_eager_errors_show_the_users_frames_alone(name):
    with pytest.raises(Exception) as info:
        EAGER[name]()
    shown = "".join(traceback.format_exception(info.value))
    files = re.findall(r'File "(.*?)"', shown)
    assert not [f for f in files if source.is_internal(f)], shown
    assert "During handling" not in shown
    with config.override(full_tracebacks=True), pytest.raises(Exception) as info:
        EAGER[name]()
    files = re.findall(r'File "(.*?)"', "".join(traceback.format_exception(info.value)))
    assert [f for f in files if source.is_internal(f)]


def test_what_the_user_was_handling_is_shown():
    with pytest.raises(TypeError) as info:
        try:
            boom(1)
        except ValueError:
            ones(2) + ones(3)
    assert "mine" in "".join(traceback.format_exception(info.value))


def test_frames_of_a_function_of_the_users_stay():
    with pytest.raises(ValueError, match="mine") as info:
        fnp.apply_along_axis(boom, 0, ones(3))
    files = [f.filename for f in traceback.extract_tb(info.value.__traceback__)]
    assert set(files) == {__file__}
    assert len(files) == 2


def test_full_tracebacks_on_request():
    with config.override(full_tracebacks=True), pytest.raises(ValueError) as info:
        jit(boom)(1.0)
    files = [f.filename for f in traceback.extract_tb(info.value.__traceback__)]
    assert [f for f in files if source.is_internal(f)]


def test_names_of_functions():
    line = here_line() + 1
    square = lambda x: x * x
    place = f"<lambda> at {__file__}:{line}"
    assert source.name_of(boom) == "boom"
    assert source.name_of(functools.partial(boom, 1)) == "boom"
    assert source.name_of(square) == source.located(square) == place
    assert source.name_of(grad(square)) == f"grad({place})"
    assert source.located(boom).startswith(f"boom at {__file__}:")


def test_programs_do_not_change_with_the_line():
    texts = {jit(f).lower(1.0).as_text() for f in (lambda x: x + 1, (lambda x: x + 1))}
    assert len(texts) == 1


def test_weak_types_are_explained_once(monkeypatch):
    monkeypatch.setattr(source, "_weak_explained", [])
    notes = []
    for _ in range(2):
        with pytest.raises(TypeError) as info:
            grad(lambda x: x)(1)
        notes.append(getattr(info.value, "__notes__", []))
    assert len(notes[0]) == 1 and "weak type" in notes[0][0]
    assert notes[1] == []


def test_a_message_can_be_extended():
    with pytest.raises(ShapeError, match=r"^a; b$"), source.telling(lambda: "; b"):
        raise ShapeError("a")


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


def test_objects_with_odd_attributes_are_transformed():
    class Model:
        __name__ = 3
        __annotations__ = None

        def __call__(self, x):
            return 2.0 * x

    model = Model()
    model.__annotations__ = None
    assert fxflow.vmap(model)(fnp.ones(2)).tolist() == [2.0, 2.0]
    assert float(grad(model)(1.0)) == 2.0
    assert float(fxflow.checkpoint(model)(1.0)) == 2.0
    assert fxflow.eval_shape(model, 1.0).shape == ()


def test_warnings_name_the_users_line(tmp_path):
    log = train.logs.Logger(train.logs.json_lines(tmp_path / "run.jsonl"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for step in range(2):
            log(step, {"a": "text"})
            log.flush()
            lax.convert_element_type(fnp.array(1j), fnp.float32)
        lax.convert_element_type(fnp.array(1j), fnp.float32)
        log.close()
    assert {w.filename for w in caught} == {__file__}
    # Python shows a text once for each line.
    assert len(caught) == 4


def test_code_without_a_module_is_warned_too() -> None:
    with pytest.warns(UserWarning, match="here"):
        exec("source.warn('here')", {"source": source})
