"""Every primitive, through every check of `checks.py` and `derivatives.py`.

Values and what needs no compiling are checked with each sample, derivatives and batches
with samples drawn from each primitive's (`--sweep-seed`), or all (`--whole-sweeps`).
"""

from __future__ import annotations

import math

import pytest

from fxflow.core.ir.primitive import table
from tests.conformance import cases, checks, derivatives
from tests.conformance.cases import Case
from tests.sweeps import sampling

LEAST = 4


def _cases(found: list[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", found, ids=[c.id for c in found])


def _drawn(found: list[Case], share: int, of: str) -> list[Case]:
    """Returns one in `share` of each primitive's cases, and `LEAST` at least."""
    groups: dict[str, list[Case]] = {}
    for case in found:
        groups.setdefault(case.primitive.name, []).append(case)
    return [
        case
        for name, group in groups.items()
        for case in sampling.sample(
            group, max(LEAST, math.ceil(len(group) / share)), f"{of} of {name}"
        )
    ]


def test_every_primitive_has_samples() -> None:
    cases.import_all()
    without = sorted(set(table) - set(cases.sample_makers()))
    assert not without, "add them to tests/conformance/samples/<module>.py"


def test_every_sample_belongs_to_a_primitive() -> None:
    cases.import_all()
    assert not sorted(set(cases.sample_makers()) - set(table))


@_cases(cases.cases())
def test_value(case: Case) -> None:
    checks.check_value(case)


@_cases(cases.batch_cases())
def test_lowering(case: Case) -> None:
    checks.check_lowering(case)


@_cases(cases.batch_cases())
def test_graphs(case: Case) -> None:
    checks.check_graphs(case)


@_cases(cases.typed_cases())
def test_derivative_types(case: Case) -> None:
    derivatives.check_derivative_types(case)


@_cases(_drawn(cases.derivative_cases(), 3, "derivatives"))
def test_derivatives(case: Case) -> None:
    derivatives.check_derivatives(case)


@_cases(_drawn(cases.batch_cases(), 3, "batching"))
def test_batching(case: Case) -> None:
    checks.check_batching(case)
