"""Results that take the memory of an operand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels, lax
from fxflow.core.arrays import typeof
from fxflow.kernels import BlockSpec
from fxflow.lax.kernels import in_place as lax_in_place
from fxflow.lax.kernels.in_place import free_operands, in_place
from tests.lax.kernels.samples import params_of

X = np.random.default_rng(0).normal(size=(8, 8)).astype(np.float32)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lax_in_place, "LEAST", 0)


def shares(f: Any, *args: Any) -> int:
    """Returns how many results of kernels take an operand's memory; compares values."""
    program = lambda *given: f(*(x * 2 for x in given))
    doubled = [2 * x for x in args]
    lowered = fxflow.jit(program).lower(*args)
    with fxflow.config.override(passes="none"):
        expected = f(*doubled)
    found = lowered.compile()(*args)
    for a, b in zip(
        fxflow.tree.leaves(found), fxflow.tree.leaves(expected), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    return lowered.as_text().count("output_operand_alias<")


def rows(body: Any, **options: Any) -> Any:
    return kernels.kernel("i:4 v -> i:4 v", out=lambda x: x, **options)(body)


def whole(body: Any, **options: Any) -> Any:
    return kernels.call(body, X, **options)


def softmax(x: Any, o: Any) -> None:
    e = fnp.exp(x[...] - fnp.max(x[...], 1, keepdims=True))
    o[...] = e / fnp.sum(e, 1, keepdims=True)


def with_its_transpose(x: Any, o: Any) -> None:
    o[...] = x[...] + x[...].T


def transposed(x: Any, o: Any) -> None:
    o[...] = x[...].T


def backwards(x: Any, o: Any) -> None:
    v = x[...]
    o[...] = v[::-1] - v[0] + fnp.concatenate([v[1:], v[:1]])


def product(x: Any, o: Any) -> None:
    o[...] = kernels.dot(x[...], x[...])


def rows_in_a_loop(x: Any, o: Any) -> None:
    def step(i: Any, total: Any) -> Any:
        return total + v[i]

    v = x[...]
    o[...] = v - lax.fori_loop(0, v.shape[0], step, fnp.zeros(8))


@pytest.mark.parametrize(
    "f",
    [
        *(rows(body) for body in (softmax, backwards, rows_in_a_loop)),
        *(whole(body) for body in (with_its_transpose, transposed, product)),
        whole(with_its_transpose, reference=lambda x: x + x.T),
    ],
)
def test_a_kernel_that_reads_before_it_writes(f: Any) -> None:
    assert shares(f, X) == 1


def test_blocks_that_reach_over_the_end() -> None:
    assert shares(rows(softmax), X[:7]) == 1


def test_a_sum_beside_it() -> None:
    """The gradient of rows and that of what is added to all of them."""

    @kernels.kernel("i:4 v, i:4 v -> i:4 v, v", out=lambda x, t: (x, x[0]), sums="i")
    def gradients(x: Any, t: Any, dx: Any, db: Any) -> None:
        dx[...] = t[...] * x[...]
        db[...] = fnp.sum(t[...] + x[...], 0)

    many = np.tile(X, (64, 1))
    for x in (X, many, many[:-3]):
        assert shares(gradients, x, x + 1) == 1


def test_only_one_of_several_results() -> None:
    @kernels.kernel("i:4 v, i:4 v -> i:4 v, i:4 v", out=lambda x, y: (x, y))
    def both(x: Any, y: Any, a: Any, b: Any) -> None:
        a[...] = x[...] - y[...]
        b[...] = x[...] + 2 * y[...]

    assert shares(both, X, X + 1) == 1


def test_a_result_that_starts_with_an_operand() -> None:
    def body(x: Any, o: Any) -> None:
        o[...] += 1.0
        o[0] = o[1] * 2

    spec = BlockSpec((4, 8), lambda i: (i, 0))
    options = {"grid": 2, "in_specs": [spec], "out_specs": spec, "aliases": {0: 0}}
    assert shares(kernels.call(body, X, **options), X) == 1

    def reading(x: Any, o: Any) -> None:
        o[...] += 1.0
        o[0] = x[1]

    assert shares(kernels.call(reading, X, **options), X) == 0


def writing_twice(x: Any, o: Any) -> None:
    o[...] = x[...]
    o[0] = x[1]


def adding(x: Any, o: Any) -> None:
    o[...] = fnp.zeros(x.shape)
    o[...] += x[...]


def row_by_row(x: Any, o: Any) -> None:
    @kernels.loop(0, 4)
    def _(i: Any) -> None:
        o[i] = x[3 - i]


def in_order(x: Any, o: Any) -> None:
    o[...] = x[...] + 1


@pytest.mark.parametrize(
    "f",
    [
        *(rows(body) for body in (writing_twice, adding, row_by_row)),
        # Each program reads all rows.
        kernels.kernel("j v -> i:4 v", out=lambda x: x)(
            lambda x, o: o.set(x[kernels.ds(4 * kernels.program_id(0), 4)])
        ),
        whole(in_order, grid=2, kinds=["arbitrary"]),
        kernels.call(
            in_order,
            X,
            grid=2,
            in_specs=[BlockSpec((4, 8), lambda i: (1 - i, 0))],
            out_specs=BlockSpec((4, 8), lambda i: (i, 0)),
        ),
        kernels.kernel("i:4 v -> i:4 v", out=lambda x: kernels.like(x, "int32"))(
            lambda x, o: o.set(x[...].astype("int32"))
        ),
    ],
)
def test_memory_of_its_own(f: Any) -> None:
    assert shares(f, X) == 0


def test_operands_that_are_read_later_are_kept() -> None:
    def free(f: Any, *args: Any) -> list[frozenset[int]]:
        graph = fxflow.make_graph(f)(*args).graph
        found = free_operands(graph)
        return [
            found[i]
            for i, node in enumerate(graph.nodes)
            if node.primitive.name == "kernel_call"
        ]

    f = rows(softmax)
    assert free(f, X) == [frozenset()]
    assert free(lambda x: f(x + 1), X) == [{0}]
    assert free(lambda x: f(fnp.reshape(x + 1, (8, 8))), X) == [{0}]
    assert free(lambda x: f(fnp.zeros((8, 8))) + x, X) == [frozenset()]
    assert free(lambda x: f(f(x + 1)), X) == [{0}, {0}]

    def again(x: Any) -> Any:
        y = x + 1
        return f(fnp.reshape(fnp.reshape(y, 64), (8, 8))) + y

    assert free(again, X) == [frozenset()]
    assert free(lambda x: (lambda y: (f(y), y))(x + 1), X) == [frozenset()]
    two = kernels.kernel("i:4 v, i:4 v -> i:4 v", out=lambda x, y: x)(
        lambda x, y, o: o.set(x[...] + y[...])
    )
    assert free(lambda x: (lambda y: two(y, y))(x + 1), X) == [frozenset()]


def test_small_operands_keep_their_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    params = params_of(rows(softmax), X)
    avals = [typeof(fnp.asarray(X))]
    new, pairs = in_place(params, avals, {0})
    assert pairs == ((0, 0),) and new.graph is not params.graph
    assert in_place(params, avals, ()) == (params, ())
    monkeypatch.setattr(lax_in_place, "LEAST", avals[0].nbytes + 1)
    assert in_place(params, avals, {0}) == (params, ())


def test_the_gradient_of_logits_is_where_they_were() -> None:
    def loss(w: Any, x: Any, labels: Any) -> Any:
        z = x @ w
        top = fnp.max(z, 1, keepdims=True)
        total = fnp.log(fnp.sum(fnp.exp(z - top), 1)) + top[:, 0]
        return fnp.mean(total - fnp.take_along_axis(z, labels[:, None], 1)[:, 0])

    w, x = (np.zeros(shape, np.float32) for shape in ((8, 1024), (256, 8)))
    labels = np.zeros(256, np.int32)
    program = fxflow.jit(fxflow.value_and_grad(loss)).lower(w, x, labels)
    temporary = program.compile().memory_analysis()["temp_size_in_bytes"]
    assert temporary < 1.2 * 4 * 256 * 1024
