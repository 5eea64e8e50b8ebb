"""Sending and receiving across a named axis."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, pmap, vmap

RING = [(i, (i + 1) % 4) for i in range(4)]
X = np.arange(12, dtype=np.float32).reshape(4, 3)


def exchange(x):
    token = lax.psend({"a": x, "b": x > 5}, "i", RING)
    work = fnp.sin(x)
    got = lax.precv(token, fxflow.eval_shape(lambda: {"a": x, "b": x > 5}), "i", RING)
    return got, work


@pytest.mark.parametrize("over", [vmap, pmap])
def test_what_is_sent_is_received(over):
    got, work = over(exchange, axis_name="i")(X)
    np.testing.assert_array_equal(got["a"], np.roll(X, 1, 0))
    np.testing.assert_array_equal(got["b"], np.roll(X > 5, 1, 0))
    np.testing.assert_allclose(work, np.sin(X), rtol=1e-6)


def test_two_on_their_way():
    """As for a ring in two pieces, neither of which has a cycle."""

    def run(x):
        first = lax.psend(x, "i", RING[:3])
        second = lax.psend(x, "i", RING[3:])
        return lax.precv(second, x, "i", RING[3:]) + lax.precv(first, x, "i", RING[:3])

    np.testing.assert_array_equal(vmap(run, axis_name="i")(X), np.roll(X, 1, 0))


def test_the_token_goes_through_a_loop():
    def run(x):
        def step(token, _):
            return lax.psend(lax.precv(token, x, "i", RING), "i", RING), None

        token, _ = lax.scan(step, lax.psend(x, "i", RING), None, length=2)
        return lax.precv(token, x, "i", RING)

    np.testing.assert_array_equal(vmap(run, axis_name="i")(X), np.roll(X, 3, 0))


def test_token_is_shown():
    seen = []
    vmap(lambda x: seen.append(repr(lax.psend(x, "i", RING))) or x, axis_name="i")(X)
    assert "sent over 'i'" in seen[0]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x, t: lax.precv(x, x, "i", RING), TypeError, "token of a psend"),
        (lambda x, t: lax.precv(t, x, "i", RING[:2]), TypeError, "cannot take what"),
        (lambda x, t: lax.precv(t, x[:2], "i", RING), TypeError, r"f32\[3\] was sent"),
        (lambda x, t: lax.precv(t, x, "j", RING), NameError, "unbound axis name 'j'"),
        (lambda x, t: lax.psend(x, "i", [1, 2]), TypeError, "list of pairs"),
        (lambda x, t: lax.psend(x, "i", [(0, 9)]), TypeError, "targets"),
    ],
)
def test_invalid_tokens_types_and_pairs_are_refused(call, error, words):
    with pytest.raises(error, match=words):
        vmap(lambda x: call(x, lax.psend(x, "i", RING)), axis_name="i")(X)
