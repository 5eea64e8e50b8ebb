"""Functions of numbers made functions of arrays."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy.vectorization import parse_signature
from tests.numpy.oracle import same

V = np.arange(4.0, dtype=np.float32)


def test_broadcasting() -> None:
    larger = fnp.vectorize(lambda x, y: fnp.where(x > y, x, 2 * y))
    want = np.where(V[:, None] > V[:3], V[:, None], 2 * V[:3])
    assert same(want, larger(V[:, None], V[:3]))
    assert larger(1.0, 2.0).shape == ()
    assert same(want, fxflow.jit(larger)(V[:, None], V[:3]))


def test_signatures() -> None:
    flip = fnp.vectorize(lambda a: a[::-1], signature="(n)->(n)")
    assert same(V.reshape(2, 2)[:, ::-1], flip(V.reshape(2, 2)))
    outer = fnp.vectorize(lambda a, b: a[:, None] * b, signature="(n),(m)->(n,m)")
    assert outer(np.ones((5, 1, 2)), np.ones((3, 4))).shape == (5, 3, 2, 4)
    ends = fnp.vectorize(lambda a: (a[0], a[-1]), signature="(n)->(),()")
    assert same((V.reshape(2, 2)[:, 0], V.reshape(2, 2)[:, 1]), ends(V.reshape(2, 2)))


def test_excluded_arguments() -> None:
    scale = fnp.vectorize(lambda x, n, *, m=1: x * n * m, excluded={1, "m"})
    assert same(V * 6, scale(V, 3, m=2))
    named = fnp.vectorize(lambda x, y: x - y)
    assert same(V - 1, named(V, y=1.0))


def test_docstring_and_name_stay() -> None:
    def twice(x: Any) -> Any:
        """Doubles."""
        return 2 * x

    assert fnp.vectorize(twice).__name__ == "twice"
    assert fnp.vectorize(twice).__doc__ == "Doubles."


@pytest.mark.parametrize("text", ("(n)", "n->n", "(n)->(n", "(n,)->", "->()"))
def test_invalid_signatures_are_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match="is not of the form"):
        fnp.vectorize(lambda x: x, signature=text)


def test_parsing() -> None:
    assert parse_signature("(n, m),()->(m)") == ([("n", "m"), ()], [("m",)])


def test_shapes_that_do_not_fit() -> None:
    dot = fnp.vectorize(lambda a, b: a[0] * b[0], signature="(n),(n)->()")
    with pytest.raises(ShapeError, match="core axis 'n' has lengths 2 and 3"):
        dot(np.ones(2), np.ones(3))
    with pytest.raises(ShapeError, match="needs the core axes"):
        dot(1.0, np.ones(3))
    with pytest.raises(ArgumentError, match="has 2 arguments, got 1"):
        dot(np.ones(2))
    with pytest.raises(ShapeError, match="a result needs the core axes"):
        fnp.vectorize(lambda a: a, signature="(n)->()")(np.ones(2))
    with pytest.raises(ArgumentError, match="1 results, the function returned 2"):
        fnp.vectorize(lambda a: (a, a), signature="()->()")(1.0)
    with pytest.raises(ArgumentError, match="excluded must hold"):
        fnp.vectorize(lambda a: a, excluded={1.5})


def test_frompyfunc() -> None:
    mixed = fnp.frompyfunc(lambda x, y: x + 2 * y, 2, 1, identity=0)
    assert same(V + 2 * V, mixed(V, V)) and mixed.identity == 0
    pair = fnp.frompyfunc(lambda x: (x, -x), 1, 2)
    assert same((V, -V), pair(V)) and pair.nout == 2
    with pytest.raises(ArgumentError, match="frompyfunc: takes a function"):
        fnp.frompyfunc(3, 1, 1)


def test_frompyfunc_of_one_function_is_one_ufunc() -> None:
    def f(x, y):
        return x + y

    one, other = (fnp.frompyfunc(f, 2, 1, identity=0) for _ in range(2))
    assert one == other and hash(one) == hash(other)
    assert one != fnp.frompyfunc(f, 2, 1)
    assert one != fnp.frompyfunc(lambda x, y: x + y, 2, 1, identity=0)
    assert fnp.sin == fnp.sin != fnp.cos
