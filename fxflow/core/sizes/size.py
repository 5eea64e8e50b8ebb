"""Sizes that are known when a program is called: `b`, `2*t + 1`, `floordiv(n, 2)`.

A size is a polynomial with integer coefficients in *atoms*: names, and quotients,
remainders, minima and maxima of sizes. Equal polynomials are equal sizes, so a shape
with sizes is a key like any other. What is the same for all values of the names is an
int at once: `b - b` is 0.

A size is not an `int`, and has no `__index__`: what needs a number says so, rather than
taking a stand-in for it. A comparison that does not hold, or fail, for all values of
the names raises (`size_bounds` decides), but `==` says whether two sizes are the same
for all of them, so that sizes are keys.
"""

from __future__ import annotations

import math
import operator
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from fxflow.errors import (
    ArgumentError,
    ConcretizationError,
    InconclusiveSizeError,
    ShapeError,
)

#: A name, or what is done to which sizes (or integers).
Atom = str | tuple[str, tuple[Any, ...]]
#: A product of powers of atoms: in order of their texts.
Monomial = tuple[tuple[Atom, int], ...]

OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "max": lambda a, b: larger(a, b),
    "min": lambda a, b: smaller(a, b),
}
#: Around a size in the text of a program (`core/sizes/stablehlo` replaces them).
OPEN, CLOSE = "⟨", "⟩"
#: Terms of one size: more are not a size that a person meant.
MOST_TERMS = 1000


class _Spelling(threading.local):
    in_program = False


_spelling = _Spelling()


@contextmanager
def spelled_for_programs() -> Iterator[None]:
    """Writes sizes in brackets, as the text of a program has them, within a block."""
    before = _spelling.in_program
    _spelling.in_program = True
    try:
        yield
    finally:
        _spelling.in_program = before


class Scope:
    """What is known of the names of sizes besides that they are at least 1.

    Attributes:
      facts: sizes that are never negative.
      rewrites: products of atoms and what they are equal to.
      checks: the constraints as they were given, each with a size that is to be 0, or
        that is not to be negative, and which of both.
    """

    def __init__(self) -> None:
        self.facts: list[Size] = []
        self.rewrites: dict[Monomial, Size | int] = {}
        self.checks: list[tuple[str, Any, bool]] = []
        self.least: dict[Any, Any] = {}

    def describe(self) -> str:
        """Says in words what is known."""
        return ", ".join(
            ("every name is at least 1", *(text for text, *_ in self.checks))
        )


#: The scope of sizes that were made without one: nothing more is known.
NO_SCOPE = Scope()


