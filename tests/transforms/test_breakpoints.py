"""`debug.breakpoint`: prompts in programs."""

from __future__ import annotations

import bdb
import io
import os
import pty
import select
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import debug, grad, jit, lax, vmap
from fxflow.errors import DtypeError, FxflowError, ShapeError
from fxflow.sharding import PartitionSpec as P


def lines(commands):
    return io.StringIO(commands.replace("; ", "\n") + "\n")


def printed_by(function):
    """Calls `function(out)`; returns its result and what was printed."""
    out = io.StringIO()
    return function(out), out.getvalue().replace("(fxflow) ", "")


def loss(out, params, x):
    hidden = {"a": x * params["w"], "n": 3}
    commands = "p x; hidden['a'].sum(); w; up; p p; down; down; z = x[0] * 2; z; c"
    debug.breakpoint(stdin=lines(commands), stdout=out)
    return fnp.sum(hidden["a"])


@pytest.mark.parametrize("transform", [lambda f: f, jit, grad, lambda f: jit(grad(f))])
def test_values_by_the_users_names(transform):
    params = {"w": fnp.arange(3.0)}

    def program(out):
        return transform(lambda p: loss(out, p, fnp.full(3, 10.0)))(params)

    _, text = printed_by(program)
    assert "f32[3] [10. 10. 10.]" in text and "f32[] 30." in text
    assert "'w': array([0., 1., 2.]" in text and "f32[] 20." in text
    assert text.count("test_breakpoints.py") > 5 and "(loss)" in text
    assert "*** This is the innermost frame" in text


def test_values_are_those_of_each_call():
    out = io.StringIO()

    @jit
    def f(x):
        y = x + 1
        debug.breakpoint(stdin=io.StringIO("y\nc\ny\nc\n"), stdout=out)
        return y

    f(1.0), f(5.0)
    assert "f32[] 2." in out.getvalue() and "f32[] 6." in out.getvalue()


def test_condition_and_elements():
    def program(out):
        def f(x):
            y = x * 2
            debug.breakpoint(stdin=lines("y; c; y; c"), stdout=out, when=y > 3)
            return y

        return jit(vmap(vmap(f)))(fnp.arange(4.0).reshape(2, 2))

    result, text = printed_by(program)
    assert np.asarray(result).tolist() == [[0, 2], [4, 6]]
    assert text.count("Stopped") == 2
    assert "[element 1, 0 of vmap]" in text and "[element 1, 1 of vmap]" in text
    assert "f32[] 4." in text and "f32[] 6." in text


def batched(f):
    return lambda xs: vmap(jit(f))(xs[None])


@pytest.mark.parametrize("around", [jit, grad, lambda f: f, batched])
def test_loops_show_what_is_around_them(around):
    def program(out):
        def outer(xs):
            total = xs.sum()

            def step(c, x):
                c = c + x
                debug.breakpoint(
                    stdin=lines("p c; up; total; c; off"), stdout=out, when=c > 2
                )
                return c, c

            return lax.scan(step, 0.0, xs)[0] + 0 * total

        return around(outer)(fnp.ones(5))

    text = printed_by(program)[1]
    assert text.count("Stopped") == 2
    assert "f32[] 3." in text and "f32[] 5." in text


def test_while_and_branches_under_vmap():
    def program(out):
        def body(v):
            doubled = v * 2
            debug.breakpoint(stdin=lines("v; c; " * 4), stdout=out, when=doubled > 10)
            return doubled

        return vmap(lambda x: lax.while_loop(lambda v: v < 20, body, x))(
            fnp.array([1.0, 9.0])
        )

    result, text = printed_by(program)
    assert np.asarray(result).tolist() == [32, 36]
    assert text.count("Stopped") == 4 and "f32[] 9." in text

    def branches(out):
        def yes(x):
            debug.breakpoint(stdin=lines("x; c"), stdout=out)
            return x

        return vmap(lambda x: lax.cond(x > 1, yes, lambda x: x, x))(
            fnp.array([1.0, 9.0])
        )

    text = printed_by(branches)[1]
    assert text.count("Stopped") == 1 and "element 1 of vmap" in text


