"""Residuals: what a loop stacks for another one, before and after."""

import functools

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import config, lax, make_graph, nn
from fxflow.transforms.passes.residuals import recompute_residuals
from tests.transforms.passes.graphs import before_and_after

RNG = np.random.default_rng(0)
XS = RNG.normal(size=(6, 4)).astype(np.float32)
W = RNG.normal(size=(4, 4)).astype(np.float32) / 4


def scans(graph):
    return [n for n in graph.nodes if n.primitive.name == "scan"]


def both(f, *args):
    """The scans of a function's graph before and after the pass."""
    graph, new = before_and_after(recompute_residuals, f, *args, tolerance=1e-5)
    return scans(graph), scans(new)


def loss(w, xs, reverse=False):
    def step(c, x):
        c = fxflow.nn.sigmoid(c @ w + x)
        # The value itself would be stacked in any case if the loss read all of it.
        return c, c * x

    last, ys = lax.scan(step, xs[0], xs, reverse=reverse)
    return fnp.sum(last) + fnp.sum(ys * ys)


def test_golden():
    def f(xs):
        def first(c, x):
            s = fnp.tanh(c + x)
            return s, (s, (1.0 - s) * s)

        def second(c, both):
            s, d = both
            return c * d + s, None

        c, both = lax.scan(first, xs[0], xs)
        return lax.scan(second, c, both, reverse=True)[0]

    _, (first, second) = both(f, XS)
    assert len(first.outputs) == 2 and len(second.inputs) == 2
    assert str(second.params["graph"]) == "\n".join(
        [
            "graph scan_second(a: f32[4], b: f32[4]) {",
            "  c: f32[4] = sub 1.0:f32[] b",
            "  d: f32[4] = mul c b",
            "  e: f32[4] = mul a d",
            "  f: f32[4] = add e b",
            "  return f",
            "}",
        ]
    )


@pytest.mark.parametrize("reverse", [False, True])
def test_the_gradient_of_a_loop_saves_one_array_fewer(reverse):
    f = fxflow.grad(functools.partial(loss, reverse=reverse), (0, 1))
    (before, _), (after, _) = both(f, W, XS)
    assert len(after.outputs) == len(before.outputs) - 1


# The loop stacks one number for each gate and each tanh, not a value and a slope.
@pytest.mark.parametrize(("kind", "fewer"), [("lstm", 5), ("gru", 2)])
def test_gradients_of_recurrent_layers(kind, fewer):
    init, layer = getattr(nn, f"{kind}_init"), getattr(nn, kind)
    params, tree = fxflow.tree.flatten(init(fxflow.random.key(0), 4, 4))
    params = [np.asarray(w) for w in params]
    xs = RNG.normal(size=(3, 6, 4)).astype(np.float32)

    def f(*operands):
        *params, xs = operands
        ys = layer(fxflow.tree.unflatten(tree, params), None, xs)[1]
        return fnp.sum(ys * ys)

    grads = fxflow.grad(f, tuple(range(len(params) + 1)))
    graph, new = before_and_after(
        recompute_residuals, grads, *params, xs, wide=True, tolerance=1e-11
    )
    (before, _), (after, _) = scans(graph), scans(new)
    assert len(after.outputs) == len(before.outputs) - fewer


