"""Sharded arrays: cutting, gathering and padding; sums of gradients."""

import re

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import P
from fxflow.distributed import compression
from fxflow.distributed.compression import code_of_step
from fxflow.distributed.zero.shards import (
    ShardAxis,
    Sharded,
    by_dtype,
    initial_residual,
    is_coded,
    is_sharded,
    split,
    sum_gradients,
    type_of,
)

COUNT = 4
AXIS = ShardAxis("s", COUNT)


WHOLE = P()


def on_all(function, *args, out_specs=WHOLE):
    """Runs a function on 4 devices with replicated arguments."""
    mesh = fxflow.make_mesh((COUNT,), ("s",))
    return fxflow.shard_map(
        function, mesh=mesh, in_specs=P(), out_specs=out_specs, check=False
    )(*args)


def test_cut_and_gather_are_inverse() -> None:
    arrays = {
        "padded": fnp.arange(15.0).reshape(3, 5),
        "even": fnp.arange(8, dtype=fnp.int32),
        "short": fnp.arange(2.0),
    }

    def there_and_back(arrays):
        cut = {name: AXIS.cut(x) for name, x in arrays.items()}
        whole = AXIS.gather(list(cut.values()))
        return cut, dict(zip(cut, whole, strict=True))

    cut, whole = on_all(there_and_back, arrays, out_specs=(P("s"), P()))
    assert cut["padded"].flat.tolist() == [*range(15), 0]
    assert cut["short"].flat.tolist() == [0, 1, 0, 0]
    assert cut["even"].flat.dtype == np.int32
    for name, x in arrays.items():
        assert whole[name].shape == x.shape
        assert np.array_equal(whole[name], x), name


def test_filled_replaces_only_the_padding() -> None:
    def fill(x):
        return AXIS.filled(AXIS.cut(x), 7.0)

    found = on_all(fill, fnp.zeros(6), out_specs=P("s"))
    assert found.tolist() == [0, 0, 0, 0, 0, 0, 7, 7]
    assert on_all(fill, fnp.zeros(4), out_specs=P("s")).tolist() == [0] * 4


def test_scalars_keys_and_empty_arrays_are_not_sharded() -> None:
    assert AXIS.shards(type_of(fnp.zeros(1)))
    assert not AXIS.shards(type_of(fnp.zeros((0, 3))))
    assert not AXIS.shards(type_of(fnp.zeros(())))
    assert not AXIS.shards(type_of(fxflow.random.split(fxflow.random.key(0))))


def test_sharded_is_a_pytree_with_the_unsharded_type() -> None:
    x = Sharded(fnp.zeros(16), (3, 5))
    assert fxflow.tree.leaves(x)[0] is x.flat
    assert fxflow.tree.map(lambda a: a + 1, x).shape == (3, 5)
    assert is_sharded(x) and not is_sharded(x.flat)
    assert str(type_of(x)) == "f32[3,5]" and x.size == 15
    assert "shape=(3, 5)" in repr(x)


def test_arrays_are_grouped_by_dtype_and_split() -> None:
    a, b, c = fnp.zeros(2), fnp.zeros(3, fnp.int32), fnp.zeros(1)
    assert by_dtype([a, b, c]) == [[0, 2], [1]]
    parts = split(np.arange(6).reshape(2, 3), [a, c])
    assert [p.tolist() for p in parts] == [[[0, 1], [3, 4]], [[2], [5]]]


@pytest.mark.parametrize(("size", "piece"), [(0, 0), (1, 1), (4, 1), (5, 2)])
def test_the_size_of_a_piece_includes_padding(size: int, piece: int) -> None:
    assert AXIS.piece(size) == piece


# -- sums of gradients -----------------------------------------------------------------

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
        if is_coded(mine.aval, code):
            kept = [initial_residual(AXIS, mine.aval)]
        sums = []
        for _ in range(rounds):
            (total,), kept = sum_gradients(AXIS, code, [mine], kept)
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
        kept = [initial_residual(AXIS, g.aval)]
        (_,), (rest,) = sum_gradients(AXIS, code_of_step("exchange", "int8"), [g], kept)
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
    assert is_coded(fxflow.typeof(fnp.zeros(2)), code)
    assert not is_coded(fxflow.typeof(fnp.zeros(2, fnp.complex64)), code)
    assert not is_coded(fxflow.typeof(fnp.zeros(2)), None)
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
