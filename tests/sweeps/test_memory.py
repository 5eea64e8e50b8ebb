"""What was computed is freed: by each public function, and by what closes over arrays.

Counts the arrays that are still alive after a call whose results were dropped. What a
call may keep, it keeps once, however often it is made.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import custom_jvp, custom_vjp, grad, jit, lax, vmap
from fxflow.core import caches
from fxflow.errors import RetraceWarning
from tests.sweeps.catalogue import Call, catalogue
from tests.sweeps.sampling import sample

#: So odd a number of elements that no other array has it.
ODD = 1237
X = fnp.ones(ODD)
LIKE = fxflow.ShapeDtypeStruct((ODD,), "float32")


def alive(size: int | None = None) -> int:
    """How many arrays are alive, or how many of a size."""
    gc.collect()
    return sum(size is None or x.size == size for x in fxflow.live_arrays())


# -- what closes over an array ---------------------------------------------------------


def with_vjp(a: Any) -> Any:
    f = custom_vjp(lambda x: (x * a).sum())
    f.defvjp(lambda x: ((x * a).sum(), None), lambda res, ct: (ct * a,))
    return f


def with_jvp(a: Any) -> Any:
    f = custom_jvp(lambda x: (x * a).sum())
    f.defjvp(lambda primals, tangents: (f(*primals), (tangents[0] * a).sum()))
    return f


def with_rule(a: Any) -> Any:
    """Only the rule closes over it, so that calls share the function's graph."""
    f = custom_jvp(lambda x: x)
    f.defjvp(lambda primals, tangents: (*primals, tangents[0] * a))
    return f


def with_backward(a: Any) -> Any:
    f = custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), lambda res, ct: (ct * a,))
    return f


def with_vmap(a: Any) -> Any:
    f = fxflow.custom_batching.custom_vmap(lambda x: x * a)
    f.def_vmap(lambda size, mapped, x: (x * a, True))
    return f


def on_host(a: Any, method: str | None = None) -> Callable[[Any], Any]:
    call = lambda x: np.asarray(x) * np.asarray(a)
    return lambda x: fxflow.pure_callback(call, LIKE, x, vmap_method=method)


def steps(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]


