"""Scan fission: the graph before and after, the same numbers, and what stays inside."""

import functools

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, make_graph
from fxflow.transforms.passes import loops
from fxflow.transforms.passes.loops import split_loops
from fxflow.transforms.passes.pipeline import optimized
from tests.transforms.passes.graphs import assert_same, before_and_after, values

both = functools.partial(before_and_after, split_loops, tolerance=1e-9, wide=True)


@pytest.fixture(autouse=True)
def _of_any_size(monkeypatch):
    """The loops here are small, so that they are quick."""
    monkeypatch.setattr(loops, "LEAST", 0)


def test_small_loops_stay(monkeypatch):
    monkeypatch.setattr(loops, "LEAST", 16)
    w, u = values(3, 4), values(3, 3)  # no matrix has 16 elements

    def f(w, u, xs):
        def body(h, x):
            return fnp.tanh(h @ u + x @ u), None

        return lax.scan(body, fnp.zeros((2, 3)) + w[0, 0], xs)[0]

    graph, new = both(f, w, u, values(5, 2, 3))
    assert new is graph
    monkeypatch.setattr(loops, "LEAST", 9)
    assert split_loops(graph) is not graph


W, U, H0, XS = values(3, 4), values(4, 4), values(2, 4), values(5, 2, 3)


def rnn(w, u, h0, xs):
    def body(h, x):
        h = fnp.tanh(x @ w + h @ u)
        return h, h

    return lax.scan(body, h0, xs)


def loss(w, u, h0, xs):
    return fnp.sum(rnn(w, u, h0, xs)[1] ** 2)


def products(graph):
    """How many products there are inside of scans, and outside."""
    inside = sum(
        node.primitive.name == "dot_general"
        for scan in graph.nodes
        if scan.primitive.name == "scan"
        for node in scan.params["graph"].nodes
    )
    outside = sum(node.primitive.name == "dot_general" for node in graph.nodes)
    return inside, outside


def test_the_graph_has_its_product_outside_the_loop():
    _, new = both(rnn, W, U, H0, XS)
    one = "precision=None, preferred_element_type=None"
    late = "dimension_numbers=(((2,), (0,)), ((), ()))"
    early = "dimension_numbers=(((1,), (0,)), ((), ()))"
    flags = "num_consts=1, num_carry=1, length=5, reverse=False, unroll=1"
    assert str(new).splitlines()[1:] == [
        f"  e: f32[5,2,4] = dot_general[{late}, {one}] d a",
        f"  f: f32[2,4], g: f32[5,2,4] = scan[{flags}] b c e",
        "    graph = graph scan_body(h: f32[4,4], i: f32[2,4], j: f32[2,4]) {",
        f"      k: f32[2,4] = dot_general[{early}, {one}] i h",
        "      l: f32[2,4] = add j k",
        "      m: f32[2,4] = tanh l",
        "      return m, m",
        "    }",
        "  return f, g",
        "}",
    ]


def test_products_of_the_gradient_move_out_of_the_loop():
    graph, new = both(fxflow.grad(loss, argnums=(0, 1, 2, 3)), W, U, H0, XS)
    assert products(graph) == (6, 0)
    # Left: h @ u, and its cotangent through u. Outside: x @ w, three gradients.
    assert products(new) == (2, 4)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [1, 2])
def test_direction_and_unrolling(reverse, unroll):
    def f(w, u, h0, xs):
        def body(h, x):
            h = fnp.sin(x @ w + h @ u)
            return h, (h @ u, x)

        out = lax.scan(body, h0, xs, reverse=reverse, unroll=unroll)
        return out, fxflow.tree.map(lambda y: y * 2, out)

    _, new = both(f, W, U, H0, XS)
    assert products(new) == (1, 2)


def test_what_follows_a_product_comes_along():
    def f(w, u, b, h0, xs):
        def body(h, x):
            h = fnp.tanh(h + (x @ w + b))
            logits = h @ u
            return h, logits - fxflow.nn.logsumexp(logits, axis=-1, keepdims=True)

        return lax.scan(body, h0, xs)

    _, new = both(f, W, U, values(4), H0, XS)
    (scan,) = (n for n in new.nodes if n.primitive.name == "scan")
    inside = [n.primitive.name for n in scan.params["graph"].nodes]
    assert inside == ["add", "tanh"]
    assert products(new) == (0, 2)


def test_a_sum_with_a_term_that_must_stay():
    def f(w, xs, c):
        def body(carry, x):
            total, h = carry
            h = fnp.tanh(h + x)
            return (total + h.T @ x + fnp.sin(h.T @ fnp.cos(x)), h), None

        return lax.scan(body, (w, c), xs)[0]

    _, new = both(f, values(3, 3), XS, XS[0])
    assert products(new) == (1, 1)


# -- products in parts -----------------------------------------------------------------


