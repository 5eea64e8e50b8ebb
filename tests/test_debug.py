"""`debug.print` and `debug.callback`: seeing values while programs run."""

from __future__ import annotations

import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import debug, grad, jit, lax, vmap
from fxflow.errors import ArgumentError


def test_print(capsys):
    debug.print("x is {}", fnp.arange(2))
    debug.print("{x:.2f} and {0}", 1, x=fnp.array(3.14159))
    debug.print("nothing")
    debug.print("{{braces}}")
    assert capsys.readouterr().out == ("x is [0 1]\n3.14 and 1\nnothing\n{braces}\n")


def test_print_in_programs(capsys):
    fun = jit(lambda x: (debug.print("x = {x}", x=x), x * 2)[1])
    fun(fnp.array([1.0, 2.0]))
    fun(fnp.array([3.0, 4.0]))
    assert capsys.readouterr().out == "x = [1. 2.]\nx = [3. 4.]\n"


def test_print_in_order(capsys):
    def fun(xs):
        def step(c, x):
            debug.print("{}", x, ordered=True)
            return c, None

        debug.print("start", ordered=True)
        lax.scan(step, 0.0, xs)
        debug.print("end", ordered=True)
        return xs

    jit(fun)(fnp.arange(3))
    assert capsys.readouterr().out.split() == ["start", "0", "1", "2", "end"]


def test_print_under_transformations(capsys):
    def fun(x):
        debug.print("{}", x)
        return x * x

    assert float(grad(fun)(3.0)) == 6.0
    assert capsys.readouterr().out == "3.0\n"
    vmap(fun)(fnp.array([1.0, 2.0]))
    assert sorted(capsys.readouterr().out.split()) == ["1.0", "2.0"]
    jit(vmap(fun))(fnp.array([1.0, 2.0]))
    assert sorted(capsys.readouterr().out.split()) == ["1.0", "2.0"]


def test_pytrees(capsys):
    debug.print("{tree[a]} {items[0]}", tree={"a": fnp.array(1)}, items=[fnp.array(2)])
    assert capsys.readouterr().out == "1 2\n"


def test_callback():
    seen = []
    fun = jit(lambda x: debug.callback(lambda v, *, k: seen.append((v, k)), x, k=x + 1))
    fun(1.0)
    assert [(float(v), float(k)) for v, k in seen] == [(1.0, 2.0)]


def test_attributes_are_seen_while_tracing():
    assert "effect=debug" in str(fxflow.make_graph(lambda x: debug.print("{}", x))(1.0))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: debug.print(fnp.ones(2)), r'write debug.print\("{}", x\)'),
        (lambda: debug.print("x", fnp.ones(2)), "argument 0 is not used"),
        (lambda: debug.print("{}", 1.0, y=2.0), "argument 'y' is not used"),
        (lambda: debug.print("{}", "text"), "not an array"),
        (lambda: debug.callback(3), "takes a function"),
    ],
)
def test_unused_and_invalid_arguments_are_refused(call, words):
    with pytest.raises(ArgumentError, match=words):
        call()


def test_places_without_arguments():
    with pytest.raises((IndexError, ArgumentError)):
        debug.print("{} {}", 1.0)
    with pytest.raises((KeyError, ArgumentError)):
        debug.print("{x}")


def test_print_of_parts(capsys):
    mesh = fxflow.make_mesh((8,), ("x",))
    where = fxflow.NamedSharding(mesh, fxflow.P("x"))
    x = fxflow.device_put(fnp.arange(8), where)
    jit(lambda x: debug.print("part {}", x, partitioned=True))(x)
    lines = capsys.readouterr().out.splitlines()
    assert sorted(lines) == [f"part [{i}]" for i in range(8)]
    jit(lambda x: debug.print("whole {}", x))(x)
    assert capsys.readouterr().out == "whole [0 1 2 3 4 5 6 7]\n"
    with pytest.raises(ArgumentError, match="have no order"):
        debug.print("{}", x, ordered=True, partitioned=True)


def test_colors_are_for_terminals(capsys, monkeypatch):
    sharding = fxflow.SingleDeviceSharding("cpu:0")
    monkeypatch.delenv("NO_COLOR", raising=False)
    debug.visualize_sharding((2,), sharding)
    assert "\x1b" not in capsys.readouterr().out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    debug.visualize_sharding((2,), sharding)
    assert "\x1b" in capsys.readouterr().out
    debug.visualize_sharding((2,), sharding, use_color=False)
    assert "\x1b" not in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    debug.visualize_array_sharding(fnp.ones(2), min_width=9, scale=1.0, max_width=12)
    assert capsys.readouterr().out.splitlines()[1] == "│  CPU 0  │"
