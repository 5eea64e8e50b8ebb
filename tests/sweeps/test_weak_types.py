"""Which results are weak when all operands are: those that JAX has weak.

A weak result yields in promotion, as a Python number does; so the dtypes of all that
follows depend on it. `data/` holds what JAX gives for the calls of the catalogue.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import fxflow
from fxflow import ShapeDtypeStruct
from tests.sweeps.catalogue import Call, catalogue
from tests.sweeps.sampling import sample

DATA = Path(__file__).parent / "data" / "weak_types_jax-0.10.2.txt"
DTYPES = {"f": "float32", "i": "int32", "c": "complex64"}

#: What differs on purpose, by the function's path or the beginning of it.
EXEMPT = {
    "lax.linalg.": "decompositions and solutions are strong",
    "numpy.linalg.": "decompositions and solutions are strong",
    "scipy.linalg.": "decompositions and solutions are strong",
    "lax.custom_linear_solve": "decompositions and solutions are strong",
    "numpy.polydiv": "decompositions and solutions are strong",
    "scipy.special.": "weak if all operands are, whatever they are composed of",
    "nn.gelu": "weak if all operands are, as the other activations",
    "lax.random_gamma_grad": "weak if all operands are, as elementwise functions are",
    "lax.reduce_": "weak if the operand is, as all reductions of lax are",
    "lax.associative_scan": "weak if the operand is, as cumsum is",
    "numpy.logaddexp": "weak for complex numbers as for real ones",
    "numpy.diagflat": "weak as diag is",
    "numpy.vander": "weak as powers are",
    "numpy.choose": "weak if all choices are, as where",
    "numpy.compress": "weak as take is",
    "numpy.extract": "weak as take is",
    "numpy.full_like": "weak as what it is like, whatever fills it",
    "numpy.gradient": "strong: distances of its own go into the result",
    "numpy.interp": "strong: values in between are computed",
    "numpy.pad": "strong where values are computed",
    "numpy.histogram": "edges are strong",
}
#: What differs on purpose for integers alone.
EXEMPT_INTEGERS = {
    "lax.mulhi": "strong: no other bit operation of halves is weak",
    "lax.top_k": "indices are strong",
    "numpy.argpartition": "indices are strong",
    "numpy.ravel_multi_index": "weak if all indices are",
    "numpy.rint": "weak as floats are",
    "numpy.angle": "weak as floats are",
    "nn.": "floats made of integers are strong",
}


def known() -> list[tuple[str, str, str]]:
    """JAX's answers: call, letter of the kind, a flag for each result."""
    rows = [line.split() for line in DATA.read_text().splitlines()]
    return [(name, cell[0], cell[2:]) for name, *cells in rows for cell in cells]


CALLS = {str(call): call for call in catalogue()}
CASES = [
    (CALLS[name], kind, flags)
    for name, kind, flags in known()
    if name in CALLS
    and not name.startswith(tuple(EXEMPT))
    and not (kind == "i" and name.startswith(tuple(EXEMPT_INTEGERS)))
]


def weak_results(call: Call, kind: str) -> str:
    """For each result 1 (weak), 0 (strong) or - (of another kind than the operands)."""
    given = [
        ShapeDtypeStruct(x.shape, x.dtype, weak_type=str(x.dtype) in DTYPES.values())
        for x in call.draw(DTYPES[kind])
    ]
    found = fxflow.tree.leaves(fxflow.eval_shape(call.run, *given))
    return "".join(_flag(x, kind) for x in found)


def _flag(x: Any, kind: str) -> str:
    # Truth values and indices have no kind of number to yield to.
    own = str(x.dtype) in ("float32", "complex64", DTYPES[kind])
    return str(int(x.weak_type)) if own else "-"


def check(call: Call, kind: str, flags: str) -> None:
    found = weak_results(call, kind)
    if len(found) == len(flags):
        pairs = [p for p in zip(found, flags, strict=True) if "-" not in p]
        assert all(a == b for a, b in pairs), f"weak: {found}, JAX: {flags}"


@pytest.mark.parametrize(
    ("call", "kind", "flags"),
    [pytest.param(*c, id=f"{c[0]}-{c[1]}") for c in sample(CASES, 400, "weak types")],
)
def test_weak_where_jax_is(call: Call, kind: str, flags: str) -> None:
    check(call, kind, flags)


def test_the_answers_are_of_calls_that_there_are() -> None:
    names = {name for name, _, _ in known()}
    assert len(names & set(CALLS)) > 0.9 * len(names)
