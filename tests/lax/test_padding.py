"""Elements around and between those of an array."""

import numpy as np
import pytest

import fxflow
from fxflow import NamedSharding, P, lax
from fxflow.core.interpreters.batching import batch_flat
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.padding import shifted
from tests.lax.key_arrays import keys, words

X = np.array([1, 2, 3], "i4")


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ((1, 2, 0), [0, 1, 2, 3, 0, 0]),
        ((0, 0, 1), [1, 0, 2, 0, 3]),
        ((-1, 0, 0), [2, 3]),
        ((-1, -1, 0), [2]),
        ((-1, 0, 1), [0, 2, 0, 3]),
        ((2, -4, 1), [0, 0, 1]),
        ((-3, 0, 0), []),
        ((-5, 3, 1), [0, 0, 0]),
    ],
)
def test_negative_and_interior_padding_give_the_expected_elements(
    config: tuple[int, int, int], expected: list[int]
) -> None:
    np.testing.assert_array_equal(lax.pad(X, 0, [config]), np.array(expected, "i4"))


def test_python_number_takes_the_dtype() -> None:
    out = lax.pad(np.ones(1, np.float16), 2.5, [(1, 0, 0)])
    assert out.dtype == np.float16
    np.testing.assert_array_equal(out, [2.5, 1])


def test_mapped_value_pads_each_slice_with_its_own() -> None:
    values = np.array([7, 8], "i4")
    (out,), _ = batch_flat(lambda v: [lax.pad(X, v, [(1, 0, 1)])], 2, [values], [True])
    np.testing.assert_array_equal(out, [[7, 1, 7, 2, 7, 3], [8, 1, 8, 2, 8, 3]])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lax.pad(X, 0, []), ShapeError, "one .low, high, interior. for each"),
        (lambda: lax.pad(X, 0, [(1, 1)]), ArgumentError, "must be a sequence of .low"),
        (lambda: lax.pad(X, 0, [1]), ArgumentError, "must be a sequence of"),
        (lambda: lax.pad(X, 0, [(0, 0, -1)]), ShapeError, "must not be negative"),
        (lambda: lax.pad(X, 0, [(-2, -2, 0)]), ShapeError, "takes more away from i32"),
        (lambda: lax.pad(X, X, [(0, 0, 0)]), ShapeError, r"must be 0-d, got i32\[3\]"),
        (
            lambda: lax.pad(X, np.float32(0), [(0, 0, 0)]),
            DtypeError,
            r"operand i32\[3\] and padding_value f32\[\] must have one dtype",
        ),
    ],
)
def test_invalid_configurations_and_padding_values_are_refused(
    call, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()


def test_keys_move_as_words() -> None:
    x, value = keys(2), keys()
    out = lax.pad(x, value, [(1, 0, 1)])
    w, v = words(x), words(value)
    np.testing.assert_array_equal(words(out), np.stack([v, w[0], v, w[1]]))


@pytest.mark.parametrize("spec", [P("a"), P("b"), P(None, "b"), P("a", "b")], ids=str)
@pytest.mark.parametrize(
    "config",
    [((-1, 0, 0), (0, 1, 0)), ((0, 1, 0), (2, -3, 0)), ((-1, -1, 1), (1, -2, 2))],
    ids=str,
)
def test_negative_widths_where_the_axis_is_divided(spec, config):
    mesh = fxflow.make_mesh((2, 4), ("a", "b"))
    x = np.arange(32, dtype="f4").reshape(4, 8)
    divided = fxflow.device_put(x, NamedSharding(mesh, spec))

    def pad(v):
        return lax.pad(v, np.float32(7), config)

    want = pad(fxflow.device_put(x))
    np.testing.assert_array_equal(pad(divided), want)
    np.testing.assert_array_equal(fxflow.jit(pad)(divided), want)


def test_shifted():
    np.testing.assert_array_equal(shifted(X, 0, False, 7), [7, 1, 2])
    np.testing.assert_array_equal(shifted(X, 0, True, 7), [2, 3, 7])
