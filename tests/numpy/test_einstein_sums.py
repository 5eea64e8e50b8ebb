"""`einsum` against NumPy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from tests.numpy.oracle import check, quick, same

RNG = np.random.default_rng(0)


def f32(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


EINSUMS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    ("ij,jk->ki", (2, 3), (3, 4)),
    ("ba", (2, 3)),
    ("ii", (3, 3)),
    ("ii->i", (3, 3)),
    ("iij->ji", (3, 3, 2)),
    ("iii->i", (3, 3, 3)),
    ("ij->", (2, 3)),
    ("i,i->i", (3,), (3,)),
    ("i,j->ij", (3,), (4,)),
    ("i,j->ji", (3,), (4,)),
    (",i->i", (), (4,)),
    ("...ij,...jk->...ik", (5, 2, 3), (3, 4)),
    ("...ij,...jk->...ik", (5, 1, 2, 3), (6, 3, 4)),
    ("i...,i...->...", (3, 4), (3, 4)),
    ("...,...", (3, 1), (1, 4)),
    ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)),
    ("bhqd,bkhd->bhqk", (2, 3, 4, 5), (2, 6, 3, 5)),
    ("ij,kl->", (2, 3), (4, 5)),
    ("ij,ij->ij", (1, 3), (2, 3)),
    ("ij,ij->i", (2, 1), (2, 3)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)),
    ("ij,jk,kl,lm->im", (2, 3), (3, 4), (4, 5), (5, 2)),
    ("ea,fb,abcd,gc,hd->efgh", (2, 3), (2, 3), (3, 3, 3, 3), (2, 3), (2, 3)),
    ("i,i,i->", (4,), (4,), (4,)),
    ("ij,j,k->ik", (2, 1), (3,), (2,)),
    ("ij , jk -> ik", (2, 3), (3, 0)),
]


@pytest.mark.parametrize("case", EINSUMS, ids=lambda c: f"{c[0]}")
def test_einsum(case: Any) -> None:
    text, *shapes = case
    operands = [f32(*shape) for shape in shapes]
    check("einsum", text, *operands, tol=1e-4)
    if len(operands) > 2:
        for optimize in (False, True, "greedy", "optimal"):
            got = fnp.einsum(text, *operands, optimize=optimize)
            assert same(np.einsum(text, *operands), got, 1e-4)


@quick
@given(st.data())
def test_any_einsum(data: Any) -> None:
    sizes = {"a": 2, "b": 3, "c": 1, "d": 4}
    terms = [
        data.draw(st.text("abcd", min_size=0, max_size=3))
        for _ in range(data.draw(st.integers(1, 3)))
    ]
    used = sorted(set("".join(terms)))
    result = "".join(data.draw(st.permutations(used))[: data.draw(st.integers(0, 4))])
    text = ",".join(terms) + "->" + result
    operands = [f32(*(sizes[n] for n in term)) for term in terms]
    assert same(np.einsum(text, *operands), fnp.einsum(text, *operands), 1e-4)


def test_einsum_with_lists() -> None:
    a, b = f32(2, 3), f32(3, 4)
    assert same(a @ b, fnp.einsum(a, [0, 1], b, [1, 2], [0, 2]), 1e-5)
    assert same((a @ b).T, fnp.einsum(a, [7, 30], b, [30, 2]), 1e-5)
    c = f32(5, 2, 3)
    want = np.einsum(c, [..., 0], b, [0, 1], [1, ...])
    assert same(want, fnp.einsum(c, [..., 0], b, [0, 1], [1, ...]), 1e-5)


def test_einsum_with_words() -> None:
    x, y = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    given = (x, ["row", "in"], y, ["in", "out"])
    np.testing.assert_allclose(fnp.einsum(*given, ["out", "row"]), (x @ y).T)
    # Without a result: in the order of the words.
    np.testing.assert_allclose(fnp.einsum(*given), (x @ y).T)
    np.testing.assert_allclose(fnp.einsum(x, ["row", ...], [..., "row"]), x.T)


def test_einsum_path() -> None:
    a, b, c = f32(2, 30), f32(30, 4), f32(4, 50)
    path, report = fnp.einsum_path("ij,jk,kl->il", a, b, c)
    assert path == ["einsum_path", (0, 1), (0, 1)] and "FLOP" in report
    assert same(a @ b @ c, fnp.einsum("ij,jk,kl->il", a, b, c, optimize=path), 1e-3)


def test_subscripts_that_do_not_fit_are_refused() -> None:
    a, b = f32(2, 3), f32(2, 3)
    with pytest.raises(ArgumentError, match="of 2 operands, got 1"):
        fnp.einsum("ij,jk", a)
    with pytest.raises(ArgumentError, match="of 3 axes"):
        fnp.einsum("ijk", a)
    with pytest.raises(ArgumentError, match="'z'"):
        fnp.einsum("ij->z", a)
    with pytest.raises(ArgumentError, match="twice"):
        fnp.einsum("ij->ii", a)
    with pytest.raises(
        ShapeError, match=r"'j' has length 3 in operand 0 .* 2 in operand 1"
    ):
        fnp.einsum("ij,jk", a, b)
    with pytest.raises(ArgumentError, match="letters"):
        fnp.einsum("i1", a)


def test_bools() -> None:
    x = np.eye(3, dtype=bool)
    assert fnp.einsum("aa", x).tolist() is True
    assert fnp.einsum("ab->a", x).tolist() == [True, True, True]
    np.testing.assert_array_equal(fnp.einsum("ab,bc", x, ~x), np.einsum("ab,bc", x, ~x))
