"""Symbolic sizes: lengths of axes that only a call of an exported program says.

`export` alone makes them; everything else needs to know that a length may be a `Size`:

- `size`: their arithmetic, and `is_symbolic`, `larger`, …, which take integers, too;
- `bounds`: which of two is larger for all values of the names;
- `texts`, `solving`: sizes read from text, and from the shapes of a call;
- `stablehlo`: programs with sizes.
"""

# fmt: off
from fxflow.core.sizes import bounds as _bounds  # noqa: F401 (decides comparisons)
from fxflow.core.sizes.size import (
    NO_SCOPE, OPEN, Monomial, Scope, Size, evaluated, is_at_least, is_symbolic, larger,
    length_of, names_of, quotient_of, scope_of, smaller, spelled_for_programs, to_array,
)

__all__ = [
    "NO_SCOPE", "OPEN", "Monomial", "Scope", "Size", "evaluated", "is_at_least",
    "is_symbolic", "larger", "length_of", "names_of", "quotient_of", "scope_of",
    "smaller", "spelled_for_programs", "to_array",
]
# fmt: on
