"""What names stand for."""

from fxflow.core.sizes.solving import Equation, solved
from fxflow.core.sizes.texts import parsed


def equations(*texts):
    return [Equation(parsed(text), i, text) for i, text in enumerate(texts)]


def test_the_order_of_steps():
    steps, missing = solved(equations("2*t + b", "b", "b + 3", "b*t"))
    found = [(step.name, str(step.rest), step.factor) for step in steps]
    # Either axis may be asked for b; what is left over has to be right.
    assert found[:2] == [("b", "0", 1), ("b", "3", 1)][:1] + [("t", "b", 2)]
    assert [step.equation.what for step in steps if step.name is None] == [
        "b + 3",
        "b*t",
    ]
    assert not missing


def test_names_that_no_axis_says():
    steps, missing = solved(equations("a*b", "floordiv(c, 2)", "d"))
    assert [step.name for step in steps] == ["d"]
    assert missing == {"a", "b", "c"}
