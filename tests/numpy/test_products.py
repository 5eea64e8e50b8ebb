"""Products of arrays against NumPy."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, AxisError, ShapeError
from tests.numpy.oracle import check, same

RNG = np.random.default_rng(0)


def f32(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


def c64(*shape: int) -> Any:
    return (f32(*shape) + 1j * f32(*shape)).astype(np.complex64)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 4)),
        ((2, 3), (3, 4)),
        ((5, 2, 3), (3, 4)),
        ((2, 3), (5, 3, 4)),
        ((5, 2, 3), (5, 3, 4)),
        ((5, 1, 2, 3), (6, 3, 4)),
        ((1, 2, 3), (5, 3, 4)),
        ((5, 2, 3), (1, 3, 4)),
        ((3,), (5, 3, 4)),
        ((5, 2, 3), (3,)),
        ((0, 3), (3, 4)),
        ((2, 0), (0, 4)),
    ],
)
def test_matmul(a: Any, b: Any) -> None:
    check("matmul", f32(*a), f32(*b), tol=1e-5)
    x, y = f32(*a), f32(*b)
    assert same(x @ y, fnp.asarray(x) @ y, 1e-5)
    assert same(x @ y, fnp.asarray(x) @ fnp.asarray(y), 1e-5)
    assert same(x @ y, x @ fnp.asarray(y), 1e-5)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "complex64"])
def test_matmul_dtypes(dtype: str) -> None:
    x = RNG.integers(0, 3, (3, 4)).astype(dtype)
    check("matmul", x, x.T)
    check("dot", x, x[0])
    check("einsum", "ij,ij->i", x, x)


def test_preferred_element_type() -> None:
    x = np.full((2, 300), 100, np.int8)
    out = fnp.matmul(x, x.T, preferred_element_type="int32")
    assert out.dtype == np.int32 and int(out[0, 0]) == 3000000
    for function in (
        fnp.dot,
        fnp.inner,
        lambda a, b, **k: fnp.einsum("ij,ij", a, b, **k),
    ):
        got = function(x, x.T if function is fnp.dot else x, preferred_element_type=int)
        assert got.dtype == np.int32
    half = np.ones((2, 2), np.float16)
    assert (
        fnp.einsum("ij->", half, preferred_element_type="float32").dtype == np.float32
    )


def test_promotion() -> None:
    assert fnp.matmul(
        np.ones((2, 2), np.int32), fnp.ones((2, 2), "bfloat16")
    ).dtype == (fnp.bfloat16)


@pytest.mark.parametrize(
    ("a", "b"),
    [((), (3,)), ((2, 3), ()), ((3,), (3,)), ((5, 2, 3), (4, 3, 2)), ((2, 3), (3,))],
)
def test_dot(a: Any, b: Any) -> None:
    check("dot", f32(*a), f32(*b), tol=1e-5)
    assert same(np.dot(f32(2, 3) * 0, f32(3)), fnp.asarray(f32(2, 3) * 0).dot(f32(3)))


def test_dot_with_number() -> None:
    x = f32(3)
    assert same(2 * x, fnp.dot(2, x), 1e-6)


@pytest.mark.parametrize(
    ("a", "b"), [((), (3,)), ((3,), (3,)), ((2, 3), (3,)), ((5, 2, 3), (4, 3))]
)
def test_inner(a: Any, b: Any) -> None:
    check("inner", f32(*a), f32(*b), tol=1e-5)


def test_vectors() -> None:
    check("vdot", c64(2, 3), c64(3, 2), tol=1e-5)
    check("vecdot", c64(4, 3), c64(3), tol=1e-5)
    check("vecdot", f32(3, 4), f32(3, 4), axis=0, tol=1e-5)
    check("matvec", f32(5, 2, 3), f32(3), tol=1e-5)
    check("matvec", f32(2, 3), f32(5, 3), tol=1e-5)
    check("vecmat", c64(3), c64(5, 3, 2), tol=1e-5)


def test_tensordot() -> None:
    a, b = f32(3, 4, 5), f32(4, 3, 2)
    check("tensordot", a, b, axes=((0, 1), (1, 0)), tol=1e-5)
    check("tensordot", a, f32(5, 2), axes=1, tol=1e-5)
    check("tensordot", a, f32(4, 5, 2), tol=1e-5)
    check("tensordot", a, b, axes=0, tol=1e-5)
    check("tensordot", a, b, axes=(0, 1), tol=1e-5)
    check("tensordot", a, b, axes=([-3], [1]), tol=1e-5)


def test_graphs_are_small() -> None:
    def nodes(function: Any, *args: Any) -> list[str]:
        return [
            n.primitive.name for n in fxflow.make_graph(function)(*args).graph.nodes
        ]

    a, b = f32(5, 2, 3), f32(5, 3, 4)
    assert nodes(fnp.matmul, a, b) == ["dot_general"]
    assert nodes(lambda x, y: fnp.einsum("bij,bjk->bik", x, y), a, b) == ["dot_general"]
    assert nodes(lambda x, y: fnp.einsum("ij,jk->ki", x, y), a[0], b[0]) == [
        "dot_general"
    ]


def test_gradients_of_einsum_agree_with_formulas() -> None:
    a, b = f32(2, 3), f32(3, 4)

    def total(x: Any, y: Any) -> Any:
        return fnp.einsum("ij,jk->k", x, y)[0]

    da, db = fxflow.grad(total, (0, 1))(a, b)
    want = np.zeros((3, 4), np.float32)
    want[:, 0] = a.sum(0)
    assert same(np.tile(b[:, 0], (2, 1)), da, 1e-5)
    assert same(want, db, 1e-5)
    got = fxflow.grad(lambda x: fnp.einsum("ii", x @ x))(f32(3, 3) * 0 + 1)
    assert same(np.full((3, 3), 2.0), got)


def test_vmap_agrees_with_numpy() -> None:
    a, b = f32(5, 2, 3), f32(5, 3, 4)
    assert same(a @ b, fxflow.vmap(fnp.matmul)(a, b), 1e-5)
    assert same(a @ b[0], fxflow.vmap(fnp.matmul, (0, None))(a, b[0]), 1e-5)
    got = fxflow.vmap(lambda x, y: fnp.einsum("ij,jk->ki", x, y), (0, None))(a, b[0])
    assert same((a @ b[0]).swapaxes(1, 2), got, 1e-5)


def test_shapes_and_axes_that_do_not_fit_are_refused() -> None:
    a, b = f32(2, 3), f32(2, 3)
    with pytest.raises(ShapeError, match=r"matmul: .*f32\[2,3\].*3 and 2 differ"):
        fnp.matmul(a, b)
    with pytest.raises(ShapeError, match="at least one axis"):
        fnp.asarray(a) @ 2
    with pytest.raises(ShapeError, match="broadcast"):
        fnp.matmul(f32(2, 3, 3), f32(4, 3, 3))
    with pytest.raises(ShapeError, match="dot"):
        fnp.dot(a, b)
    with pytest.raises(ArgumentError, match="asarray"):
        fnp.matmul([[1]], a)  # type: ignore[arg-type]
    with pytest.raises(AxisError):
        fnp.tensordot(a, b, ((2,), (0,)))
