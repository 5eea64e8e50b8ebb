"""What a size is at least, for all values of its names: how comparisons are decided.

Names are at least 1. A bound follows from the bounds of the atoms, or after a multiple
of what is known never to be negative was taken away: a constraint of the scope, or what
is true of a quotient, a remainder, a maximum or a minimum (`2*floordiv(b, 2) <= b`); or
of both cases that a maximum or minimum has.
What is found is true; what is true need not be found.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from fxflow.core.sizes import size as sizes
from fxflow.core.sizes.size import Atom, Monomial, Scope, Size, made

#: How many known inequalities are combined. Three settle chains as a <= b <= c <= d.
_DEEPEST = 3
#: Bounds that are remembered for each scope.
_MOST_REMEMBERED = 2000


def lower_bound(size: Any, depth: int = _DEEPEST) -> float:
    """Returns what a size is at least; -inf if nothing is found.

    Args:
      size: a size or an integer.
      depth: how many known inequalities may be combined.
    """
    if not isinstance(size, Size):
        return float(size)
    key = (size, depth)
    known = size.scope.least.get(key)
    if known is None:
        if len(size.scope.least) > _MOST_REMEMBERED:
            size.scope.least.clear()
        # While it is looked for: an inequality that comes back to it adds nothing.
        size.scope.least[key] = -math.inf
        known = size.scope.least[key] = _found(size, depth)
    return float(known)


def upper_bound(size: Any, depth: int = _DEEPEST) -> float:
    """Returns what a size is at most; inf if nothing is found."""
    return -lower_bound(-size, depth)


def most_bits(size: Any) -> int:
    """Returns how many bits a size takes at most: sizes are computed in 32."""
    most = upper_bound(size)
    return 31 if math.isinf(most) else max(int(most), 0).bit_length()


def _found(size: Size, depth: int) -> float:
    best = sum(_times(c, _interval(m, size.scope, depth))[0] for m, c in _listed(size))
    if math.isnan(best):
        best = -math.inf
    if not depth or best >= 0:
        return best
    for fact in _facts(size):
        for monomial, count in fact.terms.items():
            mine = size.terms.get(monomial, 0)
            if not monomial or mine * count <= 0:
                continue
            # |count|*size - |mine|*fact has no such term, and is at most |count|*size.
            rest = abs(count) * size - abs(mine) * fact
            bound = lower_bound(rest, depth - 1)
            if bound > -math.inf:
                best = max(best, math.ceil(bound / abs(count)))
            if best >= 0:
                return best
    cases = _cases(size)
    if cases:
        best = max(best, min(lower_bound(case, depth - 1) for case in cases))
    return best


def _cases(size: Size) -> list[Any]:
    """Returns the size with one of its extrema as either operand, if it has any."""
    extrema = (
        atom
        for monomial in size.terms
        for atom, _ in monomial
        if not isinstance(atom, str) and atom[0] in ("max", "min")
    )
    chosen = next(extrema, None)
    if chosen is None:
        return []
    return [
        sum(
            (
                made({tuple(f for f in m if f[0] != chosen): count}, size.scope)
                * operand ** dict(m).get(chosen, 0)
                for m, count in _listed(size)
            ),
            start=0,
        )
        for operand in chosen[1]
    ]


def _listed(size: Size) -> list[tuple[Monomial, int]]:
    return list(size.terms.items())


def _facts(size: Size) -> Iterator[Size]:
    """Yields sizes that are never negative and have a term in common with `size`."""
    yield from size.scope.facts
    for monomial in size.terms:
        for atom, _ in monomial:
            if not isinstance(atom, str):
                yield from _of_atom(atom, size.scope)
    yield from _products(size.terms, size.scope)


def _of_atom(atom: Any, scope: Scope) -> Iterator[Size]:
    operation, (a, b) = atom
    value = made({((atom, 1),): 1}, scope)
    found: tuple[Any, ...] = ()
    if operation == "max":
        found = (value - a, value - b)
    elif operation == "min":
        found = (a - value, b - value)
    elif lower_bound(b, 1) < 1:
        pass
    elif operation == "mod":
        found = (b - 1 - value,)
        if lower_bound(a, 1) >= 0:
            found = (*found, a - value)
    elif isinstance(b, int):
        # `made` would turn b*floordiv(a, b) into a - mod(a, b).
        terms: dict[Monomial, int] = {((atom, 1),): b}
        over = a - Size(terms, scope) if isinstance(a, int) else _minus(a, terms)
        found = (over, b - 1 - over)
    for fact in found:
        if isinstance(fact, Size):
            yield fact


def _minus(size: Size, terms: Mapping[Monomial, int]) -> Size:
    total = dict(size.terms)
    for monomial, count in terms.items():
        total[monomial] = total.get(monomial, 0) - count
    return Size({m: c for m, c in total.items() if c}, size.scope)


def _products(terms: Mapping[Monomial, int], scope: Scope) -> Iterator[Size]:
    """Yields `b*t - t`: what is added as a multiple of what is taken away."""
    for large, count in terms.items():
        for small, other in terms.items():
            if count <= 0 or other >= 0 or not small:
                continue
            left = sizes.quotient_of(large, small)
            if not left or _interval(small, scope, 1)[0] < 0:
                continue
            least = _interval(left, scope, 1)[0]
            if 0 < least < math.inf:
                yield Size({large: 1, small: -int(least)}, scope)


def _interval(monomial: Monomial, scope: Scope, depth: int) -> tuple[float, float]:
    low, high = 1.0, 1.0
    for atom, power in monomial:
        bounds = _of(atom, scope, depth)
        for _ in range(power):
            ends = [_product(x, y) for x in (low, high) for y in bounds]
            low, high = min(ends), max(ends)
    return low, high


def _product(x: float, y: float) -> float:
    return 0.0 if not x or not y else x * y


def _times(count: int, interval: tuple[float, float]) -> tuple[float, float]:
    low, high = (_product(count, end) for end in interval)
    return (low, high) if count > 0 else (high, low)


def _of(atom: Atom, scope: Scope, depth: int) -> tuple[float, float]:
    if isinstance(atom, str):
        return bounds_of_name(atom, scope)
    operation, (a, b) = atom
    inner = max(depth - 1, 0)
    low, high = lower_bound(a, inner), upper_bound(a, inner)
    least, most = lower_bound(b, inner), upper_bound(b, inner)
    if operation == "max":
        return max(low, least), max(high, most)
    if operation == "min":
        return min(low, least), min(high, most)
    if least < 1:
        return -math.inf, math.inf
    if operation == "mod":
        return 0.0, min(most - 1, high) if low >= 0 else most - 1
    ends = [_floordiv(x, y) for x in (low, high) for y in (least, most)]
    return min(ends), max(ends)


def _floordiv(x: float, y: float) -> float:
    if math.isinf(y):
        return 0.0 if x >= 0 else -1.0 if math.isfinite(x) else x
    return x if math.isinf(x) else float(x // y)


def bounds_of_name(name: str, scope: Scope) -> tuple[float, float]:
    """Returns the bounds of a name that constraints on it alone say.

    Args:
      name: that sizes are made of.
      scope: it is of.

    Returns:
      The least and the largest value; the one above the other where none is left.
    """
    low, high = 1.0, math.inf
    alone = ((name, 1),)
    for fact in scope.facts:
        count = fact.terms.get(alone, 0)
        if not count or set(fact.terms) - {alone, ()}:
            continue
        # count*name + rest >= 0
        rest = fact.terms.get((), 0)
        if count > 0:
            low = max(low, math.ceil(-rest / count))
        else:
            high = min(high, math.floor(rest / -count))
    return low, high


sizes._bound_of.append(lower_bound)
