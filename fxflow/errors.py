"""What fxflow raises: one class per kind of mistake.

Each class derives from the standard exception that a NumPy user would catch, so
`except TypeError` keeps working. Messages state what was given, what was expected and
what to do, with types in `f32[3,4]` notation.
"""

from __future__ import annotations

from collections.abc import Iterable

from fxflow._names import answer


class FxflowError(Exception):
    """Root of every error class of fxflow.

    Explained in `docs/guides/errors.md#fxflowerror`.
    """


# -- what the user asked for -----------------------------------------------------------


class ShapeError(FxflowError, TypeError, ValueError):
    """Shapes, ranks or axes do not fit an operation.

    NumPy raises ValueError for most of these, JAX now one, now the other.

    Explained in `docs/guides/errors.md#shapeerror`.
    """


class DtypeError(FxflowError, TypeError):
    """A dtype is not supported here, or dtypes cannot be promoted to a common one.

    Explained in `docs/guides/errors.md#dtypeerror`.
    """


class AxisError(FxflowError, ValueError, IndexError):
    """An axis is out of range or named twice.

    Explained in `docs/guides/errors.md#axiserror`.
    """


class ArgumentError(FxflowError, TypeError):
    """An argument is of a kind the function does not take.

    Explained in `docs/guides/errors.md#argumenterror`.
    """


class ConcretizationError(FxflowError, TypeError):
    """A traced value was used where Python needs a concrete one.

    Explained in `docs/guides/errors.md#concretizationerror`.
    """


class TracerArrayConversionError(ConcretizationError):
    """A traced value was handed to NumPy or another library that needs its data.

    Explained in `docs/guides/errors.md#tracerarrayconversionerror`.
    """


class TracerBoolConversionError(ConcretizationError):
    """A traced value was used as a condition of Python's `if`, `while` or `assert`.

    Explained in `docs/guides/errors.md#tracerboolconversionerror`.
    """


class TracerIntegerConversionError(ConcretizationError):
    """A traced value was used as a Python integer, index or length.

    Explained in `docs/guides/errors.md#tracerintegerconversionerror`.
    """


class BooleanIndexError(ConcretizationError, IndexError):
    """A traced boolean mask was used as an index: its result has no static shape.

    Explained in `docs/guides/errors.md#booleanindexerror`.
    """


class OutOfRangeError(FxflowError, IndexError):
    """An index is out of range, or there are too many of them.

    Explained in `docs/guides/errors.md#outofrangeerror`.
    """


class InconclusiveSizeError(ConcretizationError, ValueError):
    """A comparison of symbolic sizes that not all calls would answer alike.

    JAX calls it `InconclusiveDimensionOperation`.

    Explained in `docs/guides/errors.md#inconclusivesizeerror`.
    """


class LeakedTracerError(FxflowError, RuntimeError):
    """A traced value outlived the transformation that made it.

    Explained in `docs/guides/errors.md#leakedtracererror`.
    """


class NonHashableStaticError(FxflowError, ValueError):
    """A static argument of `jit` cannot be hashed.

    Explained in `docs/guides/errors.md#nonhashablestaticerror`.
    """


class DeletedArrayError(FxflowError, RuntimeError):
    """An array was used after its memory was donated or deleted.

    Explained in `docs/guides/errors.md#deletedarrayerror`.
    """


class DonationError(FxflowError, ValueError):
    """Donated memory cannot be reused by the program it is donated to.

    Explained in `docs/guides/errors.md#donationerror`.
    """


class TreeError(FxflowError, ValueError):
    """Two pytrees do not have the structure they must share.

    Explained in `docs/guides/errors.md#treeerror`.
    """


class CheckError(FxflowError, RuntimeError):
    """What `checkify.check` was to make sure of does not hold.

    Explained in `docs/guides/errors.md#checkerror`.
    """


class GraphError(FxflowError, TypeError):
    """A dataflow graph is not well formed.

    Explained in `docs/guides/errors.md#grapherror`.
    """


class KernelError(FxflowError, ValueError):
    """A kernel has mistakes, which `kernels.check` found.

    Explained in `docs/guides/errors.md#kernelerror`.
    """


class NotDifferentiableError(FxflowError, TypeError):
    """A derivative was asked of something that has none.

    Explained in `docs/guides/errors.md#notdifferentiableerror`.
    """


class NonFiniteError(FxflowError, FloatingPointError):
    """Infinities or nan where they were not to be.

    Found by `config.debug_nans` and `config.debug_infs`, or by `train.loop.run`.

    Explained in `docs/guides/errors.md#nonfiniteerror`.
    """