def weighted(f, scale, x):
    """Sums `scale * f(x)` in a loop, whose derivative reads value and slope."""

    def step(total, x):
        return total + fnp.sum(scale * f(x)), None

    return lax.scan(step, fnp.zeros((), x.dtype), x)[0]


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", ["logistic", "tanh"])
def test_slopes_keep_their_digits(name, dtype, order):
    """Wherever the value is: near 0, near 1, and where its partner underflows."""
    points = [1e-30, 1e-4, 0.3, 0.54, 0.55, 1, 4, 9, 40, 60, 800, np.inf]
    with config.override(x64=True):
        x = fnp.asarray([*points, *(-p for p in points), 0, np.nan], dtype)
        f = functools.partial(weighted, getattr(lax, name))
        slopes = fxflow.grad(f, (0, 1))
        if order == 2:
            slopes = fxflow.grad(
                lambda scale, x: fnp.sum(fxflow.grad(f, 1)(scale, x)), (0, 1)
            )
        operands = fnp.ones_like(x), x[None]
        graph = make_graph(slopes)(*operands).graph
        new = recompute_residuals(graph)
        stacks = [len(n.outputs) for g in (graph, new) for n in scans(g)]
        assert sum(stacks[len(stacks) // 2 :]) < sum(stacks[: len(stacks) // 2])
        info = fnp.finfo(dtype)
        for a, b in zip(new(*operands), graph(*operands), strict=True):
            np.testing.assert_allclose(
                np.asarray(a).astype("f8"),
                np.asarray(b).astype("f8"),
                8 * float(info.eps),
                4 * float(info.tiny),
            )


def test_what_is_stacked_twice():
    def f(xs):
        def step(c, x):
            c = fnp.sin(c + x)
            return c, (c, c)

        c, (a, b) = lax.scan(step, xs[0], xs)
        return a, lax.scan(lambda c, x: (c * x, None), c, b)

    (before, _), (after, second) = both(f, XS)
    assert len(before.outputs) == 3 and len(after.outputs) == 2
    assert second.inputs[1] is after.outputs[1]


def stacking(make):
    """A loop that stacks `s` and what is made of it, and one that reads both."""

    def f(xs):
        def step(c, x):
            s = fnp.sin(c + x)
            return s, (s, make(s, x))

        c, (s, made) = lax.scan(step, xs[0], xs)
        return lax.scan(lambda c, x: (c * x[0] + x[1], None), c, (s, made)), made

    return f


def test_a_result_stays():
    before, after = both(stacking(lambda s, x: s * 2.0), XS)
    assert [len(n.outputs) for n in before] == [len(n.outputs) for n in after] == [3, 1]


@pytest.mark.parametrize(
    "make",
    [
        lambda s, x: fnp.exp(s),
        lambda s, x: s * x,
        lambda s, x: ((((s * s) * s) * s) * s) * s,
        lambda s, x: x + 1.0,
    ],
    ids=["dear", "slices", "many", "nothing stacked"],
)
def test_other_loops_stay(make):
    f = stacking(make)
    traced = make_graph(lambda xs: f(xs)[0])(XS)
    assert recompute_residuals(traced.graph) is traced.graph


def test_a_product_reads_it_as_a_whole():
    def f(xs):
        def step(c, x):
            s = fnp.sin(c + x)
            return s, (s, s * s)

        c, (s, squares) = lax.scan(step, xs[0], xs)
        c, _ = lax.scan(lambda c, x: (c * x[0] + x[1], None), c, (s, squares))
        return c, squares @ s.T

    traced = make_graph(f)(XS)
    assert recompute_residuals(traced.graph) is traced.graph


def test_memory():
    xs = RNG.normal(size=(64, 32, 32)).astype(np.float32)
    w = RNG.normal(size=(32, 32)).astype(np.float32) / 32
    sizes = []
    for passes in ("none", "recompute_residuals"):
        with config.override(passes=passes):
            compiled = fxflow.jit(fxflow.grad(loss, (0, 1))).lower(w, xs).compile()
        sizes.append(compiled.memory_analysis()["temp_size_in_bytes"])
    assert sizes[0] - sizes[1] > 0.9 * xs.nbytes


def test_loops_with_effects():
    seen = []

    def step(c, x):
        fxflow.debug.callback(lambda x: seen.append(float(x)), x)
        return c * nn.sigmoid(x), None

    slope = fxflow.jit(fxflow.grad(lambda c, xs: lax.scan(step, c, xs)[0]))
    xs = np.linspace(-1, 1, 4).astype("f4")
    want = np.prod(1 / (1 + np.exp(-xs.astype("f8"))))
    np.testing.assert_allclose(slope(np.float32(2), xs), want, rtol=1e-6)
    fxflow.effects_barrier()
    assert sorted(seen) == xs.tolist()
