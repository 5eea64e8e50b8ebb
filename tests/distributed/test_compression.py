"""Encoded sums: their errors, without and with feedback."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import P, jit, lax, make_mesh, pmap, random, shard_map, vmap
from fxflow.distributed.compression import (
    as_code,
    bf16,
    code_of_step,
    error_feedback,
    f16,
    int8,
    one_bit,
    pmean,
    psum,
)
from fxflow.errors import ArgumentError

PLACES = 4


def data(seed=0, size=37):
    rng = np.random.default_rng(seed)
    return {
        "w": rng.normal(size=(PLACES, size)).astype(np.float32),
        "b": (100 * rng.normal(size=(PLACES, 2, 3))).astype(np.float32),
        "s": rng.normal(size=PLACES).astype(np.float32),
    }


def over(function, **options):
    return vmap(function, axis_name="i", **options)


# -- codes -----------------------------------------------------------------------------


@pytest.mark.parametrize("rounding", ["nearest", "stochastic"])
@pytest.mark.parametrize(("make", "step"), [(bf16, 2**-8), (int8, 1 / 127)])
def test_rounding_errors_are_less_than_a_step(make, step, rounding):
    code = make(rounding=rounding)
    x = np.random.default_rng(1).normal(size=(5, code.block_size)).astype(np.float32)
    out = code.decode(code.encode(x, random.key(0)))
    unit = np.abs(x) if make is bf16 else np.abs(x).max(1, keepdims=True)
    bound = 1 if rounding == "stochastic" else 0.5
    assert (np.abs(out - x) <= unit * step * bound * 1.01).all()
    assert out.dtype == np.float32


@pytest.mark.parametrize("make", [bf16, int8])
def test_stochastic_rounding_has_no_bias(make):
    code = make(rounding="stochastic")
    x = np.random.default_rng(2).normal(size=(1, code.block_size)).astype(np.float32)
    rounds = 4000
    one = lambda key: code.decode(code.encode(x, key))
    outs = np.asarray(vmap(one)(random.split(random.key(3), rounds)), np.float64)
    step = np.abs(x).max() / 127 if make is int8 else np.abs(x) * 2**-7
    error = np.abs(outs.mean(0) - x)
    assert (error <= 5 * step / 2 / np.sqrt(rounds)).all()
    assert outs.std() > 0


def test_zeros_and_non_finite_numbers_survive():
    code = int8(2)
    x = np.array([[0, 0], [-3, 3], [np.inf, 1], [np.nan, 1]], np.float32)
    out = np.asarray(code.decode(code.encode(x, None)))
    np.testing.assert_array_equal(out[:2], x[:2])
    assert np.isnan(out[2:]).all()
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.5], np.float32)
    for rounding in ("nearest", "stochastic"):
        code = bf16(rounding)
        np.testing.assert_array_equal(code.decode(code.encode(x, random.key(0))), x)


# -- sums ------------------------------------------------------------------------------


@pytest.mark.parametrize("code", ["bf16", "int8", int8(16), int8(8, "stochastic")])
def test_sums_are_close_and_equal_on_all_devices(code):
    x = data()
    key = random.key(0)
    got = over(lambda v: psum(v, "i", code, key=key))(x)
    mean = over(lambda v: pmean(v, "i", code, key=key))(x)
    for name, value in x.items():
        out = np.asarray(got[name])
        assert out.shape == value.shape and out.dtype == value.dtype
        assert (out == out[:1]).all()
        # Each device rounds once, and the sum is rounded once more.
        slack = (np.abs(value).max() * PLACES + np.abs(value.sum(0)).max()) / 100
        np.testing.assert_allclose(out[0], value.sum(0), atol=slack)
        np.testing.assert_allclose(mean[name][0], value.mean(0), atol=slack / PLACES)


def test_pmap_and_shard_map_agree_with_vmap():
    """`pmap` and `shard_map` sum over one axis or two as `vmap` does."""
    x = data()
    expected = over(lambda v: psum(v, "i"))(x)
    apply = lambda v: psum(v, "i")
    same = lambda a, b: fxflow.tree.map(
        lambda p, q: np.testing.assert_allclose(p, q, rtol=1e-6), a, b
    )
    same(pmap(apply, axis_name="i")(x), expected)
    mesh = make_mesh((2, 2), ("a", "b"))
    summed = shard_map(
        lambda v: psum(fxflow.tree.map(lambda leaf: leaf[0], v), ("a", "b")),
        mesh=mesh,
        in_specs=P(("a", "b")),
        out_specs=P(),
    )
    same(summed(x), fxflow.tree.map(lambda v: v[0], expected))


def test_fewer_bits_are_exchanged():
    mesh = make_mesh((PLACES,), ("i",))
    x = np.zeros((PLACES, 4096), np.float32)

    def text(function):
        whole = shard_map(
            lambda v: function(v[0]), mesh=mesh, in_specs=P("i"), out_specs=P()
        )
        return jit(whole).trace(x).lower().as_text()

    coded = text(lambda v: psum(v, "i", "int8"))
    assert "all_reduce" not in coded
    exchanged = [line for line in coded.splitlines() if '"stablehlo.all_' in line]
    assert len(exchanged) == 4
    # Only the scales, one for 256 numbers, have 32 bits.
    assert sum("xi8>" in line for line in exchanged) == 2
    assert all("xf32>" not in line or "x1xf32>" in line for line in exchanged)
    assert "xbf16>" in text(lambda v: psum(v, "i", "bf16"))


def test_arrays_that_are_not_encoded_are_summed_exactly():
    x = {"n": np.arange(4), "c": np.arange(4) * 1j, "e": np.zeros((4, 0), np.float32)}
    got = over(lambda v: psum(v, "i"))(x)
    assert got["n"].tolist() == [6] * 4 and got["c"].tolist() == [6j] * 4
    assert got["e"].shape == (4, 0)
    half = over(lambda v: psum(v, "i", "bf16"))(fnp.ones((4, 3), "float16"))
    assert half.dtype == np.float16 and half.tolist() == [[4.0] * 3] * 4


# -- feedback --------------------------------------------------------------------------


@pytest.mark.parametrize("code", [int8(16), "bf16"])
def test_errors_do_not_accumulate_with_feedback(code):
    """The total of many encoded results has the error of a single call."""
    steps = 50
    feedback = error_feedback("i", code)
    values = [data(seed, 20)["w"] + np.float32(0.3) for seed in range(steps)]

    def run(stream):
        def step(residuals, x):
            out, residuals = feedback.apply(x, residuals)
            return residuals, (out, psum(x, "i", code), lax.psum(x, "i"))

        _, outs = lax.scan(step, feedback.init(stream[0]), stream)
        return outs

    with_it, without, exact = over(run, in_axes=1)(np.stack(values))
    error = np.abs((with_it - exact).sum(1)).max()
    blind = np.abs((without - exact).sum(1)).max()
    one = np.abs(np.asarray(without - exact)).max()
    assert error < 3 * one
    assert blind > 2 * error


def test_training_with_feedback_converges():
    """Without feedback, small gradients next to a large one would always round to 0."""
    target = np.array([1000.0] + [0.5] * 7, np.float32)
    pull = np.random.default_rng(0).normal(size=(PLACES, 8)).astype(np.float32)
    pull -= pull.mean(0)
    pull[:, 0] *= 300
    feedback = error_feedback("i", int8(8), mean=True)

    def train(offset, fed):
        def step(carry, _):
            w, residuals = carry
            gradient = w - target + offset
            if fed:
                mean, residuals = feedback.apply(gradient, residuals)
            else:
                mean = pmean(gradient, "i", int8(8))
            return (w - 0.1 * mean, residuals), None

        w = fnp.zeros(8)
        (w, _), _ = lax.scan(step, (w, feedback.init(w)), None, length=300)
        return w

    fed = over(lambda p: train(p, True))(pull)[0]
    blind = over(lambda p: train(p, False))(pull)[0]
    assert np.abs(fed - target).max() < 0.3
    assert np.abs(blind - target).max() > np.abs(fed - target).max()


def test_residuals_leave_and_enter_shard_map_along_the_axis():
    """Each device gets its own residuals back."""
    mesh = make_mesh((PLACES,), ("i",))
    feedback = error_feedback("i", int8(8), axis_size=PLACES)
    x = data()["w"]
    start = feedback.init(x[0])
    start = fxflow.tree.map(lambda v: fnp.stack([v] * PLACES), start)

    def one(v, residuals):
        own = fxflow.tree.map(lambda r: r[0], residuals)
        out, own = feedback.apply(v[0], own)
        return out, fxflow.tree.map(lambda r: r[None], own)

    step = jit(
        shard_map(one, mesh=mesh, in_specs=(P("i"), P("i")), out_specs=(P(), P("i")))
    )
    total = np.zeros(x.shape[1], np.float32)
    residuals = start
    for _ in range(20):
        out, residuals = step(x, residuals)
        total += out
    bound = 2 * np.abs(x).max() * PLACES / 127
    np.testing.assert_allclose(total, 20 * x.sum(0), atol=bound)


def test_a_nonfinite_gradient_does_not_stay_in_the_residuals():
    feedback = error_feedback("i", int8(8))

    def run(x):
        bad = fnp.where(fnp.arange(8) == 0, fnp.nan, x)
        first, residuals = feedback.apply(bad, feedback.init(x))
        second, _ = feedback.apply(x, residuals)
        return first, second

    first, second = over(run)(np.ones((PLACES, 8), np.float32))
    assert np.isnan(first).all()
    np.testing.assert_allclose(second, 4 * np.ones((PLACES, 8)), rtol=1e-5)


# -- errors ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda x: psum(x, "i", "int4"),
            ArgumentError,
            "'bf16', 'f16', 'int8', 'one_bit' or a Code",
        ),
        (lambda x: psum(x, "i", int8(rounding="stochastic")), ArgumentError, "key="),
        (lambda x: psum(x, "j"), NameError, "unbound axis name 'j'"),
        (lambda x: int8(0), ArgumentError, "block_size must be at least 1"),
        (lambda x: bf16("up"), ArgumentError, "'nearest' or 'stochastic'"),
        (
            lambda x: error_feedback("i").apply(x, error_feedback("i").init(x[:1])),
            TypeError,
            "residuals are",
        ),
        (lambda x: error_feedback("i").init(1), TypeError, "x has no real"),
    ],
)
def test_unknown_codes_axes_and_wrong_residuals_are_refused(call, error, words):
    with pytest.raises(error, match=words):
        over(call)(np.ones((4, 2000), np.float32))


def test_finite_numbers_stay_finite():
    x = fnp.array([3.4e38, -3.4e38, 7e4, np.inf, np.nan])
    for code in (bf16(), f16()):
        found = np.asarray(code.decode(code.encode(x, None)))
        assert np.isfinite(found[:3]).all()
        assert np.isposinf(found[3])
        assert np.isnan(found[4])


def test_one_bit_keeps_the_sum_of_each_sign():
    x = data(size=64)["w"][0].reshape(2, 32)
    bits, means = one_bit(32).encode(x, None)
    assert (bits.shape, bits.dtype, means.shape) == ((2, 4), np.uint8, (2, 2))
    found = np.asarray(one_bit(32).decode((bits, means)))
    # Each sign keeps its sum.
    for upper in (True, False):
        those = (x >= 0) == upper
        sums = [np.where(those, v, 0).sum(-1) for v in (found, x)]
        np.testing.assert_allclose(*sums, rtol=1e-5)


def test_codes_are_found_by_name():
    code = int8(4)
    assert as_code(code) is code
    assert as_code("int8").block_size == 256


def test_a_step_accepts_only_codes_without_a_key():
    assert code_of_step("f: code", "f32") is None
    assert code_of_step("f: code", "one_bit").name == one_bit().name
    with pytest.raises(ArgumentError, match=r"f: code must be 'f32', .* got 'f8'"):
        code_of_step("f: code", "f8")
    with pytest.raises(ArgumentError, match="f: code: stochastic rounding needs a"):
        code_of_step("f: code", bf16("stochastic"))
