"""`debug.watch`: what made a NaN or infinity."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import debug, grad, jit, lax
from fxflow.core.source import user_frame
from fxflow.errors import FxflowError, NonFiniteError
from fxflow.sharding import PartitionSpec as P

FILE = "test_watching.py"


def found_by(f, *args, **options):
    """Returns what `watch` finds, and the result."""
    findings = []
    out = debug.watch(f, report=findings.append, **options)(*args)
    return (findings[0] if findings else None), out


def line(offset=0):
    frame = user_frame(2)
    return f"{FILE}:{frame.f_lineno + offset} "


def test_finite_results_pass():
    finding, out = found_by(lambda x, axis: fnp.sum(x, axis), fnp.ones((2, 3)), 1)
    assert finding is None and out.tolist() == [3, 3]
    watched = debug.watch(lambda tree: {"y": tree["x"] * 2})
    assert float(watched({"x": 2.0})["y"]) == 4
    assert watched.__name__ == "<lambda>"


def test_line_operands_and_history():
    def f(x):
        a = x - fnp.max(x)
        b = fnp.exp(a)
        return fnp.log(b - 1) * 0.0 + b, line()

    place = []

    def g(x):
        out, where = f(x)
        place[:] = [where]
        return out

    finding, _ = found_by(g, fnp.array([3.0, 3.0]))
    assert finding.kind == "nan" and finding.operation == "mul"
    assert place[0] in finding.line and not finding.backward
    assert any("log" in step for steps in finding.history for step in steps)
    assert "the argument x" in finding.text or "exp" in finding.text
    infinite, _ = found_by(g, fnp.array([3.0, 3.0]), which="inf")
    assert infinite is None
    with pytest.raises(NonFiniteError, match=r"g: mul at .*test_watching.py"):
        debug.watch(g)(fnp.array([3.0, 3.0]))


def test_values_that_a_selection_drops():
    def f(x):
        masked = fnp.where(fnp.arange(3) < 2, x, -fnp.inf)
        hidden = fnp.where(x > 0, fnp.log(x), 0.0)
        return fnp.exp(masked).sum() + hidden.sum() + fnp.log(x[0] - 1)

    finding, _ = found_by(f, fnp.array([1.0, -1.0, 0.5]))
    assert (finding.kind, finding.operation) == ("inf", "log")
    assert "f32[] 0.0" in finding.operands[0]
    finding, _ = found_by(f, fnp.array([2.0, -1.0, 0.5]))
    assert finding is None
    finding, _ = found_by(f, fnp.array([2.0, -1.0, 0.5]), everywhere=True, which="nan")
    assert finding.operation == "log" and finding.operands[0].startswith("f32[3]")


def test_double_where():
    def f(x):
        return fnp.sum(fnp.where(x > 0, fnp.sqrt(x), 0.0))

    finding, _ = found_by(jit(grad(f)), fnp.array([0.0, 1.0]))
    assert finding.backward and "in the backward pass of" in finding.text
    assert FILE in finding.double_where[0] and FILE in finding.double_where[1]
    assert "0 times infinity is nan" in finding.text and "lax.masked" in finding.text
    assert any("inf there" in text for text in finding.operands)
    # The forward value is nan, and hidden, too.
    finding, _ = found_by(grad(f), fnp.array([-1.0, 1.0]))
    assert finding.operation == "sqrt" and finding.double_where
    assert "0 times nan is nan" in finding.text


def test_infinite_slopes_without_a_selection():
    finding, _ = found_by(grad(lambda x: fnp.sqrt(x) * 0.0), 0.0)
    assert finding.kind == "nan" and finding.double_where is None
    finding, _ = found_by(grad(fnp.sqrt), 0.0)
    assert (finding.kind, finding.operation) == ("inf", "div")


def scanned(x):
    def step(c, t):
        c = c * 3.0
        return c, fnp.log(5.0 - c)

    return lax.scan(step, x, fnp.arange(6.0))[1].sum()


@pytest.mark.parametrize("around", [lambda f: f, jit, grad])
def test_loops(around):
    scan = around(scanned) if around is not grad else grad(lambda x: scanned(x) ** 2)
    finding, _ = found_by(scan, 1.0)
    assert finding.operation == "log"
    assert "in iteration 1 of 6 of the scan" in finding.context[0]
    assert "(step)" in finding.line and "-4.0" in finding.operands[0]
    assert "c = c * 3.0" in " ".join(finding.history[0])

    def loop(x):
        return lax.while_loop(
            lambda v: v[1] < 5, lambda v: (fnp.sqrt(v[0] - 1), v[1] + 1), (x, 0)
        )

    finding, _ = found_by(around(loop) if around is jit else loop, 3.0)
    assert finding.operation == "sqrt" and "in iteration 2 of the" in finding.context[0]


def test_backward_pass_of_a_loop():
    def f(xs):
        def step(c, x):
            return c + fnp.where(x > 0, fnp.sqrt(x), 0.0), None

        return lax.scan(step, 0.0, xs)[0]

    finding, _ = found_by(grad(f), fnp.array([1.0, 0.0, 2.0]))
    assert finding.backward and finding.double_where and "(step)" in finding.line


def test_branches():
    finding, _ = found_by(lambda x: lax.cond(x > 0, lambda: x / 0, lambda: x), 3.0)
    assert (finding.operation, finding.kind) == ("div", "inf")


def test_inside_scan_inside_jit_inside_pmap():
    finding, out = found_by(fxflow.pmap(jit(scanned)), fnp.array([0.001, 1.0, 0.001]))
    assert np.isnan(np.asarray(out)).tolist() == [False, True, False]
    assert finding.operation == "log" and "(step)" in finding.line
    assert "program of each device" in finding.context[0]
    assert "iteration 1 of 6" in finding.context[1]
    assert "first at [1]" in finding.text


def test_shard_map():
    mesh = fxflow.make_mesh((4,), ("data",))

    def f(x):
        return lax.psum(fnp.log(x).sum(), "data")

    mapped = fxflow.shard_map(f, mesh=mesh, in_specs=P("data"), out_specs=P())
    finding, _ = found_by(jit(mapped), fnp.array([1.0, 1.0, -1.0, 1.0]))
    assert finding.operation == "log" and "first at [2, 0]" in finding.text
    assert "along data" in finding.context[0]
    assert any("the argument x" in s for s in finding.history[0])


def test_custom_derivatives():
    @fxflow.custom_vjp
    def f(x):
        return x * 2

    f.defvjp(lambda x: (x * 2, x), lambda x, ct: (ct / (x - x),))
    finding, _ = found_by(grad(lambda x: f(x * 3)), 1.0)
    assert (finding.operation, finding.kind) == ("div", "inf")


def test_functions_that_cannot_be_traced():
    def f(x):
        if x > 0:
            return fnp.log(-x)
        return x

    with pytest.raises(FloatingPointError, match=r"log at .*test_watching"):
        debug.watch(f)(fnp.array(1.0))
    assert float(debug.watch(f)(fnp.array(-1.0))) == -1


def test_arguments_and_captured_arrays():
    finding, _ = found_by(lambda x: x * 2, fnp.array([1.0, fnp.nan]))
    assert finding.operation == "argument" and "x holds nan already" in finding.text
    bad = fnp.array([1.0, fnp.inf])
    finding, _ = found_by(lambda x: x * bad, 1.0)
    assert "captured array" in finding.text


def test_debug_callbacks_are_not_called_again(capsys):
    def f(x):
        debug.print("x is {}", x)
        return fnp.log(x)

    found_by(f, -1.0)
    assert capsys.readouterr().out == "x is -1.0\n"
    with pytest.raises(FxflowError, match="which is"):
        debug.watch(f, which="all")
    with pytest.raises(FxflowError, match="watch: f"):
        debug.watch(3)
    with pytest.raises(FxflowError, match="report"):
        debug.watch(f, report=3)


def test_static_arguments_of_a_jitted_function():
    @functools.partial(jit, static_argnums=1, static_argnames="mode")
    def f(x, n, *, mode):
        return {"log": fnp.log, "sin": fnp.sin}[mode](x) * n

    assert found_by(lambda x: f(x, 3, mode="log"), 1.0)[0] is None
    for x in (fnp.array(-1.0), -1.0):
        findings = []
        out = debug.watch(f, report=findings.append)(x, 3, mode="log")
        assert findings[0].operation == "log" and np.isnan(float(out))
    assert float(debug.watch(f)(1.0, 3, mode="log")) == 0
    with pytest.raises(FxflowError, match="static argument n"):
        debug.watch(f)(1.0, fnp.ones(2), mode="sin")


def test_constant_results():
    finding, _ = found_by(lambda x: (x, fnp.nan), 1.0)
    assert finding.operation == "constant"
    assert "a result is the constant f32[] nan" in finding.text


def test_inner_functions_are_not_checked():
    """`grad(watch(f))` cannot check anything, and says so."""
    for transform, x in ((grad, 1.0), (jit, 1.0), (fxflow.vmap, fnp.ones(2))):
        with pytest.warns(UserWarning, match="Watch the outermost function"):
            transform(debug.watch(lambda x: fnp.log(x)))(x)


def test_numbers_are_written_with_their_own_digits():
    finding, _ = found_by(lambda x: fnp.log(x), fnp.array([-0.1, 0.7]))
    assert finding.operands == ("f32[2], -0.1 to 0.7, -0.1 there",)
    finding, _ = found_by(lambda x: fnp.log(x), -0.1)
    assert finding.operands == ("f32[] -0.1",)
