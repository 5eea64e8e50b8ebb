"""Differences between signatures, in words."""

from fxflow.core.aval import Aval
from fxflow.transforms.explain import Signature, _ordinal


def signature(*avals, static=None, labels=None, context=()):
    labels = labels or [f"x{i}" for i in range(len(avals))]
    return Signature(list(labels), tuple(avals), len(avals), static or {}, context)


def test_differences():
    import numpy as np

    f3, f4 = (Aval((n,), np.dtype("f4")) for n in (3, 4))
    assert signature(f4).differences(signature(f3)) == [
        "argument x0 changed from f32[3] to f32[4]"
    ]
    assert "argument x1 is new: f32[3]" in signature(f3, f3).differences(signature(f3))
    assert "argument x1 is gone" in signature(f3).differences(signature(f3, f3))
    assert signature(static={"n": 2}).differences(signature(static={"n": 1})) == [
        "static argument n changed from 1 to 2"
    ]
    assert signature(f3).differences(signature(f3)) == []
    assert signature(f3, context=1).differences(signature(f3)) != []


def test_ordinals():
    assert [_ordinal(n) for n in (1, 2, 3, 4, 11, 21, 112)] == [
        "1st",
        "2nd",
        "3rd",
        "4th",
        "11th",
        "21st",
        "112th",
    ]
