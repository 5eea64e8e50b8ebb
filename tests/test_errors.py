"""Each error is caught by what a NumPy user would write."""

from __future__ import annotations

import inspect
import pickle
import sys

import pytest

from fxflow import errors
from fxflow.errors import FxflowError

CLASSES = [
    cls
    for _, cls in inspect.getmembers(errors, inspect.isclass)
    if issubclass(cls, BaseException)
]

STANDARD = {
    "ArgumentError": TypeError,
    "AxisError": (ValueError, IndexError),
    "BackendError": RuntimeError,
    "BooleanIndexError": (TypeError, IndexError),
    "CheckError": RuntimeError,
    "CheckpointError": ValueError,
    "CompileError": RuntimeError,
    "ConcretizationError": TypeError,
    "DamagedCheckpointError": ValueError,
    "DataError": ValueError,
    "ExportError": ValueError,
    "DataTimeoutError": (ValueError, TimeoutError),
    "DeletedArrayError": RuntimeError,
    "DeletedBufferError": RuntimeError,
    "DistributedError": RuntimeError,
    "TaskLostError": RuntimeError,
    "DonationError": ValueError,
    "DtypeError": TypeError,
    "ForkedError": RuntimeError,
    "GraphError": TypeError,
    "KernelError": ValueError,
    "InconclusiveSizeError": (TypeError, ValueError),
    "LeakedTracerError": RuntimeError,
    "MessageError": ValueError,
    "NonFiniteError": FloatingPointError,
    "NonHashableStaticError": ValueError,
    "NotDifferentiableError": TypeError,
    "OutOfMemoryError": MemoryError,
    "OutOfRangeError": IndexError,
    "PlacementError": ValueError,
    "RetraceWarning": UserWarning,
    "ServeError": RuntimeError,
    "ShardingTypeError": (TypeError, ValueError),
    "TransferError": RuntimeError,
    "ShapeError": TypeError,
    "TracerArrayConversionError": TypeError,
    "TracerBoolConversionError": TypeError,
    "TracerIntegerConversionError": TypeError,
    "TreeError": ValueError,
}


def test_all_have_one_root_and_a_sentence():
    for cls in CLASSES:
        assert cls.__doc__
        assert cls.__module__ == "fxflow.errors"
        assert issubclass(cls, FxflowError | errors.RetraceWarning)


def test_no_other_module_defines_errors():
    names = {f"{cls.__name__}" for cls in CLASSES}
    for module in list(sys.modules.values()):
        home = getattr(module, "__name__", "")
        # JAX's own error classes stand in `compat`, under its names; a package's own
        # are in a module `errors` of it.
        if home.startswith("fxflow.") and not home.startswith("fxflow.compat"):
            for name, cls in inspect.getmembers(module, inspect.isclass):
                if cls.__module__.startswith("fxflow.") and issubclass(cls, Exception):
                    own = cls.__module__.endswith(".errors")
                    assert own or name.startswith("_") or name in names, cls


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_standard_bases(cls):
    if cls is not FxflowError:
        bases = STANDARD[cls.__name__]
        for base in bases if isinstance(bases, tuple) else (bases,):
            assert issubclass(cls, base)


def test_kinds_of_concretization():
    for name in ("ArrayConversion", "BoolConversion", "IntegerConversion"):
        cls = getattr(errors, f"Tracer{name}Error")
        assert issubclass(cls, errors.ConcretizationError)


@pytest.mark.parametrize(
    "error",
    [
        errors.ShapeError("a"),
        errors.DistributedError("a", [2, 1], 3.0),
        errors.TaskLostError("a", 2),
        errors.MessageError("mark", "a"),
        errors.ServeError("a", 400, 1.0),
    ],
    ids=lambda e: type(e).__name__,
)
def test_errors_cross_processes(error: Exception) -> None:
    error.add_note("more")
    found = pickle.loads(pickle.dumps(error))
    assert type(found) is type(error) and str(found) == "a"
    assert vars(found) == vars(error) and found.__notes__ == ["more"]