def test_devices():
    mesh = fxflow.make_mesh((4,), ("data",))

    def program(out):
        def f(x):
            s = lax.psum(x.sum(), "data")
            debug.breakpoint(stdin=lines("x; c; " * 4), stdout=out, when=x[0] > 3)
            return x * s

        mapped = fxflow.shard_map(f, mesh=mesh, in_specs=P("data"), out_specs=P("data"))
        return jit(mapped)(fnp.arange(8.0))

    result, text = printed_by(program)
    assert np.asarray(result)[-1] == 196
    assert text.count("Stopped") == 2
    assert "device data = 2" in text and "f32[2] [6. 7.]" in text
    text = printed_by(
        lambda out: fxflow.pmap(
            lambda x: debug.breakpoint(stdin=lines("x; c; " * 2), stdout=out)
        )(fnp.ones(2))
    )[1]
    assert text.count("Stopped") == 2


def test_rules_and_jitted_callers():
    out = io.StringIO()

    @fxflow.custom_vjp
    def f(x):
        return x

    def backward(x, ct):
        debug.breakpoint(stdin=lines("ct\nx\n"), stdout=out)
        return (ct * x,)

    f.defvjp(lambda x: (x, x), backward)
    assert float(jit(grad(lambda x: f(x * 2)))(3.0)) == 12
    assert "f32[] 6." in out.getvalue()

    inner = jit(lambda x: debug.breakpoint(stdin=lines("up\nz\n"), stdout=out) or x)
    assert float(grad(lambda z: inner(z))(2.0)) == 1
    assert "arrays are those of that time" in out.getvalue()
    assert "Traced<f32[]~>" in out.getvalue()

    def outer(z):
        y = z * 7
        return inner(y) + fnp.sum(y)

    jit(outer)(1.0)
    assert float(jit(outer)(fnp.ones(()))) == 14


def test_rules_with_tangents():
    """`grad` computes no tangents: a breakpoint in a rule stops all the same."""

    def stops(when, transform, x=0.5):
        out = io.StringIO()

        @fxflow.custom_jvp
        def f(x):
            return fnp.sin(x)

        @f.defjvp
        def rule(primals, tangents):
            (x,), (t,) = primals, tangents
            flag = None if when is None else x > when
            debug.breakpoint(when=flag, stdin=lines("x; t; c; " * 4), stdout=out)
            return fnp.sin(x), fnp.cos(x) * t

        slope = transform(f)(x)
        np.testing.assert_allclose(slope, np.cos(np.asarray(x)), rtol=1e-6)
        return out.getvalue()

    of_all = [0.2, 0.5]
    for when in (None, 0.4):
        for transform in (grad, lambda f: jit(grad(f))):
            text = stops(when, transform)
            assert text.count("Stopped") == 1 and "f32[] 0.5" in text
            assert "f32[], a tangent: grad does not compute it" in text
        for transform in (
            lambda f: vmap(grad(f)),
            lambda f: grad(lambda x: fnp.sum(vmap(f)(x))),
        ):
            text = stops(when, transform, fnp.array(of_all))
            assert text.count("Stopped") == (2 if when is None else 1)
            assert "f32[] 0.5" in text and "f32[], a tangent" in text
        assert "Stopped" not in stops(0.9, grad)
    forward = stops(0.4, lambda f: lambda x: fxflow.jvp(f, (x,), (2.0,))[1] / 2)
    assert "f32[] 2." in forward


def test_few_frames_keep_few_arrays():
    def look(x):
        debug.breakpoint(num_frames=1, stdin=lines("a; up"), stdout=out)

    def f(x):
        large = fnp.ones((1000,)) * x
        look(x)
        return x + large[0]

    out = io.StringIO()
    assert "f32[1000]" not in str(fxflow.make_graph(f)(1.0)).splitlines()[-2]
    f(1.0)
    assert "outermost frame" in out.getvalue()


