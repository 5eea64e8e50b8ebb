"""Convolutions by the kernel: which ones, and that numbers stay."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fxflow
import fxflow.numpy as fnp
from fxflow import config, lax
from fxflow.core.ir.graph import subgraphs
from fxflow.devices.contractions import TARGET
from fxflow.devices.native import kernel_tile
from fxflow.transforms.passes import convolutions
from tests.sweeps import sampling
from tests.transforms.passes.graphs import assert_same, before_and_after, names, values

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
        convolutions.contract_convolutions, f, *args, tolerance=1e-5
    )
    found = calls(new)
    if found:
        assert "conv_general_dilated" not in names(new)
    return found


def calls(graph):
    """How many calls of the kernel there are, in branches too."""
    inner = [g for node in graph.nodes for _, g in subgraphs(node.params)]
    return names(graph).count("ffi_call") + sum(map(calls, inner))


def same(f, *args):
    """Checks that a function's results are those without passes.

    Infinities and nan are in the same places; finite numbers differ by rounding.
    """
    with config.override(passes="none"):
        expected = fxflow.jit(lambda *args: f(*args))(*args)
    got = fxflow.jit(lambda *args: f(*args))(*args)
    assert_same(got, expected, tolerance=1e-5)


def test_a_convolution():
    x, w = values(2, 7, 6, 3), values(3, 3, 3, 20)
    assert contracted(convolution(), x, w) == 1
    assert contracted(convolution((2, 3), [(0, 2), (-1, 1)]), x, w) == 1
    assert contracted(convolution(rhs_dilation=(2, 1)), x, w) == 1


def test_gradients_contract_all_but_the_zeros_of_a_stride():
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
        convolutions.contract_convolutions, of_window, w, tolerance=1e-4
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
def test_other_convolutions_are_left_to_xla(f, x, w):
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


def infinite(x, *at):
    """An array with an infinity."""
    x[at] = np.inf
    return x


def test_an_infinity_stays_in_its_window():
    x, w = np.ones((4, 14, 14, 16), np.float32), np.ones((4, 4, 16, 3), np.float32)
    f = convolution(padding=[(2, 2)] * 2, lhs_dilation=(2, 2))
    assert contracted(f, x, w) == 1
    out = np.asarray(fxflow.jit(f)(infinite(x, 0, 7, 7, 3), w))
    assert not np.isnan(out).any()
    assert np.isinf(out).sum() == 4 * 4 * 3


def test_an_infinity_stays_in_its_window_where_phases_are_apart():
    x, w = np.ones((2, 7, 7, 16), np.float32), np.ones((4, 4, 16, 32), np.float32)
    f = convolution(padding=[(2, 2)] * 2, lhs_dilation=(2, 2))
    assert contracted(f, x, w) == 4
    same(f, infinite(x, 0, 3, 3, 3), w)
    same(f, x, infinite(w, 0, 0, 3, 3))


def test_an_infinity_stays_in_its_window_in_the_gradient_of_an_image():
    x, w = values(2, 9, 9, 8), values(5, 5, 8, 16)
    f = convolution((2, 2))
    cotangent = infinite(values(2, 5, 5, 16), 0, 2, 2, 3)

    def gradient(x, w):
        return fxflow.vjp(lambda x: f(x, w), x)[1](cotangent)[0]

    assert contracted(gradient, x, w)
    same(gradient, x, w)


def test_a_window_larger_than_the_image():
    # XLA makes the image the window, and does not multiply the padding.
    f = convolution((2,), [(6, 0)], ("HCN", "HIO", "HCN"))
    x, w = values(5, 32, 24), values(7, 32, 16)
    assert contracted(f, x, w) == 1
    same(f, x, infinite(w, 0, 0, 0))
    same(f, infinite(x, 2, 0, 0), w)


def test_cost_analysis_counts_the_contraction():
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


def with_some(x, special, seed):
    """The array, or one with infinities, nan, zeros of both signs, tiny numbers."""
    rng = np.random.default_rng(seed)
    if special and x.size:
        odd = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-40], np.float32)
        places = rng.integers(0, x.size, 1 + int(x.size * rng.choice([0.003, 0.1])))
        x.flat[places] = rng.choice(odd, places.size)
    return x


@settings(
    max_examples=200 if sampling.whole else 14,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(problems(), st.sampled_from(["", "x", "w", "ct", "xw"]), st.integers(0, 2**20))
def test_any_layout_and_its_gradients(problem, special, seed):
    (left, right), arguments = problem
    x = with_some(values(*left), "x" in special, seed)
    w = with_some(values(*right, seed=1), "w" in special, seed + 1)

    def f(x, w):
        return lax.conv_general_dilated(x, w, **arguments)

    shape = fxflow.eval_shape(f, x, w).shape
    ct = with_some(values(*shape, seed=2), special == "ct", seed)

    def both(x, w, ct):
        out, back = fxflow.vjp(f, x, w)
        return out, *back(ct)

    same(both, x, w, ct)