def loop(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    body = lambda c: (c[0] + 1, f(c[1]))
    return lambda x: lax.while_loop(lambda c: c[0] < 2, body, (0, x))[1]


def both(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: lax.cond(True, f, lambda x: x, x)


def total(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: f(x).sum()


def times(a: Any) -> Callable[[Any], Any]:
    return lambda x: x * a


CLOSURES: dict[str, Callable[[Any], Any]] = {
    "custom_vjp": lambda a: with_vjp(a)(X),
    "custom_vjp, grad": lambda a: grad(with_vjp(a))(X),
    "custom_vjp, vmap": lambda a: vmap(with_vjp(a))(X[None]),
    "custom_vjp, vmap, grad": lambda a: vmap(grad(with_vjp(a)))(X[None]),
    "custom_vjp, jit": lambda a: jit(grad(with_vjp(a)))(X),
    "custom_vjp, inner jit": lambda a: grad(jit(with_vjp(a)))(X),
    "custom_vjp, backward": lambda a: grad(total(with_backward(a)))(X),
    "custom_vjp, backward, vmap": lambda a: vmap(with_backward(a))(X[None]),
    "custom_jvp, grad": lambda a: grad(with_jvp(a))(X),
    "custom_jvp, jvp": lambda a: fxflow.jvp(with_jvp(a), (X,), (X,)),
    "custom_jvp, vmap": lambda a: vmap(with_jvp(a))(X[None]),
    "custom_jvp, rule": lambda a: grad(total(with_rule(a)))(X),
    "custom_jvp, rule, vmap": lambda a: grad(total(vmap(with_rule(a))))(X[None]),
    "custom_jvp, rule, cond": lambda a: grad(total(both(with_rule(a))))(X),
    "custom_jvp, rule, scan": lambda a: grad(total(steps(with_rule(a))))(X),
    "custom_jvp, rule, while": lambda a: loop(with_rule(a))(X),
    "custom_vmap": lambda a: vmap(with_vmap(a))(X[None]),
    "jit": lambda a: jit(times(a))(X),
    "jit, grad": lambda a: grad(jit(total(times(a))))(X),
    "jit, vmap": lambda a: vmap(jit(times(a)))(X[None]),
    "jit, static": lambda a: jit(lambda x, f: f(x), static_argnums=1)(X, times(a)),
    "scan": lambda a: steps(times(a))(X),
    "scan, grad": lambda a: grad(total(steps(times(a))))(X),
    "scan, jit": lambda a: steps(jit(times(a)))(X),
    "scan, vmap": lambda a: vmap(steps(times(a)))(X[None]),
    "cond": lambda a: both(times(a))(X),
    "cond, vmap": lambda a: vmap(
        lambda p: lax.cond(p, times(a), times(2.0), X), axis_size=2
    )(np.array([True, False])),
    "switch": lambda a: lax.switch(1, [times(2.0), times(a)], X),
    "while_loop": lambda a: loop(times(a))(X),
    "fori_loop": lambda a: lax.fori_loop(0, 3, lambda i, c: c * a, X),
    "map": lambda a: lax.map(lambda x: x * a.sum(), X),
    "associative_scan": lambda a: lax.associative_scan(lambda x, y: x + y * a[0], X),
    "checkpoint": lambda a: grad(total(fxflow.checkpoint(times(a))))(X),
    "closure_convert": lambda a: fxflow.closure_convert(times(a), X)[0](X),
    "linearize": lambda a: fxflow.linearize(times(a), X)[1](X),
    "vjp": lambda a: fxflow.vjp(times(a), X)[1](X),
    "linear_transpose": lambda a: fxflow.linear_transpose(times(a), X)(X),
    "make_graph": lambda a: fxflow.make_graph(times(a))(X),
    "pmap": lambda a: fxflow.pmap(times(a))(X[None]),
    "partial": lambda a: jit(fxflow.tree.Partial(lambda a, x: x * a, a))(X),
    "pure_callback": lambda a: on_host(a)(X),
    "pure_callback, jit": lambda a: jit(on_host(a))(X),
    "pure_callback, vmap": lambda a: vmap(on_host(a, "sequential"))(X[None]),
    "pure_callback, scan": lambda a: steps(on_host(a))(X),
    "debug.callback": lambda a: fxflow.debug.callback(lambda x: a, X),
    "debug.callback, vmap": lambda a: vmap(
        lambda x: fxflow.debug.callback(lambda x: a, x)
    )(X[:2]),
    "linear_solve": lambda a: grad(
        lambda x: lax.custom_linear_solve(
            times(a), x, lambda mv, b: b / a, symmetric=True
        ).sum()
    )(X),
    "vectorize": lambda a: fnp.vectorize(lambda x: x * a.sum())(X),
    "checkify": lambda a: fxflow.checkify.checkify(times(a))(X),
}


@pytest.mark.parametrize("name", sample(sorted(CLOSURES), 45, of="closures"))
def test_what_closes_over_an_array_frees_it(name: str) -> None:
    def run(i: int) -> None:
        CLOSURES[name](fnp.full(ODD, 1.0 + i))

    run(0)
    before = alive(ODD)
    for i in range(1, 4):
        run(i)
    assert alive(ODD) <= before


def test_custom_rules_free_arrays_at_once() -> None:
    """Without the garbage collector, which comes late where there are few objects."""
    x = fnp.ones(ODD)
    grad(with_vjp(fnp.full(ODD, 2.0)))(x)
    gc.collect()
    gc.disable()
    try:
        before = sum(a.size == ODD for a in fxflow.live_arrays())
        for i in range(20):
            grad(with_vjp(fnp.full(ODD, 1.0 + i)))(x)
        after = sum(a.size == ODD for a in fxflow.live_arrays())
    finally:
        gc.enable()
    assert after - before < 10


# -- every public function -------------------------------------------------------------


@pytest.mark.parametrize("call", sample(catalogue(), 120, of="memory"), ids=str)
def test_a_public_function_keeps_no_arrays(call: Call) -> None:
    call.run(*map(fnp.asarray, call.draw()))
    before = alive()
    for seed in (1, 2):
        call.run(*map(fnp.asarray, call.draw(seed=seed)))
    assert alive() <= before


# -- ever new shapes -------------------------------------------------------------------


def resident() -> int:
    """Bytes of memory of this process."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def of_a_shape(size: int) -> None:
    x = fnp.asarray(np.ones((size, 3), np.float32))
    (x * 2 + 1).sum()
    grad(lambda x: fnp.sin(x).sum())(x)
    lax.scan(lambda c, row: (c + row.sum(), None), 0.0, x)
    vmap(vmapped)(x)


@jit
def vmapped(row: Any) -> Any:
    return row * 2


def test_caches_are_bounded_for_ever_new_shapes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from fxflow.core.ir import graph
    from fxflow.core.runtime import bodies, eager

    caches.clear_caches()
    monkeypatch.setattr(eager.PLANS, "nbytes", 40 * eager.PLAN_BYTES)
    monkeypatch.setattr(eager, "PROGRAM_BYTES", 3_000_000)
    monkeypatch.setattr(bodies._bodies.room, "nbytes", 10 * bodies.NODE_BYTES)
    monkeypatch.setattr(graph, "MAX_MEMO", 8)
    counts = []
    for size in range(1, 31):
        of_a_shape(size)
        counts.append(sum(caches.sizes().values()))
    assert max(counts[20:]) < 1.3 * max(counts[8:20]), counts
    assert eager._programs.nbytes <= 3_000_000
    assert eager.PLANS.taken <= eager.PLANS.nbytes


@pytest.mark.soak
def test_memory_does_not_grow_over_1600_shapes() -> None:
    """Once the caches are full: the first 1,200 shapes fill them."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetraceWarning)
        for size in range(1, 1601):
            of_a_shape(size)
            if size % 100 == 0:
                gc.collect()
                found.append(resident() / 2**20)
    assert found[-1] < found[11] + 40, found
    assert found[-1] < found[0] + 350, found
