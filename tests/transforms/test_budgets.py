"""`checkpoint(budget=)`: what is kept fits, and no other choice computes less again."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import checkpoint, checkpoint_policies, grad, jit, lax, make_graph, nn
from fxflow.core.interpreters.linearize import linearize_graph
from fxflow.errors import ArgumentError
from fxflow.lax.remat import inlined
from fxflow.transforms import budgets
from fxflow.transforms.budgets import KEEPING, HostSpace, _Problem, bytes_of, plan_of

RANDOM = np.random.default_rng(5)


def array(*shape):
    return (RANDOM.standard_normal(shape) / np.sqrt(shape[-2])).astype("f4")


def mlp(x, p):
    return x + nn.gelu(nn.gelu(x @ p[0]) @ p[1])


def normed(x):
    center = x - x.mean(-1, keepdims=True)
    return center * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def block(x, p):
    q, k, v = fnp.split(normed(x) @ p[0], 3, axis=-1)
    scores = nn.softmax(q @ fnp.swapaxes(k, 1, 2) / 4)
    x = x + (scores @ v) @ p[1]
    return x + nn.gelu(normed(x) @ p[2]) @ p[3]


def convolution(x, p):
    names = ("NHWC", "HWIO", "NHWC")
    h = lax.conv_general_dilated(x, p[0], (1, 1), "SAME", dimension_numbers=names)
    return nn.relu(x + normed(nn.relu(h)))


MODELS = {
    "mlp": (mlp, array(16, 8), [array(8, 24), array(24, 8)]),
    "block": (
        block, array(2, 6, 8), [array(8, 24), array(8, 8), array(8, 16), array(16, 8)],
    ),
    "convolution": (convolution, array(2, 6, 6, 4), [array(3, 3, 4, 4)]),
}  # fmt: skip
HAND = [
    None,
    checkpoint_policies.dots_saveable,
    checkpoint_policies.dots_with_no_batch_dims_saveable,
    checkpoint_policies.everything_saveable,
]


def problem_of(f, *args):
    graph = inlined(make_graph(f)(*args).graph)
    split = linearize_graph(graph, [True] * len(graph.inputs))
    return _Problem(split, len(graph.outputs))


def by_policy(problem, policy):
    """Returns what a policy written by hand keeps of what is needed, and its bytes."""
    allowed = {
        i
        for i, node in enumerate(problem.nodes)
        if policy
        and policy(node.primitive, *[a.aval for a in node.inputs], **node.params)
    }
    kept, front = set(), list(problem.needed)
    seen = set()
    while front:
        i = front.pop()
        if i in seen:
            continue
        seen.add(i)
        if i in allowed:
            kept.add(i)
        else:
            front += problem.inputs[i]
    return kept, sum(problem.sizes[i] for i in kept)


def total(problem, kept):
    """Returns the work of computing again and of keeping."""
    again = sum(problem.work[i] for i in problem.again(kept))
    return again + KEEPING * sum(problem.sizes[i] for i in kept)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("scipy", [True, False])
def test_as_good_as_policies_by_hand(name, scipy, monkeypatch):
    if not scipy:

        def absent(name):
            raise ImportError(name)

        monkeypatch.setattr("fxflow.transforms.budgets.importlib.import_module", absent)
    f, x, p = MODELS[name]
    problem = problem_of(f, x, p)
    for policy in HAND:
        kept, nbytes = by_policy(problem, policy)
        by_hand = total(problem, kept)
        chosen = problem.solve(int(nbytes))
        assert sum(problem.sizes[i] for i in chosen) <= nbytes * 1.001
        most = 1.001 if scipy else 2.5
        assert total(problem, chosen) <= by_hand * most + (0 if scipy else 1e3)


def test_no_choice_is_better():
    def f(x, w):
        return fnp.sum(fnp.sin(fnp.tanh(x @ w) @ w) ** 2)

    problem = problem_of(f, array(6, 6), array(6, 6))
    count = len(problem.nodes)
    assert count < 12
    allowed = [i for i in range(count) if problem.may_keep[i]]
    for budget in (0, 144, 300, 450, 600):
        best = min(
            total(problem, set(kept))
            for size in range(len(allowed) + 1)
            for kept in itertools.combinations(allowed, size)
            if sum(problem.sizes[i] for i in kept) <= budget
        )
        assert total(problem, problem.solve(budget)) <= best * 1.001


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_gradients_and_memory(name):
    f, x, p = MODELS[name]
    everything = plan_of(make_graph(f)(x, p).graph, 10**9)
    expected = jit(grad(lambda p: fnp.sum(f(x, p) ** 2)))(p)
    for share in (0.0, 0.5):
        budget = int(everything.everything * share)
        g = checkpoint(f, budget=budget)
        found = jit(grad(lambda p, g=g: fnp.sum(g(x, p) ** 2)))(p)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5)
        plan = g.plan(x, p)
        assert plan.kept <= budget and plan.work >= everything.work


@pytest.mark.slow
def test_loops_need_less_memory():
    # Wide enough for products that cost more than memory.
    x, p = array(64, 128), [array(8, 128, 256), array(8, 256, 128)]

    def temporaries(body):
        def f(p):
            return fnp.sum(lax.scan(lambda c, q: (body(c, q), None), x, p)[0])

        compiled = jit(grad(f)).lower(p).compile()
        return compiled.memory_analysis()["temp_size_in_bytes"]

    small, large = (checkpoint(mlp, budget=b) for b in (20_000, "1MB"))
    assert temporaries(small) < 0.7 * temporaries(large)
    assert small.plan(x, [w[0] for w in p]).kept <= 20_000


def test_plan():
    f = checkpoint(lambda x: fnp.sum(fnp.sin(x @ x) ** 2), budget="300B")
    plan = f.plan(fnp.ones((8, 8)))
    text = str(plan)
    assert text.startswith("keeps ") and "budget 300 B" in text
    assert "keep" in text and "test_budgets.py" in text
    assert {row.action for row in plan.rows} <= {"keep", "recompute"}
    assert float(jit(f)(fnp.ones((8, 8)))) == pytest.approx(64 * np.sin(8.0) ** 2)
    empty = checkpoint(lambda x: x, budget=0).plan(1.0)
    assert empty.kept == 0 and empty.rows == ()
    assert f.plan(fxflow.ShapeDtypeStruct((8, 8), fnp.float32)).kept == plan.kept


# -- the memory of the host ------------------------------------------------------------


def chain(x, w):
    return fnp.sum(fnp.sin(fnp.tanh(x @ w) @ w) ** 2)


@pytest.fixture
def cheap_moves(monkeypatch):
    """Moving a byte takes as long as computing it a little, on every machine."""
    monkeypatch.setattr(budgets, "_measured", lambda device, kind: 2.0)


def total_moved(problem, kept, moved):
    again = sum(problem.work[i] for i in problem.again(kept | moved))
    held, away = (sum(problem.sizes[i] for i in part) for part in (kept, moved))
    return again + KEEPING * held + 2.0 * away


def test_no_choice_with_moves_is_better():
    problem = problem_of(chain, array(6, 6), array(6, 6))
    allowed = [i for i in range(len(problem.nodes)) if problem.may_keep[i]]
    space = HostSpace("pinned_host", 2.0)
    for budget, host in ((0, 150), (0, 10_000), (150, 150), (300, 0)):
        best = float("inf")
        for actions in itertools.product(range(3), repeat=len(allowed)):
            kept = {i for i, a in zip(allowed, actions, strict=True) if a == 1}
            moved = {i for i, a in zip(allowed, actions, strict=True) if a == 2}
            if sum(problem.sizes[i] for i in kept) > budget:
                continue
            if sum(problem.sizes[i] for i in moved) <= host:
                best = min(best, total_moved(problem, kept, moved))
        kept = problem.solve(budget, host, space)
        assert sum(problem.sizes[i] for i in problem.moved) <= host
        assert total_moved(problem, kept, problem.moved) <= best * 1.001


def test_moves_without_scipy(monkeypatch):
    problem = problem_of(chain, array(6, 6), array(6, 6))

    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr("fxflow.transforms.budgets.importlib.import_module", absent)
    alone = total_moved(problem, problem.solve(0), set())
    kept = problem.solve(0, 300, HostSpace("pinned_host", 2.0))
    assert not kept and problem.moved
    assert sum(problem.sizes[i] for i in problem.moved) <= 300
    assert total_moved(problem, kept, problem.moved) < alone


@pytest.mark.usefixtures("cheap_moves")
def test_gradients_of_what_is_moved():
    x, w = array(32, 32), array(32, 32)
    away = checkpoint(chain, budget=0, host_budget="1MB")
    plan = away.plan(x, w)
    assert plan.kept == 0 and 0 < plan.offloaded <= 10**6 and plan.moving == 2.0
    assert "offload" in {row.action for row in plan.rows}
    assert "to the host (budget 1 MB)" in str(plan)
    none = checkpoint(chain, budget=0, host_budget="100B").plan(x, w)
    assert none.offloaded == 0 and none.work > plan.work
    expected = grad(chain, argnums=(0, 1))(x, w)
    by_jit = jit(grad(away, argnums=(0, 1)))
    assert "pinned_host" in by_jit.lower(x, w).as_text()
    for found in (grad(away, argnums=(0, 1))(x, w), by_jit(x, w)):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5)


@pytest.mark.usefixtures("cheap_moves")
def test_the_body_of_a_loop_moves_values():
    x, ws = array(16, 16), array(3, 16, 16)
    body = lambda c, w: fnp.tanh(fnp.tanh(c @ w) @ w)

    def loss(ws, body):
        return fnp.sum(lax.scan(lambda c, w: (body(c, w), None), x, ws)[0])

    away = checkpoint(body, budget=0, host_budget="1MB")
    run = jit(grad(lambda ws: loss(ws, away)))
    assert "pinned_host" in run.lower(ws).as_text()
    expected = grad(lambda ws: loss(ws, body))(ws)
    np.testing.assert_allclose(run(ws), expected, rtol=2e-4, atol=1e-5)


def test_moving_is_measured():
    space = budgets.host_space()
    assert space.kind == "pinned_host"
    assert space.moving >= 1 and np.log2(space.moving) % 1 == 0
    assert budgets.host_space() == space


def test_wrong_budgets_of_the_host():
    with pytest.raises(ArgumentError, match="host_budget needs a budget"):
        checkpoint(mlp, host_budget="1GB")
    with pytest.raises(ArgumentError, match="host_budget is a number of bytes"):
        checkpoint(mlp, budget=1, host_budget="much")


def test_budgets_in_words():
    given = ["8GB", "1.5 kB", "512MiB", "100", 1e6, 0, np.int64(7), np.float32(8)]
    assert [bytes_of(b, "x") for b in given] == [
        8 * 10**9, 1500, 512 * 2**20, 100, 10**6, 0, 7, 8,
    ]  # fmt: skip
    for wrong in (
        "8 apples",
        "",
        -1,
        float("inf"),
        float("nan"),
        None,
        "1.2.3GB",
        [],
        ".",
        "1e999",
        True,
    ):
        with pytest.raises(ArgumentError, match="budget is a number of bytes"):
            bytes_of(wrong, "budget")
    with pytest.raises(ArgumentError, match="not both"):
        fxflow.checkpoint(mlp, budget=3, policy=HAND[1])
    assert not hasattr(fxflow.checkpoint(mlp), "plan")
