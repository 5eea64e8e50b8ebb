"""Objects that stand for arrays."""

import pytest

import fxflow.numpy as fnp
from fxflow.core.arrays import protocol
from fxflow.errors import ArgumentError


class Own:
    def __fxflow_array__(self):
        return fnp.ones(2)


class Other:
    def __other_array__(self):
        return fnp.ones(2)


def test_method() -> None:
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
