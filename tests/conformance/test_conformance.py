"""Every primitive, through every check of `harness.py`."""

from __future__ import annotations

import pytest

from fxflow.core.ir.primitive import table
from tests.conformance import harness


def _cases(found: list[harness.Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", found, ids=[c.id for c in found])


def test_every_primitive_has_samples() -> None:
    harness.import_all()
    without = sorted(set(table) - set(harness.sample_makers()))
    assert not without, "add them to tests/conformance/samples/<module>.py"


def test_every_sample_belongs_to_a_primitive() -> None:
    harness.import_all()
    assert not sorted(set(harness.sample_makers()) - set(table))


@_cases(harness.cases())
def test_value(case: harness.Case) -> None:
    harness.check_value(case)


@_cases(harness.batch_cases())
def test_lowering(case: harness.Case) -> None:
    harness.check_lowering(case)


@_cases(harness.batch_cases())
def test_graphs(case: harness.Case) -> None:
    harness.check_graphs(case)


@_cases(harness.typed_cases())
def test_derivative_types(case: harness.Case) -> None:
    harness.check_derivative_types(case)


@_cases(harness.derivative_cases())
def test_derivatives(case: harness.Case) -> None:
    harness.check_derivatives(case)


@_cases(harness.batch_cases())
def test_batching(case: harness.Case) -> None:
    harness.check_batching(case)
