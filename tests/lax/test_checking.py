"""The operation `check`; see also `transforms/test_checkify`."""

import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import checkify
from fxflow.errors import CheckError


def test_in_graphs_it_is_kept():
    graph = fxflow.make_graph(lambda x: checkify.check(x > 0, "no"))(1.0)
    assert [n.primitive.name for n in graph.nodes][-1] == "check"
    assert graph.effects == {"check"}


def test_eager_under_transformations():
    def f(x):
        checkify.check(x > 0, "got {}", x)
        return x * x

    assert float(fxflow.grad(f)(2.0)) == 4.0
    for call in (lambda: fxflow.grad(f)(-2.0), lambda: fxflow.jvp(f, (-2.0,), (1.0,))):
        with pytest.raises(CheckError, match=r"got -2\.0"):
            call()
    with pytest.raises(CheckError, match=r"got -3\.0"):
        fxflow.vmap(f)(fnp.array([1.0, -3.0, -4.0]))
    with pytest.raises(CheckError, match=r"got -3\.0"):
        fxflow.vmap(lambda x: checkify.check(False, "got {}", x))(fnp.array([-3.0, 1]))


def test_a_batch_of_nothing_has_nothing_to_check():
    def checked(x: fxflow.Array) -> fxflow.Array:
        checkify.debug_check(x > 0, "must be positive")
        return x

    assert fxflow.vmap(checked)(fnp.zeros(0)).shape == (0,)
    error, _ = checkify.checkify(fxflow.vmap(checked))(fnp.zeros(0))
    assert error.get() is None