class Size:
    """A size that is not yet known; `is_symbolic_dim` says whether something is one.

    Args:
      terms: the coefficient of each monomial, none of them 0.
      scope: what is known of the names.
    """

    __slots__ = ("_hash", "scope", "terms")

    scope: Scope
    terms: dict[Monomial, int]

    def __init__(self, terms: Mapping[Monomial, int], scope: Scope = NO_SCOPE) -> None:
        self.terms = dict(terms)
        self.scope = scope
        self._hash = hash(frozenset(self.terms.items()))

    # -- identity ----------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Size)
            and self._hash == other._hash
            and self.scope is other.scope
            and self.terms == other.terms
        )

    def __hash__(self) -> int:
        return self._hash

    def __deepcopy__(self, memo: Any) -> Size:
        # Sizes of one scope stay sizes of one scope.
        return self

    def __copy__(self) -> Size:
        return self

    # -- text --------------------------------------------------------------------------

    def __str__(self) -> str:
        return f"{OPEN}{self.text()}{CLOSE}" if _spelling.in_program else self.text()

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        # `d`, which integers are written with, too: as programs have it.
        if spec == "d":
            return f"{OPEN}{self.text()}{CLOSE}"
        return format(str(self), spec)

    def text(self) -> str:
        """Returns the size as `symbolic_shape` reads it."""
        # Constants last; what has the highest power first.
        order = sorted(
            self.terms.items(), key=lambda t: (-_degree(t[0]), product_text(t[0]))
        )
        text = ""
        for monomial, count in order:
            product = product_text(monomial)
            size = abs(count)
            term = (
                f"{size}*{product}" if product and size != 1 else product or f"{size}"
            )
            sign = "-" if count < 0 else "+" if text else ""
            text += f" {sign} {term}" if text else f"{sign}{term}"
        return text

    # -- values ------------------------------------------------------------------------

    def names(self) -> set[str]:
        """Returns the names in it."""
        found: set[str] = set()
        for monomial in self.terms:
            for atom, _ in monomial:
                if isinstance(atom, str):
                    found.add(atom)
                else:
                    for size in atom[1]:
                        found |= names_of(size)
        return found

    def evaluate(self, known: Mapping[str, Any]) -> Any:
        """Returns the size where the names stand for these.

        Args:
          known: for each name an integer, or a size of another program.

        Raises:
          ShapeError: it is a quotient or a remainder by 0.
        """
        total: Any = 0
        for monomial, count in self.terms.items():
            product: Any = count
            for atom, power in monomial:
                if isinstance(atom, str):
                    value = known[atom]
                else:
                    first, second = (evaluated(size, known) for size in atom[1])
                    if (
                        atom[0] in ("floordiv", "mod")
                        and isinstance(second, int)
                        and not second
                    ):
                        raise ShapeError(f"the size {self} divides by 0 for {known}")
                    value = OPERATIONS[atom[0]](first, second)
                product = product * value**power
            total = total + product
        return total

    def __fxflow_array__(self) -> Any:
        """Returns the array that holds it in a program: an int32 that yields."""
        return to_array(self)

    # -- arithmetic --------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        return _plus(self, other, 1) if _is_size(other) else _as(self, other, "add")

    def __radd__(self, other: Any) -> Any:
        return _plus(self, other, 1) if _is_size(other) else _as(self, other, "radd")

    def __sub__(self, other: Any) -> Any:
        return _plus(self, other, -1) if _is_size(other) else _as(self, other, "sub")

    def __rsub__(self, other: Any) -> Any:
        return -_plus(self, other, -1) if _is_size(other) else _as(self, other, "rsub")

    def __mul__(self, other: Any) -> Any:
        return _times(self, other) if _is_size(other) else _as(self, other, "mul")

    def __rmul__(self, other: Any) -> Any:
        return _times(self, other) if _is_size(other) else _as(self, other, "rmul")

    def __floordiv__(self, other: Any) -> Any:
        known = _is_size(other)
        return _floordiv(self, other) if known else _as(self, other, "floordiv")

    def __rfloordiv__(self, other: Any) -> Any:
        known = _is_size(other)
        return _floordiv(other, self) if known else _as(self, other, "rfloordiv")

    def __mod__(self, other: Any) -> Any:
        return _mod(self, other) if _is_size(other) else _as(self, other, "mod")

    def __rmod__(self, other: Any) -> Any:
        return _mod(other, self) if _is_size(other) else _as(self, other, "rmod")

    def __divmod__(self, other: Any) -> Any:
        known = _is_size(other)
        return (self // other, self % other) if known else _as(self, other, "divmod")

    def __rdivmod__(self, other: Any) -> Any:
        known = _is_size(other)
        return (other // self, other % self) if known else _as(self, other, "rdivmod")

    def __truediv__(self, other: Any) -> Any:
        return to_array(self) / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / to_array(self)

    def __neg__(self) -> Any:
        return _times(self, -1)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __pow__(self, power: Any) -> Any:
        if not isinstance(power, int | np.integer):
            return _as(self, power, "pow")
        if power < 0:
            raise ArgumentError(f"the size {self} has no power {power} that is a size")
        result: Any = 1
        for _ in range(power):
            result = result * self
        return result

    # -- what needs a number, or a decision --------------------------------------------

    def __lt__(self, other: Any) -> Any:
        return _compared(self, other, "lt")

    def __le__(self, other: Any) -> Any:
        return _compared(self, other, "le")

    def __gt__(self, other: Any) -> Any:
        return _compared(self, other, "gt")

    def __ge__(self, other: Any) -> Any:
        return _compared(self, other, "ge")

    def __bool__(self) -> bool:
        # Not the same as 0, as `==` has it.
        return True

    def __int__(self) -> int:
        return self._needs_a_number("int()")

    def __float__(self) -> float:
        return self._needs_a_number("float()")

    def __index__(self) -> int:
        return self._needs_a_number("a Python integer (range, a list's index)")

    def _needs_a_number(self, what: str) -> int:
        raise ConcretizationError(
            f"{what} needs a number, but the size {self} is known only when the "
            "exported program is called: compute with it as it is, make an array of it "
            "(fnp.asarray), or export for a fixed size"
        )


def names_of(size: Any) -> set[str]:
    """Returns the names in a size; none for an integer."""
    return size.names() if isinstance(size, Size) else set()


def evaluated(size: Any, known: Mapping[str, Any]) -> Any:
    """Returns a size with its names replaced; an integer as it is."""
    return size.evaluate(known) if isinstance(size, Size) else size


def named(name: str, scope: Scope = NO_SCOPE) -> Any:
    """Returns the size of a name."""
    return made({((name, 1),): 1}, scope)


def is_symbolic(shape: Any) -> bool:
    """Returns whether a shape has lengths that only a call says."""
    return any(type(n) is Size for n in shape)


def scope_of(avals: Any) -> Scope | None:
    """Returns the scope of the sizes in types; None if there are none."""
    return next((n.scope for a in avals for n in a.shape if type(n) is Size), None)


def length_of(value: Any) -> Any:
    """Returns a length as a Python int, or the size that it is.

    Raises:
      TypeError: it is neither.
    """
    return value if type(value) is Size else operator.index(value)


def larger(a: Any, b: Any) -> Any:
    """Returns the larger of two lengths: one of them, if that is known, or a size."""
    return _extremum("max", a, b)


def smaller(a: Any, b: Any) -> Any:
    """Returns the smaller of two lengths: one of them, if that is known, or a size."""
    return _extremum("min", a, b)


def is_at_least(size: Any, least: Any) -> bool:
    """Returns whether a length is known to be at least another, for all calls."""
    difference = size - least
    if isinstance(difference, int):
        return difference >= 0
    return bool(lower_bound(difference) >= 0)


# -- filled in by others ---------------------------------------------------------------


def to_array(size: Size) -> Any:
    """Returns a size as an array; `lax/dimension_size` gives it."""
    return _array_of[0](size)


def lower_bound(size: Size) -> float:
    """Returns what a size is at least, perhaps -inf; `size_bounds` gives it."""
    return _bound_of[0](size)


_array_of: list[Callable[[Size], Any]] = []
_bound_of: list[Callable[[Size], float]] = []


# -- arithmetic ------------------------------------------------------------------------


def _is_size(value: Any) -> bool:
    return isinstance(value, Size | int | np.integer)


def _as(size: Size, other: Any, operation: str) -> Any:
    """Returns what an operation gives with anything else: that of the size's array."""
    if hasattr(other, "aval") or isinstance(other, float | complex | np.ndarray):
        return getattr(to_array(size), f"__{operation}__")(other)
    return NotImplemented


def _terms(value: Any) -> dict[Monomial, int]:
    if isinstance(value, Size):
        return value.terms
    return {(): int(value)} if value else {}


def _common(a: Any, b: Any) -> Scope:
    scopes = [x.scope for x in (a, b) if isinstance(x, Size)]
    if len(scopes) == 2 and scopes[0] is not scopes[1]:
        raise ArgumentError(
            f"the sizes {a} and {b} are of two scopes: make them with one call of "
            "symbolic_shape, or with scope=, so that equal names mean the same"
        )
    return scopes[0]


def made(terms: Mapping[Monomial, int], scope: Scope) -> Any:
    """Returns a size, or the integer that it is."""
    if len(terms) > MOST_TERMS:
        raise ArgumentError(f"a size of {len(terms)} terms is longer than any meant")
    kept = {m: c for m, c in terms.items() if c}
    for monomial, count in kept.items():
        for rule, value in scope.rewrites.items():
            rest = quotient_of(monomial, rule)
            if rest is not None:
                del kept[monomial]
                return made(kept, scope) + made({rest: count}, scope) * value
    found = _rounded_off(kept)
    if found is not None:
        monomial, (dividend, divisor), rest = found
        # q = floordiv(e, k): c*k*q is c*(e - mod(e, k)).
        whole = made({rest: kept.pop(monomial) // divisor}, scope)
        return made(kept, scope) + whole * (dividend - _mod(dividend, divisor))
    if all(not monomial for monomial in kept):
        return kept.get((), 0)
    return Size(kept, scope)


def quotient_of(monomial: Monomial, factor: Monomial) -> Monomial | None:
    """Returns a product without a factor; None if that is not in it."""
    powers = dict(monomial)
    for atom, power in factor:
        powers[atom] = powers.get(atom, 0) - power
    return None if min(powers.values(), default=0) < 0 else _sorted(powers)


def _rounded_off(terms: Mapping[Monomial, int]) -> Any:
    """Returns a term in which a quotient is multiplied by its divisor, or None."""
    for monomial, count in terms.items():
        for atom, _ in monomial:
            if isinstance(atom, str) or atom[0] != "floordiv":
                continue
            divisor = atom[1][1]
            if isinstance(divisor, int) and not count % divisor:
                return monomial, atom[1], quotient_of(monomial, ((atom, 1),))
    return None


def _plus(a: Size, b: Any, sign: int) -> Any:
    total = dict(a.terms)
    for monomial, count in _terms(b).items():
        total[monomial] = total.get(monomial, 0) + sign * count
    return made(total, _common(a, b))


def _times(a: Any, b: Any) -> Any:
    total: dict[Monomial, int] = {}
    left, right = _terms(a), _terms(b)
    if len(left) * len(right) > MOST_TERMS:
        raise ArgumentError(f"the product of {len(left)} by {len(right)} terms is long")
    for mine, m in left.items():
        for yours, n in right.items():
            powers = dict(mine)
            for atom, power in yours:
                powers[atom] = powers.get(atom, 0) + power
            key = _sorted(powers)
            total[key] = total.get(key, 0) + m * n
    return made(total, _common(a, b))


def _sorted(powers: Mapping[Atom, int]) -> Monomial:
    return tuple(
        sorted(((a, p) for a, p in powers.items() if p), key=lambda p: atom_text(p[0]))
    )


def _floordiv(a: Any, b: Any) -> Any:
    if not isinstance(b, Size) and not b:
        raise ZeroDivisionError(f"the size {a} is divided by 0")
    a, added = _without_remainders(a, b)
    quotient, rest = _divided(a, b)
    quotient = quotient + added
    if isinstance(rest, int) and not rest:
        return quotient
    # What is left over is less than one divisor: the quotient is rounded down.
    if is_at_least(rest, 0) and is_at_least(b, rest + 1):
        return quotient
    if is_at_least(-1, rest) and is_at_least(rest, -b):
        return quotient - 1
    # As far as the division went, it is exact: only the rest is rounded.
    return quotient + _atom("floordiv", rest, b)


def _mod(a: Any, b: Any) -> Any:
    if not isinstance(b, Size) and not b:
        raise ZeroDivisionError(f"the size {a} is divided by 0")
    _, rest = _divided(_without_remainders(a, b)[0], b)
    if isinstance(rest, int) and not rest:
        return 0
    if isinstance(rest, int) and not isinstance(b, Size):
        return rest % int(b)
    if is_at_least(rest, 0) and is_at_least(b, rest + 1):
        return rest
    if is_at_least(-1, rest) and is_at_least(rest, -b):
        return rest + b
    return _atom("mod", rest, b)


def _without_remainders(a: Any, b: Any) -> tuple[Any, Any]:
    """Returns what is left of a dividend without remainders by the same divisor.

    `mod(e, b)` is `e - b*floordiv(e, b)`, so that `b - mod(b, 2)` divides by 2.

    Returns:
      The new dividend, and what is to be added to its quotient.
    """
    added: Any = 0
    for monomial, count in _terms(a).items():
        if len(monomial) != 1 or monomial[0][1] != 1:
            continue
        atom = monomial[0][0]
        if not isinstance(atom, str) and atom[0] == "mod" and atom[1][1] == b:
            dividend = atom[1][0]
            a = a - made({monomial: count}, a.scope) + count * dividend
            added = added - count * _floordiv(dividend, b)
    return a, added


def _divided(a: Any, b: Any) -> tuple[Any, Any]:
    """Returns quotient and rest of polynomials: `a = quotient*b + rest`."""
    quotient: Any = 0
    rest, undivided = a, 0
    scope = _common(a, b) if isinstance(a, Size) or isinstance(b, Size) else NO_SCOPE
    lead, factor = max(_terms(b).items(), key=_order)
    for _ in range(MOST_TERMS):
        terms = _terms(rest)
        if not terms:
            break
        monomial, count = max(terms.items(), key=_order)
        left = quotient_of(monomial, lead)
        # The rest of a constant is to be positive; the multiple of names is cut off.
        sign = -1 if (count < 0) != (factor < 0) else 1
        share = count // factor if not monomial else abs(count) // abs(factor) * sign
        if left is None or not share:
            # This term does not divide; those below it may.
            term = made({monomial: count}, scope)
            undivided, rest = undivided + term, rest - term
            continue
        part = made({left: share}, scope)
        over = made({monomial: count - share * factor}, scope)
        quotient, undivided = quotient + part, undivided + over
        rest = rest - over - part * b
    return quotient, undivided + rest


def _order(term: tuple[Monomial, int]) -> Any:
    return _degree(term[0]), product_text(term[0])


def _extremum(operation: str, a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b) if operation == "max" else min(a, b)
    if is_at_least(a, b):
        return a if operation == "max" else b
    if is_at_least(b, a):
        return b if operation == "max" else a
    return _atom(operation, a, b)


def _atom(operation: str, a: Any, b: Any) -> Any:
    scope = _common(a, b)
    if operation in ("max", "min"):
        a, b = sorted((a, b), key=_text)
    return made({(((operation, (a, b)), 1),): 1}, scope)


def _degree(monomial: Monomial) -> int:
    return sum(power for _, power in monomial)


def product_text(monomial: Monomial) -> str:
    """Returns a product of powers as text."""
    return "*".join(
        atom_text(atom) + (f"^{power}" if power > 1 else "") for atom, power in monomial
    )


def atom_text(atom: Atom) -> str:
    """Returns a name, or an operation with its operands, as text."""
    if isinstance(atom, str):
        return atom
    return f"{atom[0]}({', '.join(map(_text, atom[1]))})"


def _compared(a: Size, b: Any, method: str) -> Any:
    if isinstance(b, float) and not math.isfinite(b):
        return (b > 0) == (method in ("lt", "le"))
    if isinstance(b, float) and b == int(b):
        b = int(b)
    if not _is_size(b):
        return _as(a, b, method)
    # a < b is not a >= b, and a > b is b < a.
    small, large = (a, b) if method in ("le", "lt") else (b, a)
    strict = int(method in ("lt", "gt"))
    if is_at_least(large, small + strict):
        return True
    if is_at_least(small, large + 1 - strict):
        return False
    sign = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}[method]
    raise InconclusiveSizeError(
        f"whether {_text(a)} {sign} {_text(b)} is not known for all sizes "
        f"({a.scope.describe()}). If it is so in every call, state it where the sizes "
        f"are made: symbolic_shape(..., constraints="
        f"['{_constraint(small + strict, large)}']); if it never is, "
        f"['{_constraint(large, small + strict - 1)}']"
    )


def _constraint(small: Any, large: Any) -> str:
    """Returns `small <= large` as a constraint, with what is positive on each side."""
    difference = large - small
    terms = _terms(difference)
    scope = difference.scope if isinstance(difference, Size) else NO_SCOPE
    plus = made({m: c for m, c in terms.items() if c > 0}, scope)
    minus = made({m: -c for m, c in terms.items() if c < 0}, scope)
    if isinstance(plus, int):
        return f"{_text(minus)} <= {plus}"
    return f"{_text(plus)} >= {_text(minus)}"


def _text(size: Any) -> str:
    return size.text() if isinstance(size, Size) else str(size)
