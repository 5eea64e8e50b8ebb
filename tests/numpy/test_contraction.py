"""Products of labelled operands against `numpy.einsum`."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ShapeError
from fxflow.numpy import contraction
from tests.numpy.oracle import same

RNG = np.random.default_rng(0)


def f32(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


def nodes(function: Any, *args: Any) -> list[str]:
    return [n.primitive.name for n in fxflow.make_graph(function)(*args).graph.nodes]


@pytest.mark.parametrize(
    ("xs", "ys", "keep", "operation"),
    [
        ("ij", "jk", "ik", "dot_general"),
        ("ij", "jk", "ki", "dot_general"),
        ("bij", "bjk", "bik", "dot_general"),
        ("ij", "ij", "ij", "mul"),
        ("i", "ij", "ji", "mul"),
        ("ij", "kl", "ijkl", "dot_general"),
        ("ijl", "jk", "ik", "dot_general"),
    ],
)
def test_product(xs: str, ys: str, keep: str, operation: str) -> None:
    lengths = dict(zip("bijkl", (2, 3, 4, 5, 6), strict=True))
    x, y = (f32(*(lengths[n] for n in labels)) for labels in (xs, ys))

    def product(x: Any, y: Any) -> Any:
        out, labels = contraction.product(
            x, tuple(xs), y, tuple(ys), tuple(keep), None, None
        )
        return contraction.ordered(out, labels, tuple(keep))

    want = np.einsum(f"{xs},{ys}->{keep}", x, y)
    assert same(want, product(fnp.asarray(x), fnp.asarray(y)), 1e-5)
    assert operation in nodes(product, x, y)


def test_no_transpose_where_the_order_is_free() -> None:
    def swapped(x: Any, y: Any) -> Any:
        return contraction.product(
            x, ("i", "j"), y, ("j", "k"), ("k", "i"), None, None
        )[0]

    assert nodes(swapped, f32(2, 3), f32(3, 4)) == ["dot_general"]


def test_sums_keep_the_dtype() -> None:
    x = fnp.asarray([[100, 100]], "int8")
    out, labels = contraction.summed(x, ("i", "j"), {"j"})
    assert labels == ("i",) and out.dtype == np.int8
    assert contraction.summed(x, ("i", "j"), set()) == (x, ("i", "j"))


def test_bools_are_multiplied_by_and() -> None:
    x = fnp.asarray([True, False])
    out, _ = contraction.product(x, ("i",), x, ("i",), ("i",), None, None)
    assert out.tolist() == [True, False] and out.dtype == bool


def test_labelled_products_broadcast_the_axes_before() -> None:
    x, y = fnp.asarray(f32(5, 1, 3)), fnp.asarray(f32(4, 3))
    core = ("k",)
    out = contraction.labelled_product("f", x, core, y, core, (), None, None)
    assert same(np.einsum("abk,bk->ab", np.broadcast_to(x, (5, 4, 3)), y), out, 1e-5)
    with pytest.raises(ShapeError, match=r"f: axis -1 of f32\[5,1,3\] and axis -1"):
        contraction.labelled_product("f", x, core, y[:, :2], core, (), None, None)
    with pytest.raises(ShapeError, match="f: the axes before the last 1"):
        wide = fnp.zeros((2, 4, 3))
        contraction.labelled_product("f", x, core, wide, core, (), None, None)
