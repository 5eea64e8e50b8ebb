"""Functions of pytrees as functions of leaves."""

import pytest

from fxflow.core import tree
from fxflow.errors import ArgumentError
from fxflow.transforms.flat import FlatFunction


def test_result_and_aux():
    flat = FlatFunction(
        lambda d: ({"y": d["a"]}, [d["b"]]),
        tree.flatten(({"a": 1, "b": 2},))[1],
        "f",
        has_aux=True,
    )
    outs = flat(1.0, 2.0)
    assert outs == [1.0, 2.0]
    assert flat.result(outs) == {"y": 1.0} and flat.aux(outs) == [2.0]


def test_errors_name_the_leaf():
    one = tree.flatten((1,))[1]
    with pytest.raises(ArgumentError, match=r"f returned at \['k'\]\[0\]"):
        FlatFunction(lambda x: {"k": ["text"]}, one, "f")(1.0)
    with pytest.raises(ArgumentError, match="pair"):
        FlatFunction(lambda x: x, one, "f", has_aux=True)(1.0)
