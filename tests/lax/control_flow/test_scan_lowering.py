"""The text of a scan: one loop, in place, counted in as few bits as will do."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from fxflow import jit, lax

XS = np.arange(6.0, dtype=np.float32)


def text(**options):
    body = lambda c, x: (lax.add(c, lax.sin(x)), lax.mul(c, x))
    run = jit(lambda xs: lax.scan(body, 0.0, xs, **options))
    return run.lower(XS).as_text()


def test_one_loop_with_the_body_in_place():
    found = text()
    assert found.count("stablehlo.while") == 1
    assert found.count("stablehlo.sine") == 1
    assert "func.call" not in found
    assert found.count("stablehlo.dynamic_update_slice") == 1
    assert "i64>" not in found.replace("array<i64", "")


@pytest.mark.parametrize(("unroll", "calls"), [(2, 2), (4, 6), (True, 6)])
def test_unrolled_bodies_are_calls_of_one_function(unroll, calls):
    found = text(unroll=unroll)
    assert found.count("func.call") == calls
    assert found.count("stablehlo.sine") == 1
    assert found.count("stablehlo.while") == (1 if unroll == 2 else 0)


def test_remainder_follows_the_loop():
    found = text(unroll=3)
    assert found.count("func.call") == 3
    body = lambda c, x: (lax.add(c, x), lax.mul(c, x))
    xs = np.arange(7.0, dtype=np.float32)
    for reverse in (False, True):
        run = functools.partial(lax.scan, body, 0.0, reverse=reverse)
        plain, rolled = jit(run)(xs), jit(functools.partial(run, unroll=3))(xs)
        assert float(plain[0]) == float(rolled[0])
        assert plain[1].tolist() == rolled[1].tolist()
