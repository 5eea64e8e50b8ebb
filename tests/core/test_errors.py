"""Each error is caught by what a NumPy user would write."""

from __future__ import annotations

import inspect

import pytest

from fxflow.core import errors
from fxflow.core.errors import FxflowError

CLASSES = [
    cls
    for _, cls in inspect.getmembers(errors, inspect.isclass)
    if issubclass(cls, FxflowError)
]

STANDARD = {
    "ArgumentError": TypeError,
    "AxisError": (ValueError, IndexError),
    "CompileError": RuntimeError,
    "ConcretizationError": TypeError,
    "DeletedArrayError": RuntimeError,
    "DonationError": ValueError,
    "DtypeError": TypeError,
    "GraphError": TypeError,
    "LeakedTracerError": RuntimeError,
    "NonFiniteError": FloatingPointError,
    "NonHashableStaticError": ValueError,
    "NotDifferentiableError": TypeError,
    "ShapeError": TypeError,
    "TreeError": ValueError,
}


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
def test_classes(cls):
    assert cls.__doc__
    assert issubclass(cls, Exception)
    if cls is not FxflowError:
        standard = [b for b in cls.__mro__ if b.__module__ == "builtins"]
        assert {*standard} - {Exception, BaseException, object}


@pytest.mark.parametrize(("name", "bases"), STANDARD.items())
def test_standard_bases(name, bases):
    for base in bases if isinstance(bases, tuple) else (bases,):
        assert issubclass(getattr(errors, name), base)


def test_kinds_of_concretization():
    for name in ("ArrayConversion", "BoolConversion", "IntegerConversion"):
        cls = getattr(errors, f"Tracer{name}Error")
        assert issubclass(cls, errors.ConcretizationError)


def test_the_warning_is_one():
    assert issubclass(errors.RetraceWarning, UserWarning)
