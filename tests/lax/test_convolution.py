"""`conv_general_dilated`."""

import numpy as np
import pytest
from scipy import signal

import fxflow
import fxflow.numpy as fnp
from fxflow import lax
from fxflow.errors import ArgumentError, DtypeError, ShapeError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 3, 7, 6)).astype("f4")
W = RNG.normal(size=(4, 3, 3, 2)).astype("f4")


def conv(x=X, w=W, strides=(1, 1), padding="VALID", **options):
    return lax.conv_general_dilated(x, w, strides, padding, **options)


def test_is_a_correlation() -> None:
    expected = sum(signal.correlate(X[0, c], W[1, c], "valid") for c in range(3))
    np.testing.assert_allclose(np.asarray(conv())[0, 1], expected, rtol=1e-4, atol=1e-5)


def test_window_reversal_makes_it_a_convolution() -> None:
    out = np.asarray(conv(window_reversal=(True, True)))
    expected = sum(signal.convolve(X[0, c], W[1, c], "valid") for c in range(3))
    np.testing.assert_allclose(out[0, 1], expected, rtol=1e-4, atol=1e-5)


def test_groups_are_convolutions_side_by_side() -> None:
    x, w = X[:, :2], W[:, :1]
    got = np.asarray(conv(x, w, feature_group_count=2))
    parts = [conv(x[:, i : i + 1], w[2 * i : 2 * i + 2]) for i in range(2)]
    np.testing.assert_allclose(got, np.concatenate(parts, 1), rtol=1e-5, atol=1e-6)
    got = np.asarray(conv(batch_group_count=2))
    parts = [conv(X[i : i + 1], W[2 * i : 2 * i + 2]) for i in range(2)]
    np.testing.assert_allclose(got, np.concatenate(parts, 1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("padding", [(-4, 1), (-2, 3), (3, -2), (-1, -1)])
@pytest.mark.parametrize("dilation", [1, 2])
def test_images_that_are_cut_and_padded(padding, dilation) -> None:
    x = np.arange(2.0 * 9 * 9 * 3, dtype=np.float32).reshape(2, 9, 9, 3)
    w = np.ones((2, 2, 3, 5), np.float32)
    ends = (*padding, dilation - 1)
    whole = lax.pad(x, np.float32(0), [(0, 0, 0), ends, ends, (0, 0, 0)])

    def conv(x, padding, dilation):
        return lax.conv_general_dilated(
            *(x, w, (1, 1), [padding] * 2, [dilation] * 2, (1, 1)),
            ("NHWC", "HWIO", "NHWC"),
        )

    expected = conv(whole, (0, 0), 1)
    np.testing.assert_allclose(conv(x, padding, dilation), expected, rtol=1e-5)


def test_infinite_windows_of_images_that_are_cut_do_not_meet_their_holes() -> None:
    x = np.ones((1, 1, 6), np.float32)
    w = np.array([[[np.inf, 1]]], np.float32)
    out = conv(x, w, (1,), [(-3, 2)], lhs_dilation=(2,))
    # The dilated image is 1 0 1 0 1 0 1 0 1 0 1: it begins between two elements.
    np.testing.assert_array_equal(
        out, [[[1, np.inf, 1, np.inf, 1, np.inf, 1, np.inf, 0]]]
    )


def test_names_of_padding() -> None:
    assert conv(padding="SAME", strides=(2, 2)).shape == (2, 4, 4, 3)
    assert conv(padding="SAME", rhs_dilation=(2, 2)).shape == (2, 4, 7, 6)
    assert conv(padding=[(-1, 0), (3, 3)]).shape == (2, 4, 4, 11)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: conv(w=W[:, :2]),
            ShapeError,
            "the input has 3 features",
        ),
        (
            lambda: conv(w=W[:, :1], feature_group_count=3),
            ShapeError,
            "feature_group_count 3 does not divide the 4 output features",
        ),
        (lambda: conv(x=X[:1], batch_group_count=2), ShapeError, "the batch of 1"),
        (
            lambda: conv(batch_group_count=2, feature_group_count=3),
            ArgumentError,
            "only one of",
        ),
        (lambda: conv(batch_group_count=0), ArgumentError, "must be positive"),
        (lambda: conv(w=W[:, :, :0]), ShapeError, "window of the kernel is empty"),
        (lambda: conv(w=W.astype("i4")), DtypeError, "operands must have one dtype"),
        (lambda: conv(strides=(1,)), ArgumentError, "window_strides must be 2"),
        (lambda: conv(padding="FULL"), ArgumentError, "padding must be 'SAME'"),
        (lambda: conv(padding=[(1, 1)]), ArgumentError, "each of 2 axes"),
        (
            lambda: conv(padding="SAME", lhs_dilation=(2, 1)),
            ArgumentError,
            "conv_transp",
        ),
        (lambda: conv(window_reversal=(True,)), ArgumentError, "2 booleans"),
    ],
)
def test_shapes_groups_and_padding_that_do_not_fit_are_refused(
    call, error, message: str
) -> None:
    with pytest.raises(error, match=message):
        call()


def test_kernels_over_several_devices() -> None:
    mesh = fxflow.make_mesh((2, 4), ("a", "b"))
    x = np.arange(8, dtype=np.float32)
    want = np.convolve(x, x, "same")
    for name in ("a", "b"):
        where = fxflow.NamedSharding(mesh, fxflow.P(name))
        split = fxflow.device_put(x, where)
        np.testing.assert_allclose(fnp.convolve(split, split, "same"), want)