def joined_cell(w, h0, xs, order=(0, 1)):
    """A cell that multiplies its input and its state by one matrix."""

    def body(h, x):
        pair = (x, h)
        gates = fnp.concatenate([pair[i] for i in order], axis=-1) @ w
        a, b = fnp.split(gates, 2, axis=-1)
        h = fnp.tanh(a) * fnp.sin(b) + h
        return h, h

    return lax.scan(body, h0, xs)


def test_concatenated_operand():
    _, new = both(joined_cell, values(7, 8), H0, XS)
    assert products(new) == (1, 1)
    (scan,) = (n for n in new.nodes if n.primitive.name == "scan")
    inside = [n.primitive.name for n in scan.params["graph"].nodes]
    # The matrix is cut before the loop, and nothing is joined in it.
    assert inside.count("split") == 1 and "concatenate" not in inside
    assert [n.primitive.name for n in new.nodes] == ["split", "dot_general", "scan"]


@pytest.mark.parametrize("order", [(0, 1), (1, 0), (0, 1, 0), (1, 1, 0)])
def test_gradient_of_a_concatenated_operand(order):
    def total(w, h0, xs):
        return fnp.sum(joined_cell(w, h0, xs, order)[1] ** 2)

    w = values(sum((3, 4)[i] for i in order), 8)
    graph, new = both(fxflow.grad(total, argnums=(0, 1, 2)), w, H0, XS)
    assert products(graph) == (3, 0)
    # What the carry needs stays: h's products, of a part that is there twice two.
    hidden = len([1 for i, n in enumerate(order) if n and not (i and order[i - 1])])
    assert products(new) == (2 * hidden, 3 + 2 * (order.count(0) - 1))
    assert "concatenate[dimension=1]" not in str(new).split("scan")[1]


def test_weights_made_inside_are_cut_inside():
    def f(w, h0, xs):
        def body(h, x):
            mixed = fnp.concatenate([x, h], axis=-1) @ fnp.sin(w)
            return fnp.tanh(mixed), None

        return lax.scan(body, h0, xs)[0]

    _, new = both(f, values(7, 4), H0, XS)
    assert products(new) == (1, 1)


def test_half_precision_is_summed_at_once():
    half = [fnp.asarray(x, "bfloat16") for x in (values(7, 8), H0, XS)]
    graph = make_graph(joined_cell)(*half).graph
    assert split_loops(graph) is graph


def test_half_precision_sums_over_steps_are_rounded_once():
    def f(total, h, xs):
        def body(carry, x):
            total, h = carry
            h = fnp.maximum(h, x)
            return (total + h.T @ x, h), None

        return lax.scan(body, (total, h), xs)[0][0]

    ones = [fnp.ones(s, "bfloat16") for s in [(2, 2), (1, 2), (600, 1, 2)]]
    for passes, expected in (("none", 256), ("all", 600)):
        with fxflow.config.override(passes=passes):
            out = fxflow.jit(lambda *args: f(*args))(ones[0] * 0, *ones[1:])
        np.testing.assert_array_equal(np.asarray(out, np.float32), expected)


def test_parts_that_all_must_stay():
    def f(w, h0, xs):
        def body(h, x):
            return fnp.tanh(fnp.concatenate([fnp.sin(h), h], axis=-1) @ w + x), None

        return lax.scan(body, h0, xs)[0]

    graph, new = both(f, values(8, 4), H0, values(5, 2, 4))
    assert new is graph


def test_vectorized():
    mapped = fxflow.vmap(loss, in_axes=(None, None, 0, 0))

    def f(*args):
        return fxflow.grad(lambda *a: fnp.sum(mapped(*a)), argnums=(0, 1))(*args)

    _, new = both(f, W, U, values(3, 2, 4), values(3, 5, 2, 3))
    assert products(new)[1] >= 2


def test_values_that_are_read_stay():
    def f(w, u, h0, xs):
        def body(carry, x):
            h, total = carry
            h = fnp.tanh(h @ u + fnp.sum(total))
            return (h, total + h.T @ h), total

        return lax.scan(body, (h0, u), xs)

    graph, new = both(f, W, U, H0, XS)
    assert new is graph


def in_parts(w, u, h0, xs):
    """The gradients of a batch, part by part."""

    def model(weights, x):
        return fnp.sum(fnp.tanh(fnp.tanh(x @ weights[0]) @ weights[1]) ** 2)

    def body(total, x):
        g = fxflow.grad(model)((w, u), x)
        return fxflow.tree.map(fnp.add, total, g), None

    return lax.scan(body, (fnp.zeros_like(w), fnp.zeros_like(u)), xs)[0]


@pytest.mark.parametrize(
    "f",
    [
        lambda w, u, h0, xs: lax.map(lambda x: x @ w, xs),
        in_parts,
        lambda w, u, h0, xs: rnn(w, u, h0, xs[:1]),
        lambda w, u, h0, xs: rnn(w, u, fnp.zeros((300, 4)), fnp.zeros((2, 300, 3))),
    ],
    ids=["no-carry", "sums-only", "one-step", "many-rows"],
)
def test_left_alone(f):
    graph, new = both(f, W, U, H0, XS)
    assert new is graph


