"""What fxflow raises: one class per kind of mistake.

Each class derives from the standard exception that a NumPy user would catch, so
`except TypeError` keeps working. Messages state what was given, what was expected and
what to do, with types in `f32[3,4]` notation.
"""

from __future__ import annotations

from collections.abc import Iterable


class FxflowError(Exception):
    """Root of every error class of fxflow."""


# -- what the user asked for -----------------------------------------------------------


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


class BooleanIndexError(ConcretizationError, IndexError):
    """A traced boolean mask was used as an index: its result has no static shape."""


class OutOfRangeError(FxflowError, IndexError):
    """An index is out of range, or there are too many of them."""


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


class NonFiniteError(FxflowError, FloatingPointError):
    """`config.debug_nans` or `config.debug_infs` found what it looks for."""


# -- devices and the runtime -----------------------------------------------------------


class BackendError(FxflowError, RuntimeError):
    """A platform was asked for that cannot be used; the message says why."""


class CompileError(FxflowError, RuntimeError):
    """XLA refused or failed to compile a program.

    Attributes:
      module_text: the program, or None if it was not text.
    """

    module_text: str | None = None


class DeletedBufferError(FxflowError, RuntimeError):
    """A buffer was used after it was deleted or donated."""


class OutOfMemoryError(FxflowError, MemoryError):
    """An array, or what a program needs besides, does not fit a device's memory."""


class ForkedError(FxflowError, RuntimeError):
    """fxflow was used in a process forked from one that had started its runtime."""


class PlacementError(FxflowError, ValueError):
    """A mesh or a sharding that does not fit: its devices, its axes or the array."""


class DistributedError(BackendError):
    """Processes that were to act together did not.

    Attributes:
      processes: the numbers of those that are gone, late or wrong.
      seconds: the deadline that passed; None if it was not a matter of time.
    """

    processes: tuple[int, ...]

    def __init__(
        self,
        message: str,
        processes: Iterable[int] = (),
        seconds: float | None = None,
    ) -> None:
        super().__init__(message)
        self.processes = tuple(sorted(processes))
        self.seconds = seconds


class RetraceWarning(UserWarning):
    """A jitted function is being traced again and again."""
