"""Sizes as text."""

import pytest

from fxflow.core.sizes.size import Size
from fxflow.core.sizes.texts import parsed


@pytest.mark.parametrize(
    ("text", "shown", "value"),
    [
        ("b", "b", 5),
        ("2*t + 1", "2*t + 1", 7),
        ("1 + t*2", "2*t + 1", 7),
        ("b - t", "b - t", 2),
        ("-1*t + b", "b - t", 2),
        ("b*t - t*b + 4*b", "4*b", 20),
        ("b^2*t", "b^2*t", 75),
        ("(b + 1)*(b - 1)", "b^2 - 1", 24),
        ("floordiv(b, 2)", "floordiv(b, 2)", 2),
        ("b // 2 + b % 2", "floordiv(b, 2) + mod(b, 2)", 3),
        ("floordiv(4*b + 3, 2)", "2*b + 1", 11),
        ("mod(b + t, 3) + 1", "mod(b + t, 3) + 1", 3),
        ("max(b, t) + min(b, t)", "max(b, t) + min(b, t)", 8),
    ],
)
def test_expressions(text, shown, value):
    size = parsed(text)
    assert isinstance(size, Size)
    assert str(size) == shown
    assert size.evaluate({"b": 5, "t": 3}) == value
    assert parsed(shown) == size


def test_constant_texts_become_numbers():
    assert [parsed(t) for t in ("3", "0", "b - b + 2", "max(2, 5)")] == [3, 0, 2, 5]


@pytest.mark.parametrize(
    "text",
    ["", "b +", "2 b", "b^t", "b^99", "f(b)", "max(b)", "max(b, 1, 2)", "b; c"]
    + ["(" * 200 + "b" + ")" * 200, "b" * 2000, "*".join(["(a+b+c+d+e+f+g+h)"] * 20)]
    + ["b // 0", "mod(b, 0)", " "],
    ids=range(15),
)
def test_invalid_sizes_are_refused(text):
    with pytest.raises(ValueError, match="'"):
        parsed(text)
