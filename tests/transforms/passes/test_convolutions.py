"""Convolutions by the kernel: which ones, and that numbers stay."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fxflow
import fxflow.numpy as fnp
from fxflow import config, lax
from fxflow.devices.contractions import TARGET
from fxflow.devices.native import kernel_tile
from fxflow.transforms.passes import convolutions
from tests.transforms.passes.graphs import before_and_after, names, values

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.skipif(
    kernel_tile() is None, reason="no kernel for this processor"
)

LAST = ("NHWC", "HWIO", "NHWC")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Convolutions of any size are left to the kernel."""
    monkeypatch.setattr(convolutions, "_LEAST", 1)


def convolution(strides=(1, 1), padding="SAME", numbers=LAST, **options):
    return lambda x, w: lax.conv_general_dilated(
        x, w, strides, padding, dimension_numbers=numbers, **options
    )


def contracted(f, *args):
    """How many calls of the kernel take the place of a function's convolutions."""
    _, new = before_and_after(
        convolutions.contract_convolutions, f, *args, rtol=1e-4, atol=1e-4
    )
    found = names(new)
    if found.count("ffi_call"):
        assert "conv_general_dilated" not in found
    return found.count("ffi_call")


def test_a_convolution():
    x, w = values(2, 7, 6, 3), values(3, 3, 3, 20)
    assert contracted(convolution(), x, w) == 1
    assert contracted(convolution((2, 3), [(0, 2), (-1, 1)]), x, w) == 1
    assert contracted(convolution(rhs_dilation=(2, 1)), x, w) == 1


def test_gradients():
    x, w = values(2, 9, 9, 24), values(3, 3, 24, 32)
    f = convolution((2, 2))

    def loss(x, w):
        return fnp.sum(f(x, w) ** 2)

    # Forward, the kernel's, and for each phase of the image's, all but its zeros.
    assert contracted(fxflow.grad(loss, argnums=(0, 1)), x, w) == 1 + 1 + 4


def test_phases_side_by_side_where_features_are_few():
    x, w = values(2, 5, 5, 8), values(5, 5, 8, 2)
    options = {"lhs_dilation": (2, 2), "padding": [(2, 3), (3, 1)]}
    assert contracted(convolution(**options), x, w) == 1


def test_windows_that_skip_phases():
    x, w = values(2, 5, 5, 8), values(1, 1, 8, 32)
    options = {"lhs_dilation": (2, 2), "padding": [(0, 1), (1, 0)]}
    assert contracted(convolution(**options), x, w) == 1


def test_sums_in_parts():
    x, w = values(4, 60, 60, 32), values(3, 3, 32, 16)
    f = convolution()

    def of_window(w):
        return fxflow.vjp(lambda w: f(x, w), w)[1](values(4, 60, 60, 16))[0]

    _, new = before_and_after(
        convolutions.contract_convolutions, of_window, w, rtol=1e-3, atol=1e-2
    )
    (call,) = (n for n in new.nodes if n.primitive.name == "ffi_call")
    assert call.outputs[0].aval.shape[0] > 1


@pytest.mark.parametrize(
    ("f", "x", "w"),
    [
        (convolution(), values(1, 5, 5, 3).astype(np.float16), values(3, 3, 3, 16)),
        (convolution(feature_group_count=3), values(1, 5, 5, 3), values(3, 3, 1, 48)),
        (
            convolution((2, 2), [(1, 1)] * 2, lhs_dilation=(2, 2)),
            values(1, 5, 5, 3),
            values(3, 3, 3, 16),
        ),
        (convolution(), values(1, 5, 5, 3), values(3, 3, 3, 1)),
        (convolution(), values(0, 5, 5, 3), values(3, 3, 3, 16)),
        (
            convolution((1, 1, 1), numbers=("NDHWC", "DHWIO", "NDHWC")),
            values(1, 4, 4, 4, 3),
            values(2, 2, 2, 3, 16),
        ),
    ],
    ids=["half", "groups", "strides and holes", "one feature", "empty", "volumes"],
)
def test_what_is_left_to_xla(f, x, w):
    w = w.astype(x.dtype)
    graph, new = before_and_after(convolutions.contract_convolutions, f, x, w)
    assert new is graph


def test_little_work_is_left_to_xla(monkeypatch):
    monkeypatch.undo()
    x, w = values(1, 5, 5, 3), values(3, 3, 3, 16)
    assert TARGET not in fxflow.jit(convolution()).lower(x, w).as_text()


def test_programs_for_elsewhere_are_left_to_xla():
    args = values(2, 8, 8, 4), values(3, 3, 4, 32)
    traced = fxflow.jit(convolution()).trace(*args)
    assert TARGET in traced.lower().as_text()
    for platform in ("cpu", "tpu"):
        assert TARGET not in traced.lower(platforms=(platform,)).as_text()


def test_windows_of_infinities_do_not_meet_the_zeros_between_elements():
    x, w = values(1, 4, 4, 8), np.full((2, 2, 8, 16), np.inf, np.float32)
    f = convolution(padding="VALID", lhs_dilation=(2, 2))
    assert np.isinf(np.asarray(fxflow.jit(f)(np.abs(x), w))).all()


def test_work_is_told():
    args = values(2, 8, 8, 4), values(3, 3, 4, 32)
    lowered = fxflow.jit(convolution()).lower(*args)
    assert TARGET in lowered.as_text()
    flops = lowered.compile().cost_analysis()["flops"]
    assert flops == lowered.cost_analysis()["flops"] == 2 * (2 * 64 * 32) * 36


def axes(letters):
    return st.permutations(letters).map("".join)


@st.composite
def problems(draw):
    """A convolution of any layout: arrays, and arguments."""
    image = "HW"[: draw(st.integers(1, 2))]
    orders = [draw(axes("NC" + image)), draw(axes("OI" + image))]
    orders.append(draw(axes("NC" + image)))
    sizes = {c: draw(st.integers(3, 11)) for c in image}
    sizes |= {"N": draw(st.integers(1, 4)), "C": draw(st.sampled_from([1, 3, 24]))}
    window = {c: draw(st.integers(1, 5)) for c in image}
    window |= {"I": sizes["C"], "O": draw(st.sampled_from([5, 16, 20, 40, 48]))}
    small = st.tuples(*[st.integers(1, 3)] * len(image))
    ones = (1,) * len(image)
    holes = draw(st.booleans())
    arguments = {
        "window_strides": ones if holes else draw(small),
        "padding": [draw(st.tuples(*[st.integers(-1, 4)] * 2)) for _ in image],
        "lhs_dilation": draw(small) if holes else ones,
        "rhs_dilation": ones if holes else draw(small),
        "dimension_numbers": tuple(orders),
    }
    shapes = [tuple(sizes[c] for c in orders[0]), tuple(window[c] for c in orders[1])]
    return shapes, arguments


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(problems())
def test_any_layout_and_its_gradients(problem):
    (left, right), arguments = problem
    x, w = values(*left), values(*right, seed=1)

    def f(x, w):
        return lax.conv_general_dilated(x, w, **arguments)

    def both(x, w):
        out, back = fxflow.vjp(f, x, w)
        return out, *back(fnp.cos(out))

    with config.override(passes="none"):
        expected = fxflow.jit(both)(x, w)
    got = fxflow.jit(lambda *args: both(*args))(x, w)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-4, atol=1e-3)
