"""`fxflow.extend`: an operation of one's own under every transformation."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import extend
from fxflow.core.ir.primitive import table
from fxflow.core.spmd import layouts
from fxflow.errors import ArgumentError


@pytest.fixture(autouse=True)
def table_unchanged() -> Iterator[None]:
    before = dict(table)
    yield
    # What fxflow registers comes with its first use, and stays.
    own = {n: p for n, p in table.items() if type(p).__module__.startswith("fxflow.")}
    table.clear()
    table.update({**own, **before})


def define() -> extend.Primitive:
    @extend.register
    class AxPlusY(extend.Primitive):
        """x * y + z: not linear, three operands, a jvp of its own."""

        name = "test_axpy"

        def abstract(self, x, y, z):
            return x

        def evaluate(self, x, y, z):
            return x * y + z

        def lower(self, ctx, x, y, z):
            kind = ctx.avals_out[0].mlir
            product = ctx.emit(f"stablehlo.multiply {x}, {y} : {kind}")
            return ctx.emit(f"stablehlo.add {product}, {z} : {kind}")

        def jvp(self, primals, tangents):
            x, y, _ = primals
            tx, ty, tz = map(extend.instantiate, tangents)
            return self.bind(*primals), self.bind(x, ty, self.bind(tx, y, tz))

        def transpose(self, cotangent, x, y, z):
            # Linear in x and z, or in y and z.
            zero = fnp.zeros(cotangent.shape, cotangent.dtype)
            linear = [type(a) is extend.Var for a in (x, y, z)]
            return [
                self.bind(cotangent, y, zero) if linear[0] else None,
                self.bind(x, cotangent, zero) if linear[1] else None,
                cotangent if linear[2] else None,
            ]

        def batch(self, size, args, mapped):
            whole = [
                a if m else fnp.broadcast_to(a, (size, *a.shape))
                for a, m in zip(args, mapped, strict=True)
            ]
            return self.bind(*whole), True

    return AxPlusY


@pytest.fixture
def axpy() -> Callable[..., fxflow.Array]:
    primitive = define()
    return lambda *args: primitive.bind(*map(fnp.asarray, args))


def test_the_new_operation_gives_its_values_by_every_path(
    axpy: Callable[..., fxflow.Array],
) -> None:
    args = [np.float32([1, 2]), np.float32([3, 4]), np.float32([5, 6])]
    assert axpy(*args).tolist() == fxflow.jit(axpy)(*args).tolist() == [8.0, 14.0]
    with fxflow.config.override(eager="xla"):
        assert axpy(*args).tolist() == [8.0, 14.0]


def test_derivatives_and_batches(axpy: Callable[..., fxflow.Array]) -> None:
    def f(x, y, z):
        return fnp.sum(axpy(x, y, z) ** 2)

    def same(x, y, z):
        return fnp.sum((x * y + z) ** 2)

    args = [fnp.array(a) for a in ([1.0, 2.0], [3.0, -4.0], [0.5, 6.0])]
    for transform in (
        lambda f: fxflow.grad(f, argnums=(0, 1, 2)),
        lambda f: fxflow.jit(fxflow.grad(f, argnums=(0, 1, 2))),
        lambda f: lambda *xs: fxflow.jvp(f, xs, xs[::-1]),
        lambda f: fxflow.hessian(f, argnums=1),
        lambda f: lambda x, y, z: fxflow.vmap(f, (0, None, None))(x[:, None], y, z),
        lambda f: (
            lambda x, y, z: fxflow.jit(fxflow.vmap(fxflow.grad(f), (None, 0, None)))(
                x, fnp.stack([y, x]), z
            )
        ),
    ):
        got, want = transform(f)(*args), transform(same)(*args)
        for a, b in zip(*map(fxflow.tree.leaves, (got, want)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5)


def test_a_class_may_be_defined_again() -> None:
    first = define()
    second = define()
    assert table["test_axpy"] is second is not first
    other = type("Other", (type(second),), {"__module__": "elsewhere"})
    with pytest.raises(TypeError, match=r"two primitives .* elsewhere\.Other"):
        extend.register(other)


def test_own_lowerings(axpy: Callable[..., fxflow.Array]) -> None:
    f = fxflow.jit(axpy)
    one = fnp.ones(2)
    assert f(one, one, one).tolist() == [2.0, 2.0]
    primitive = table["test_axpy"]
    extend.register_lowering(primitive, lambda ctx, x, y, z: x, "cpu")
    assert f(one, 5 * one, one).tolist() == [1.0, 1.0]
    assert (
        "stablehlo.multiply"
        in f.trace(one, one, one).lower(platforms=("gpu",)).as_text()
    )
    extend.register_lowering(primitive, lambda ctx, x, y, z: y, "cuda")
    text = f.trace(one, one, one).lower(platforms=("gpu",)).as_text()
    assert "stablehlo.multiply" not in text


def test_invalid_lowerings_are_refused() -> None:
    with pytest.raises(ArgumentError, match="one that `register` made"):
        extend.register_lowering(extend.Elementwise, lambda ctx: "", "cpu")
    with pytest.raises(ArgumentError, match="lower must be a function"):
        extend.register_lowering(table["sin"], None, "cpu")


def test_graphs_can_be_walked() -> None:
    made = fxflow.make_graph(lambda x: fxflow.lax.cond(x > 0, fnp.sin, fnp.cos, x))(1.0)
    assert isinstance(made, extend.FunctionGraph)
    assert isinstance(made.graph, extend.Graph)
    names = []

    def visit(graph: extend.Graph) -> None:
        for node in graph.nodes:
            assert isinstance(node, extend.Node)
            assert all(isinstance(a, extend.Var | extend.Literal) for a in node.inputs)
            assert all(isinstance(a.aval, extend.Aval) for a in node.outputs)
            names.append(node.primitive.name)
            for _, inner in extend.subgraphs(node.params):
                visit(inner)

    visit(made.graph)
    assert {"sin", "cos"} <= set(names)

    def kind(x):
        assert isinstance(x, extend.Tracer)
        return x

    fxflow.make_graph(kind)(1.0)
    assert set(extend.__all__) <= set(dir(extend)) and "extend" in dir(fxflow)


def test_shared_rules_of_operations_stay_themselves() -> None:
    """Automatic sharding compares them by identity."""
    assert extend.Primitive
    layout: Any = table["reduce_sum"].layout
    assert layout.__func__ is layouts.reduction
