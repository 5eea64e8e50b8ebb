"""Objects that stand for arrays."""

import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax
from fxflow.core.arrays import protocol
from fxflow.errors import ArgumentError


class Own:
    def __fxflow_array__(self):
        return fnp.ones(2)


class Other:
    def __other_array__(self):
        return fnp.ones(2)


def test_only_instances_have_the_array_method() -> None:
    assert protocol.array_method(Own())().tolist() == [1, 1]
    assert protocol.array_method(Own) is None
    assert protocol.array_method(1.0) is None


def test_another_name(monkeypatch) -> None:
    monkeypatch.setattr(protocol, "_names", ["__fxflow_array__"])
    with pytest.raises(ArgumentError):
        fnp.sin(Other())
    protocol.accept("__other_array__")
    protocol.accept("__other_array__")
    assert len(protocol._names) == 2
    assert (fnp.ones(2) + Other()).tolist() == (Other.__other_array__(0) * 2).tolist()
    assert fnp.dot(fnp.ones(2), Other()) == 2
    assert fnp.asarray([Other(), Other()]).shape == (2, 2)
    assert fnp.arange(3)[fnp.asarray(Other(), "int32")].tolist() == [1, 1]


def test_what_it_stands_for_is_differentiated_and_vectorized() -> None:
    class Holder:
        def __init__(self, value):
            self.value = value

        def __fxflow_array__(self):
            return self.value

        @property
        def aval(self):  # as objects do that pass on what they do not have
            return self.value.aval

    def f(x):
        h = Holder(x)
        return fnp.sum(fnp.sin(h) * fnp.dot(h, h) + lax.mul(h, fnp.ones(3)))

    def g(x):
        return fnp.sum(fnp.sin(x) * fnp.dot(x, x) + x)

    x = fnp.arange(3.0)
    for transform in (
        lambda f: f,
        fxflow.jit,
        fxflow.grad,
        lambda f: fxflow.jit(fxflow.grad(f)),
        lambda f: fxflow.grad(fxflow.jit(f)),
        lambda f: lambda x: fxflow.jvp(f, (x,), (x,))[1],
        lambda f: lambda x: fxflow.vmap(f)(x[None]),
    ):
        found, want = transform(f)(x), transform(g)(x)
        assert fnp.allclose(found, want), (found, want)