def test_ends(capsys):
    with pytest.raises(bdb.BdbQuit, match="test_breakpoints"):
        printed_by(
            lambda out: jit(
                lambda x: debug.breakpoint(stdin=lines("q"), stdout=out) or x
            )(1.0)
        )
    # The end of the input goes on; the prompt prints errors.
    assert (
        "*** NameError"
        in printed_by(lambda out: debug.breakpoint(stdin=lines("unknown"), stdout=out))[
            1
        ]
    )
    # Without a terminal it prints the frame, and goes on.
    assert float(jit(lambda x: debug.breakpoint() or x * 2)(1.0)) == 2
    printed = capsys.readouterr().out
    assert "x = f32[] 1." in printed and "no terminal" in printed


def test_source_and_other_commands():
    def program(out):
        words = "text"  # a comment to list
        debug.breakpoint(
            stdin=lines("l; a; words; where; bt; p 1 + ; help; pp words"), stdout=out
        )
        return words

    text = printed_by(program)[1]
    assert "# a comment to list" in text and "words = 'text'" in text
    assert "*** SyntaxError" in text


def test_names_of_commands():
    """Prints go to the prompt; steps are refused in words; `h` may be a variable."""

    def program(out, h=2.5):
        debug.breakpoint(stdin=lines("n; print(h * 2); h; h p; step"), stdout=out)

    text = printed_by(program)[1]
    assert text.count("c goes on to the next breakpoint") == 2
    assert "5.0\n2.5\n" in text and "prints its value" in text
    out = io.StringIO()
    debug.breakpoint(stdin=lines("h; n = 3; n; c"), stdout=out)
    assert "Documented commands" in out.getvalue() and "3" in out.getvalue()


def test_order():
    out = io.StringIO()

    def f(xs):
        def step(c, x):
            debug.breakpoint(stdin=io.StringIO("x\nc\n" * 3), stdout=out, ordered=True)
            return c, None

        return lax.scan(step, 0.0, xs)

    jit(f)(fnp.arange(3.0))
    shown = [w for w in out.getvalue().split() if w in ("0.", "1.", "2.")]
    assert shown == ["0.", "1.", "2."]
    with pytest.raises(FxflowError, match="no order"):
        vmap(f)(fnp.ones((2, 3)))


def test_wrong_arguments():
    with pytest.raises(ShapeError, match=r"fnp.any"):
        debug.breakpoint(when=fnp.ones(2) > 0)
    with pytest.raises(DtypeError, match=r"bool\[\], got f32\[\]"):
        debug.breakpoint(when=fnp.ones(()))
    with pytest.raises(FxflowError, match="num_frames"):
        debug.breakpoint(num_frames=0)
    with pytest.raises(FxflowError, match="when is"):
        debug.breakpoint(when="x")
    with pytest.raises(FxflowError, match=r"stdin is an open text file.* got 'c'"):
        debug.breakpoint(stdin="c")
    with pytest.raises(FxflowError, match=r"stdout is an open text file.* got 'x.txt'"):
        debug.breakpoint(stdin=io.StringIO("c"), stdout="x.txt")


@pytest.mark.slow
def test_terminal():
    program = textwrap.dedent(
        """
        import fxflow, fxflow.numpy as fnp
        def f(x):
            y = x * 3
            fxflow.debug.breakpoint()
            return y
        print("result", float(fxflow.jit(f)(2.0)))
        """
    )
    ours, theirs = pty.openpty()  # both stay open, so that nothing written is lost
    text, answered = b"", 0
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        try:
            while b"result 6.0" not in text:
                assert select.select([ours], [], [], 120)[0], text
                text += os.read(ours, 4096)
                if answered < text.count(b"(fxflow) "):
                    os.write(ours, [b"p y + 1\n", b"c\n"][answered])
                    answered += 1
            assert process.wait(60) == 0, text
        finally:
            process.kill()
    os.close(ours)
    os.close(theirs)
    assert b"f32[] 7." in text
