"""Copies of arguments, found in what XLA made of small programs, and in text."""

import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import lax
from fxflow.transforms.copies import ArgumentCopy, argument_copies

X = np.zeros((64, 8), np.float32)
I = np.arange(3)  # noqa: E741


def copies(f, *args, donate=()):
    return fxflow.jit(f, donate_argnums=donate).lower(*args).compile().copies()


def test_what_may_not_be_changed_is_copied():
    def f(x):
        return x.at[1].set(2.0)

    assert copies(f, X) == [ArgumentCopy("x", X.nbytes, False, False)]
    assert copies(f, X, donate=0) == []


def test_new_values_do_not_count_as_copies():
    assert copies(lambda x: (x + 1.0, fnp.sin(x) * 2), X) == []
    assert copies(lambda x: x[:3], X) == []


def test_scatters_one_after_the_other():
    def f(x, i, j):
        a, b = x[i], x[j]
        return x.at[i].add(fnp.tanh(b)).at[j].add(fnp.tanh(a))

    x = np.zeros((5000, 8), np.float32)
    with fxflow.config.override(passes="none"):
        found = copies(f, x, I, I, donate=0)
    assert found and {c.label for c in found} == {"x"} and found[0].donated
    assert copies(f, x, I, I, donate=0) == []


def test_loops():
    def f(x, w):
        def body(c, _):
            return c.at[0].add(fnp.sum(c @ w)), c[0]

        return lax.scan(body, x, length=5)

    w = np.ones((8, 8), np.float32)
    found = copies(f, X, w)
    assert {c.label for c in found} == {"x"}
    assert {c.in_loop for c in found} == {False, True}


def test_captured_values():
    captured = fnp.ones(5000)  # a small one is a part of the program
    (found,) = copies(lambda v: captured.at[0].set(v), np.float32(3))
    assert found == ArgumentCopy("", 20000, False, False)


def test_a_reference_copies_its_first_value():
    def f(x):
        ref = fxflow.new_ref(x)
        ref[0] = x[1] * 2
        return ref[...]

    assert [c.label for c in copies(f, X)] == ["x"]


TEXT = """\
HloModule m, is_scheduled=true

%fused (p.1: f32[4], p.2: f32[1]) -> f32[4] {
  %p.1 = f32[4]{0} parameter(0)
  %p.2 = f32[1]{0} parameter(1)
  %zero = s32[] constant(0)
  ROOT %put = f32[4]{0} dynamic-update-slice(%p.1, %p.2, %zero)
}

%moved (p.3: f32[2,2]) -> f32[2,2] {
  %p.3 = f32[2,2]{1,0} parameter(0)
  ROOT %other = f32[2,2]{0,1} copy(%p.3)
}

ENTRY %main (a: f32[4], b: f32[2,2], c: f32[1]) -> (f32[4], f32[2,2]) {
  %a = f32[4]{0} parameter(0)
  %b = f32[2,2]{1,0:T(8,128)} parameter(1)
  %c = f32[1]{0} parameter(2)
  %written = f32[4]{0} fusion(%a, %c), kind=kLoop, calls=%fused
  %copy = f32[4]{0} copy(%written), metadata={op_name="a(b)"}
  %flipped = f32[2,2]{0,1} fusion(%b), kind=kLoop, calls=%moved
  %small = f32[1]{0} slice(%a), slice={[0:1]}
  %copy.1 = f32[1]{0} copy(%small)
  %sum = f32[4]{0} add(%a, %a)
  %copy.2 = f32[4]{0} copy(%sum)
  ROOT %out = (f32[4]{0}, f32[2,2]{0,1}) tuple(%copy, %flipped)
}
"""


def test_copies_of_arguments_are_found_in_text():
    # The slice, and the sum, are other values than the arguments.
    assert argument_copies(TEXT) == [(0, False), (1, False)]
    assert argument_copies("") == []
