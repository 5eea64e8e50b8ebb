import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import errors, export, lax
from tests.export.onnx_rules.checks import check, kinds

X = fnp.arange(6.0).reshape(3, 2)


@pytest.mark.parametrize("reverse", [False, True])
def test_scan(reverse):
    def f(x, w):
        def step(carry, row):
            carry = fnp.tanh(carry @ w + row)
            return carry, (carry * 2, row.sum())

        return lax.scan(step, fnp.zeros(2), x, reverse=reverse)

    made = check(f, X, fnp.eye(2))
    assert kinds(made)["Scan"] == 1


def test_loops_and_empty_scans_agree():
    def f(x):
        counted = lax.fori_loop(0, 5, lambda i, c: c + i * x, x)
        until = lax.while_loop(
            lambda c: c[1].sum() < 90, lambda c: (c[0] + 1, c[1] * 2), (0, x)
        )
        none, empty = lax.scan(lambda c, r: (c, r), x, fnp.zeros((0, 3)))
        last, _ = lax.scan(lambda c, _: (c + 1, None), x, None, length=3)
        return counted, until, none, empty, last

    assert kinds(check(f, X))["Loop"] == 1


def test_branches_agree_with_the_function():
    def f(i, x):
        two = lax.cond(i > 1, lambda x: x + 1, lambda x: -x, x)
        three = lax.switch(i, [lambda x: x, lambda x: x * 2, lambda _: X], x)
        return two, three

    for i in (-1, 0, 1, 2, 5):
        made = check(f, i, X)
    assert kinds(made)["If"] == 2


def test_loops_within_branches_and_calls():
    @fxflow.jit
    def inner(x):
        def step(_, c):
            return lax.cond(c.sum() > 9, fnp.sin, fnp.cos, c)

        return lax.fori_loop(0, 3, step, x)

    check(fxflow.checkpoint(lambda x: inner(x) + fxflow.vmap(inner)(x)), X)


def test_custom_derivatives_are_left_out():
    @fxflow.custom_jvp
    def f(x):
        return fnp.sin(x)

    f.defjvp(lambda xs, ts: (f(xs[0]), 7 * ts[0]))
    check(lambda x: (f(x), fxflow.grad(lambda x: f(x).sum())(x)), X)


def test_the_branch_for_the_cpu_is_exported():
    def f(x):
        return lax.platform_dependent(x, cpu=lambda x: x + 1, default=lambda x: 1 + x)

    check(f, X)
    with pytest.raises(errors.ExportError, match="has branches only for tpu"):
        export.onnx(
            fxflow.jit(lambda x: lax.platform_dependent(x, tpu=fnp.sin)).trace(X)
        )
