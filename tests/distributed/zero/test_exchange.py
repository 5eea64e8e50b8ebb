"""Gradients are summed over devices, and a code's errors are fed back."""

import re

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import P
from fxflow.distributed import compression
from fxflow.distributed.compression import code_of_step
from fxflow.distributed.zero import exchange
from fxflow.distributed.zero.shards import ShardAxis

COUNT = 4
AXIS = ShardAxis("s", COUNT)
RNG = np.random.default_rng(0)
# Each row is a device's gradient.
GIVEN = RNG.standard_normal((COUNT, 3, 5)).astype(np.float32)


def pushed(name: str, given: np.ndarray, rounds: int = 1):
    """Returns the sum of each round, and the program's text."""
    code = code_of_step("exchange", name)
    mesh = fxflow.make_mesh((COUNT,), ("s",))

    def local(mine):
        (mine,) = mine
        kept = [None]
        if exchange.is_coded(mine.aval, code):
            kept = [exchange.no_residual(AXIS, mine.aval)]
        sums = []
        for _ in range(rounds):
            (total,), kept = exchange.push(AXIS, code, [mine], kept)
            sums.append(AXIS.whole(total))
        return fnp.stack(sums)

    mapped = fxflow.jit(
        fxflow.shard_map(local, mesh=mesh, in_specs=P("s"), out_specs=P(), check=False)
    )
    return mapped(given), mapped


@pytest.mark.parametrize(
    ("name", "error"), [("f32", 1e-6), ("bf16", 2**-8), ("int8", 1 / 127)]
)
def test_sums_are_within_the_codes_error(name: str, error: float) -> None:
    (found,), _ = pushed(name, GIVEN)
    # Each device's error is at most half a step of its own scale.
    bound = COUNT * error * np.abs(GIVEN).max()
    np.testing.assert_allclose(found, GIVEN.sum(0), atol=bound)
    assert found.dtype == np.float32


def test_errors_are_added_to_the_next_gradient() -> None:
    """The total of 8 equal gradients is as accurate as one of them."""
    exact = GIVEN.sum(0)
    sums, _ = pushed("int8", GIVEN, rounds=8)
    one_off = np.abs(np.asarray(sums[0]) - exact).max()
    all_off = np.abs(np.asarray(sums).sum(0) - 8 * exact).max()
    assert one_off > 0
    assert all_off < 3 * one_off  # without feedback 8 times


def test_zeros_and_nonfinite_numbers_are_summed() -> None:
    assert not np.any(pushed("int8", np.zeros_like(GIVEN))[0])
    bad = GIVEN.copy()
    bad[1, 0, 0] = np.inf
    found, _ = pushed("int8", bad, rounds=1)
    assert not np.isfinite(np.asarray(found)).all()

    def residual(g):
        kept = [exchange.no_residual(AXIS, g.aval)]
        (_,), (rest,) = exchange.push(AXIS, code_of_step("exchange", "int8"), [g], kept)
        return rest.flat

    mesh = fxflow.make_mesh((COUNT,), ("s",))
    rest = fxflow.shard_map(
        lambda g: residual(g[0]), mesh=mesh, in_specs=P("s"), out_specs=P("s")
    )(bad)
    assert np.isfinite(np.asarray(rest)).all()


def test_narrow_gradients_are_summed_in_32_bits() -> None:
    # 256 + 1 + 1 + 1 is 259 in f32, but 256 if each sum is rounded to bf16.
    given = np.array([256, 1, 1, 1], np.float32).reshape(4, 1)
    (found,), _ = pushed("f32", np.asarray(fnp.asarray(given, fnp.bfloat16)))
    assert found.tolist() == [259.0]


def test_integers_and_complex_numbers_are_not_encoded() -> None:
    code = code_of_step("exchange", "int8")
    assert exchange.is_coded(fxflow.typeof(fnp.zeros(2)), code)
    assert not exchange.is_coded(fxflow.typeof(fnp.zeros(2, fnp.complex64)), code)
    assert not exchange.is_coded(fxflow.typeof(fnp.zeros(2)), None)
    given = (GIVEN + 1j * GIVEN).astype(np.complex64)
    (found,), _ = pushed("int8", given)
    np.testing.assert_allclose(found, given.sum(0), rtol=1e-5)


def test_bytes_travel_as_int8() -> None:
    text = pushed("int8", GIVEN)[1].lower(GIVEN).compile().as_text()
    sent = re.findall(r"s8\[[\d,]*\]\S* all-to-all\(", text)
    tuples = re.findall(r"\(s8\[[^)]*\)\S* all-to-all\(", text)
    assert sent or tuples


def test_blocks_have_their_own_scales() -> None:
    """Small gradients do not vanish next to large ones; a user's `Code` is accepted."""
    given = np.ones((COUNT, 3, 5), np.float32)
    given[:, 0] = 1e4
    (found,), _ = pushed(compression.int8(1), given)
    np.testing.assert_allclose(found, given.sum(0), rtol=1e-5)
