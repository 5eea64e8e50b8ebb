"""Bounds of sizes."""

import math
import random

import pytest

from fxflow.core.sizes.bounds import lower_bound, most_bits, upper_bound
from fxflow.core.sizes.size import Scope, Size
from fxflow.core.sizes.texts import parsed
from fxflow.export import SymbolicScope


@pytest.mark.parametrize(
    ("constraints", "text", "least", "most"),
    [
        ([], "b", 1, math.inf),
        ([], "2*b - 3", -1, math.inf),
        ([], "-b", -math.inf, -1),
        ([], "b*t - t", 0, math.inf),
        ([], "mod(b, 8)", 0, 7),
        ([], "b - 4*floordiv(b, 4)", 0, 3),
        ([], "b - floordiv(b, 2)", 0, math.inf),
        ([], "max(b, 4)", 4, math.inf),
        ([], "b - min(b, t)", 0, math.inf),
        ([], "b - max(0, floordiv(b, 2) - 1)", 1, math.inf),
        (["b <= t"], "t - max(b, 2*b - t)", 0, math.inf),
        (["b >= 4", "b <= 9"], "b", 4, 9),
        (["b <= t"], "t - b", 0, math.inf),
        (["a <= b", "b <= c", "c <= d"], "d - a", 0, math.inf),
        (["mod(b, 4) == 0"], "mod(b, 4)", 0, 0),
        (["2*b >= t + 3"], "4*b - 2*t", 6, math.inf),
    ],
)
def test_bounds_of_sizes_under_constraints(constraints, text, least, most):
    size = parsed(text, SymbolicScope(constraints))
    # A bound that is not negative is enough for a comparison, and not sharpened.
    found = lower_bound(size)
    assert found == least or 0 <= found <= least
    if most < math.inf:
        assert upper_bound(size) == most


def test_bounds_hold():
    """Random sizes under random constraints are within them for all small values."""
    rng = random.Random(3)
    texts = ["b", "t", "b*t", "floordiv(b, 3)", "mod(b, 3)", "max(b, t)", "min(b, 2*t)"]
    for _ in range(60):
        constraint = rng.choice(["b >= t", "b <= 2*t", "b + t <= 8", "mod(b, 2) == 0"])
        scope: Scope = SymbolicScope([constraint])
        size = parsed("0", scope)
        for _ in range(rng.randint(1, 4)):
            size = size + rng.randint(-3, 3) * parsed(rng.choice(texts), scope)
        size = size + rng.randint(-5, 5)
        (_, fact, exact) = scope.checks[0]
        values = [
            size.evaluate(known) if isinstance(size, Size) else size
            for b in range(1, 9)
            for t in range(1, 9)
            if (value := fact.evaluate(known := {"b": b, "t": t})) == 0
            or (not exact and value > 0)
        ]
        assert lower_bound(size) <= min(values), (str(size), constraint)
        assert upper_bound(size) >= max(values), (str(size), constraint)


def test_most_bits():
    scope = SymbolicScope(["b <= 9"])
    assert [most_bits(n) for n in (0, 1, 8, parsed("b - 2", scope))] == [0, 1, 4, 3]
    assert most_bits(parsed("b*t", scope)) == 31