# -- devices and the runtime -----------------------------------------------------------


class BackendError(FxflowError, RuntimeError):
    """A platform was asked for that cannot be used; the message says why.

    Explained in `docs/guides/errors.md#backenderror`.
    """


class CompileError(FxflowError, RuntimeError):
    """XLA refused or failed to compile a program.

    Explained in `docs/guides/errors.md#compileerror`.

    Attributes:
      module_text: the program, or None if it was not text.
    """

    module_text: str | None = None


class DeletedBufferError(FxflowError, RuntimeError):
    """A buffer was used after it was deleted or donated.

    Explained in `docs/guides/errors.md#deletedbuffererror`.
    """


class OutOfMemoryError(FxflowError, MemoryError):
    """An array, or what a program needs besides, does not fit a device's memory.

    Explained in `docs/guides/errors.md#outofmemoryerror`.
    """


class ForkedError(FxflowError, RuntimeError):
    """fxflow was used in a process forked from one that had started its runtime.

    Explained in `docs/guides/errors.md#forkederror`.
    """


class PlacementError(FxflowError, ValueError):
    """A mesh or a sharding that does not fit: its devices, its axes or the array.

    Explained in `docs/guides/errors.md#placementerror`.
    """


class ShardingTypeError(FxflowError, TypeError, ValueError):
    """Types over explicit mesh axes do not go together, or leave a result open.

    Explained in `docs/guides/errors.md#shardingtypeerror`.
    """


class TransferError(FxflowError, RuntimeError):
    """`config.transfer_guard` found a copy between host and device that it forbids.

    Explained in `docs/guides/errors.md#transfererror`.
    """


class DistributedError(BackendError):
    """Processes that were to act together did not.

    Explained in `docs/guides/errors.md#distributederror`.

    Attributes:
      processes: the numbers of those that are lost, late or wrong.
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


class TaskLostError(DistributedError):
    """A task of a cluster ended, or the connection to it broke.

    Explained in `docs/guides/errors.md#tasklosterror`.

    Attributes:
      task: the number of the task among all tasks of its cluster.
    """

    task: int

    def __init__(self, message: str, task: int) -> None:
        super().__init__(message, [task])
        self.task = task

    def __reduce__(self) -> tuple[object, ...]:
        return TaskLostError, (str(self), self.task), vars(self)


class DataError(FxflowError, ValueError):
    """Training data, or what is made of them, are not what was promised.

    Explained in `docs/guides/errors.md#dataerror`.
    """


class DataTimeoutError(DataError, TimeoutError):
    """A source of training data, or a function of them, was not ready in time.

    Explained in `docs/guides/errors.md#datatimeouterror`.
    """


class CheckpointError(FxflowError, ValueError):
    """A checkpoint is not there, is not what was expected, or cannot be written.

    Explained in `docs/guides/errors.md#checkpointerror`.
    """


class DamagedCheckpointError(CheckpointError):
    """The files of a checkpoint are not those that were written.

    Explained in `docs/guides/errors.md#damagedcheckpointerror`.
    """


class ExportError(FxflowError, ValueError):
    """A function cannot be exported, or what was loaded is not what was promised.

    Explained in `docs/guides/errors.md#exporterror`.
    """


class MessageError(FxflowError, ValueError):
    """Bytes are not a message, or a message cannot hold what is to be sent.

    Explained in `docs/guides/errors.md#messageerror`.

    Attributes:
      reason: one word, by which they are counted: ``"mark"``, ``"version"``,
        ``"kind"``, ``"text"``, ``"arrays"``, ``"size"`` or ``"memory"``.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.reason, str(self)), self.__dict__


class ServeError(FxflowError, RuntimeError):
    """A model cannot be served, or a request to one is not answered.

    Explained in `docs/guides/errors.md#serveerror`.

    Attributes:
      status: HTTP's for it: 4xx is the request's fault, 503 means later.
      retry_after: seconds after which it may be tried again; 0: unknown.
    """

    def __init__(
        self, message: str, status: int = 500, retry_after: float = 0.0
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class RetraceWarning(UserWarning):
    """A jitted function is being traced again and again.

    Explained in `docs/guides/errors.md#retracewarning`.
    """


answer(
    globals(),
    [
        name
        for name, value in list(globals().items())
        if isinstance(value, type) and value.__module__ == __name__
    ],
)
