"""Every primitive, through every check of `checks.py` and `derivatives.py`.

What needs no compiling is checked with each sample; values, derivatives and batches
with samples drawn from each primitive's (`--sweep-seed`), or all (`--whole-sweeps`).
"""

from __future__ import annotations

import pytest

from fxflow.core.ir.primitive import table
from fxflow.lax.references import RefOperation
from tests.conformance import cases, checks, derivatives
from tests.conformance.cases import Case


def _cases(found: list[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", found, ids=[c.id for c in found])


def test_every_primitive_has_samples() -> None:
    cases.import_all()
    # Operations on references are recorded and never run: tests/lax/test_references.
    recorded = {n for n, p in table.items() if isinstance(p, RefOperation)}
    assert recorded == {"new_ref", "get", "swap", "addupdate"}
    without = sorted(set(table) - set(cases.sample_makers()) - recorded)
    assert not without, "add them to tests/conformance/samples/<module>.py"


def test_every_sample_belongs_to_a_primitive() -> None:
    cases.import_all()
    assert not sorted(set(cases.sample_makers()) - set(table))


@_cases(cases.value_cases())
def test_values_agree_with_numpy(case: Case) -> None:
    checks.check_value(case)


@_cases(cases.batch_cases())
def test_lowering(case: Case) -> None:
    checks.check_lowering(case)


@_cases(cases.batch_cases())
def test_graphs_are_typed_as_their_results(case: Case) -> None:
    checks.check_graphs(case)


@_cases(cases.typed_cases())
def test_derivative_types(case: Case) -> None:
    derivatives.check_derivative_types(case)


@_cases(cases.drawn(cases.derivative_cases(), 3, "derivatives"))
def test_derivatives(case: Case) -> None:
    derivatives.check_derivatives(case)


@_cases(cases.drawn(cases.batch_cases(), 3, "batching"))
def test_batching(case: Case) -> None:
    checks.check_batching(case)
