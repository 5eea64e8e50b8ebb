"""The search on the host, and its words."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow import make_graph
from fxflow.transforms.searching import Search, summary


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.float32(2), "f32[] 2.0"),
        (np.array([0, 1], "f4"), "f32[2], 0.0 to 1.0, 1 of 2 zero"),
        (np.array([np.nan, np.inf]), "f64[2], 1 of 2 nan, 1 of 2 inf"),
        (np.array([3, -1], "i4"), "i32[2], -1 to 3"),
        (np.ones((0, 2), "f4"), "f32[0,2]"),
        (np.ones(2, ml_dtypes.bfloat16), "bf16[2], 1 to 1"),
        (np.ones(2, bool), "bool[2]"),
        (None, "not kept"),
    ],
)
def test_summary(value, words):
    assert summary(value) == words


def test_the_earliest_birth_of_a_result_is_found():
    def f(x):
        early = fnp.sqrt(x)
        late = fnp.log(x)
        return late + early

    made = make_graph(f)(-1.0)
    found = Search(("nan",), False, ["x"]).find(made.graph, [np.float32(-1)])
    assert found.operation == "sqrt" and str(found) == found.text
    assert found.history == (("x = f32[] -1.0",),)
    assert Search(("inf",), False, ["x"]).find(made.graph, [np.float32(-1)]) is None


def test_values_are_dropped_when_they_are_many(monkeypatch):
    monkeypatch.setattr("fxflow.transforms.searching.KEPT_BYTES", 0)
    made = make_graph(lambda x: fnp.log(fnp.sin(x) - 2))(1.0)
    found = Search(("nan",), False, ["x"]).find(made.graph, [np.float32(1)])
    assert (found.operation == "log" and "not kept" in found.text) or found.history