def test_no_room(monkeypatch):
    monkeypatch.setattr(loops, "ROOM", 0)
    wide = values(3, 400)

    def f(w, xs):
        def body(h, x):
            return fnp.cos(h) + fnp.sum(fnp.sin(x @ w)), None

        return lax.scan(body, 0.0, xs)[0]

    graph, new = both(f, wide, XS)
    assert new is graph
    monkeypatch.setattr(loops, "ROOM", 64 << 20)
    assert products(split_loops(graph)) == (0, 1)


def test_effects_stay_in_their_loop(capsys):
    def f(w, h0, xs):
        def body(h, x):
            y = x @ w
            fxflow.debug.print("step {}", y[0, 0])
            return fnp.cos(h) + y, None

        return lax.scan(body, h0, xs)[0]

    before = make_graph(f)(W, H0, XS).graph
    after = split_loops(before)
    after.check()
    assert [n.primitive.name for n in after.nodes] == ["dot_general", "scan"]
    fxflow.block_until_ready(fxflow.jit(f)(W, H0, XS))
    fxflow.effects_barrier()
    assert capsys.readouterr().out.count("step") == 5


def test_checkpoint_is_respected():
    def f(w, u, h0, xs):
        return fxflow.grad(fxflow.checkpoint(loss))(w, u, h0, xs)

    graph = make_graph(f)(W, U, H0, XS).graph
    assert optimized(graph, ("split_loops",)) is graph

    def each_step(w, u, h0, xs):
        body = fxflow.checkpoint(lambda h, x: (fnp.tanh(x @ w + h @ u), None))
        return fnp.sum(lax.scan(body, h0, xs)[0])

    graph = make_graph(fxflow.grad(each_step))(W, U, H0, XS).graph
    assert "checkpoint" in str(graph)
    assert optimized(graph) is graph


def test_compiled():
    def f(*args):
        return fxflow.value_and_grad(loss, argnums=(0, 1))(*args)

    outs = []
    for passes in ("none", "all"):
        with fxflow.config.override(passes=passes):
            outs.append(fxflow.jit(f)(W, U, H0, XS))
    assert_same(*outs, tolerance=1e-4)


# -- loops drawn at random -------------------------------------------------------------

ELEMENTWISE = (
    fnp.sin,
    fnp.tanh,
    lambda v: v * 0.5 + 1.0,
    lambda v: v - fnp.mean(v, axis=-1, keepdims=True),
    lambda v: fnp.where(v > 0, v, 0.1 * v),
    lambda v: v[::-1],
    lambda v: fnp.roll(v, 1, axis=-1),
)


def drawn(seed):
    """A loop over square things: operations drawn on what there is so far."""
    rng = np.random.default_rng(seed)
    plan = [(rng.integers(7), *rng.integers(1000, size=3)) for _ in range(8)]
    ends = rng.integers(1000, size=5)

    def body(carry, x, weights):
        h, total = carry
        pool = [h, x]
        for kind, a, b, c in plan:
            v = pool[a % len(pool)]
            if kind < 2:
                pool.append(fnp.tanh(v @ weights[b % len(weights)]))
            elif kind == 2:
                pool.append(v @ pool[c % len(pool)].T)
            elif kind == 3:
                pool.append(fnp.tanh(v + pool[c % len(pool)]))
            elif kind == 4:
                both = fnp.concatenate([v, pool[c % len(pool)]], axis=-1)
                pool.append(fnp.tanh(both @ fnp.concatenate(weights[:2])))
            else:
                pool.append(ELEMENTWISE[b % len(ELEMENTWISE)](v))
        first, second, third, *ys = (pool[e % len(pool)] for e in ends)
        total = total + first.T @ second
        if ends[0] % 2:
            total = total + fnp.sum(third, 0)
        return (fnp.tanh(pool[-1]), total), ys[: ends[1] % 3]

    def f(weights, xs):
        start = fnp.ones((3, 3)), fnp.zeros((3, 3))
        out = lax.scan(
            lambda c, x: body(c, x, weights), start, xs, reverse=bool(ends[2] % 2)
        )
        return sum(fnp.sum(fnp.sin(leaf)) for leaf in fxflow.tree.leaves(out)), out

    return f


@pytest.mark.parametrize("seed", range(6))
def test_drawn(seed):
    weights = [0.5 * values(3, 3, seed=i).astype(float) for i in range(3)]
    xs = values(4, 3, 3).astype(float)
    f = drawn(seed)

    def both_ways(*args):
        return f(*args), fxflow.grad(lambda *a: f(*a)[0], argnums=(0, 1))(*args)

    outs = []
    for passes in ("none", "all"):
        with fxflow.config.override(passes=passes, x64=True):
            outs.append(fxflow.jit(both_ways)(weights, xs))
    assert_same(*outs, tolerance=1e-9)
