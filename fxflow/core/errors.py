"""What fxflow raises: one class per kind of mistake.

Each class derives from the standard exception that a NumPy user would catch, so
`except TypeError` keeps working. Messages state what was given, what was expected and
what to do, with types in `f32[3,4]` notation.
"""

from __future__ import annotations


class FxflowError(Exception):
    """Root of every error class of fxflow."""


class ShapeError(FxflowError, TypeError):
    """Shapes, ranks or axes do not fit an operation."""


class DtypeError(FxflowError, TypeError):
    """A dtype is not supported here, or dtypes do not combine."""


class AxisError(FxflowError, ValueError, IndexError):
    """An axis is out of range or named twice."""


class ArgumentError(FxflowError, TypeError):
    """An argument is of a kind the function does not take."""


class ConcretizationError(FxflowError, TypeError):
    """A traced value was used where Python needs a concrete one."""


class TracerArrayConversionError(ConcretizationError):
    """A traced value was handed to NumPy or another library that needs its data."""


class TracerBoolConversionError(ConcretizationError):
    """A traced value was used as a condition of Python's `if`, `while` or `assert`."""


class TracerIntegerConversionError(ConcretizationError):
    """A traced value was used as a Python integer, index or length."""


class LeakedTracerError(FxflowError, RuntimeError):
    """A traced value outlived the transformation that made it."""


class NonHashableStaticError(FxflowError, ValueError):
    """A static argument of `jit` cannot be hashed."""


class DeletedArrayError(FxflowError, RuntimeError):
    """An array was used after its memory was donated or deleted."""


class DonationError(FxflowError, ValueError):
    """Donated memory cannot be reused by the program it is donated to."""


class TreeError(FxflowError, ValueError):
    """Two pytrees do not have the structure they must share."""


class GraphError(FxflowError, TypeError):
    """A dataflow graph is not well formed."""


class NotDifferentiableError(FxflowError, TypeError):
    """A derivative was asked of something that has none."""


class CompileError(FxflowError, RuntimeError):
    """The compiler rejected a program."""


class NonFiniteError(FxflowError, FloatingPointError):
    """`config.debug_nans` or `config.debug_infs` found what it looks for."""


class RetraceWarning(UserWarning):
    """A jitted function is being traced again and again."""
