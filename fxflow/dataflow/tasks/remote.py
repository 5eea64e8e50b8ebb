"""Arrays that stay in tasks: results of dataflow functions over a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from fxflow.core import tree
from fxflow.core.arrays import Array, ArrayType, Aval
from fxflow.core.arrays.array import as_array, host_of
from fxflow.core.arrays.aval import _Typed
from fxflow.devices.shardings import Sharding
from fxflow.errors import ArgumentError, DeletedArrayError


class Step(Protocol):
    """The step that computes an array, as its handle sees it."""

    @property
    def ended(self) -> bool:
        """Whether it has been computed, or has failed."""

    @property
    def error(self) -> Any:
        """What makes the error of a step that failed; None if it did not."""

    def wait(self) -> None:
        """Waits for the end; raises what the step raised."""


class _Held:
    """The step of an array that was sent to its task."""

    ended = True
    error = None

    def wait(self) -> None:
        """Returns at once."""


HELD: Step = _Held()


class Owner(Protocol):
    """The connection to the tasks, as a handle sees it."""

    def put(self, value: Array, kind: ArrayType) -> RemoteArray:
        """Returns an array of a task with a value of this process."""

    def fetched(self, arrays: Sequence[RemoteArray]) -> list[Array]:
        """Returns the values of arrays."""

    def ask(self, array: RemoteArray) -> Any:
        """Asks for the value of an array that is computed."""

    def released(self, task: int, number: int) -> None:
        """Records that the task need not keep a value; called by destructors."""


class RemoteArray(_Typed):
    """An array that a task holds; a handle, which may be there before the value.

    Dataflow functions over the same cluster take it without moving it. `fetch`,
    `numpy.asarray` and every operation of this process copy the value here; a small
    one, such as a loss, comes by itself. The task frees the memory with the last
    reference to the handle.
    """

    __slots__ = (
        "__weakref__", "_asked", "_number", "_owner", "_step", "_type", "_value"
    )  # fmt: skip

    _type: ArrayType
    _value: Array | None

    def __init__(
        self, owner: Owner, number: int, array_type: ArrayType, step: Step
    ) -> None:
        self._owner: Owner | None = owner
        self._number, self._type, self._step = number, array_type, step
        self._value = None
        #: What the owner notes when the value is asked for.
        self._asked: Any = None

    # -- type --------------------------------------------------------------------------

    @property
    def aval(self) -> Aval:
        """The type: shape, dtype, weak type."""
        return self._type.aval

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return self.aval.nbytes

    @property
    def device(self) -> Any:
        """The task's device that holds the array; its sharding, if it is on a mesh."""
        placement = self._type.placement
        return placement.device if placement.is_single else placement.sharding

    @property
    def sharding(self) -> Sharding:
        """Which device of the task holds which part."""
        return self._type.placement.sharding  # type: ignore[no-any-return]

    def devices(self) -> set[Any]:
        """Returns the set of the task's devices that hold parts."""
        return set(self._type.placement.devices)

    @property
    def task(self) -> int:
        """The number of the task that holds the array."""
        return self._type.placement.device.number  # type: ignore[no-any-return]

    @property
    def committed(self) -> bool:
        """Whether operations must stay there: they need not, as the value can move."""
        return False

    # -- the value ---------------------------------------------------------------------

    def fetch(self) -> Array:
        """Returns the value as an array of this process.

        Raises:
          DistributedError: the step that computes it failed, or its task is lost.
          DeletedArrayError: the array was donated or deleted.
        """
        if self._value is None:
            if self._owner is None:
                raise self._deleted()
            (self._value,) = self._owner.fetched([self])
        return self._value

    def block_until_ready(self) -> RemoteArray:
        """Waits until the value is computed; returns the array.

        Raises:
          DistributedError: the step that computes it failed, or its task is lost.
          DeletedArrayError: the array was donated or deleted.
        """
        if self._value is None:
            if self._owner is None:
                raise self._deleted()
            self._step.wait()
        return self

    def copy_to_host_async(self) -> None:
        """Asks for the value, so that a later `fetch` need not wait as long."""
        if self._value is None and self._owner is not None and self._step.ended:
            self._owner.ask(self)

    def put(self, value: Any) -> RemoteArray:
        """Sends a value to where this array is; `train.checkpoint.restore` does it.

        Args:
          value: an array of the same type.

        Returns:
          A new handle; this one stays what it is.

        Raises:
          ArgumentError: the value has the wrong shape or dtype.
          DistributedError: the task is lost.
          DeletedArrayError: this array was donated or deleted.
        """
        if self._owner is None:
            raise self._deleted()
        array = value if isinstance(value, Array) else as_array(value, self.dtype)
        if (array.shape, array.dtype) != (self.shape, self.dtype):
            raise ArgumentError(
                f"put: the array is {self.aval}, and the value is {array.aval}"
            )
        return self._owner.put(array, self._type)

    __fxflow_put__ = put

    def is_ready(self) -> bool:
        """Returns whether the value is computed, or never will be."""
        return self._value is not None or self._step.ended

    def delete(self) -> None:
        """Frees the memory in the task; any later use is an error."""
        owner, self._owner, self._value = self._owner, None, None
        if owner is not None:
            owner.released(self.task, self._number)

    def is_deleted(self) -> bool:
        """Returns whether the memory was donated or deleted."""
        return self._owner is None

    def _given_up(self) -> None:
        """Records that a program took the memory."""
        self._owner, self._value = None, None

    def __del__(self) -> None:
        owner = self._owner
        if owner is not None:
            owner.released(self.task, self._number)

    def _deleted(self) -> DeletedArrayError:
        return DeletedArrayError(
            f"the memory of this {self.aval} on {self._type.placement} was deleted: it "
            "was donated to a jitted call (donate_argnums/donate_argnames) or freed by "
            ".delete(). Use the call's result instead, or do not donate."
        )

    __fxflow_array__ = fetch

    @property
    def _host(self) -> np.ndarray[Any, Any]:
        """The elements, for what reads the host memory of arrays."""
        return host_of(self.fetch())

    def __array__(
        self, dtype: Any = None, copy: bool | None = None
    ) -> np.ndarray[Any, Any]:
        return self.fetch().__array__(dtype, copy)

    def __getattr__(self, name: str) -> Any:
        """Returns what the value has: methods of arrays, such as `sum`."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.fetch(), name)

    def __reduce__(self) -> Any:
        return self.fetch().__reduce__()

    def __copy__(self) -> RemoteArray:
        return self

    def __repr__(self) -> str:
        if self.is_deleted():
            return f"RemoteArray(<deleted>, {self.aval})"
        return f"RemoteArray({self.aval} on {self._type.placement})"

    def __str__(self) -> str:
        return str(self.fetch())

    def __format__(self, spec: str) -> str:
        return format(self.fetch(), spec)

    __hash__: Callable[..., int] = Array.__hash__


def _on_value(name: str) -> Any:
    def operation(self: RemoteArray, *operands: Any) -> Any:
        given = [x.fetch() if isinstance(x, RemoteArray) else x for x in operands]
        return getattr(self.fetch(), name)(*given)

    operation.__name__ = name
    return operation


_OPERATIONS = """
    abs add and bool complex divmod eq float floordiv ge getitem gt index int invert
    iter le len lshift lt matmul mod mul ne neg or pos pow radd rand rdivmod rfloordiv
    rlshift rmatmul rmod rmul ror round rpow rrshift rshift rsub rtruediv rxor sub
    truediv xor dlpack dlpack_device
"""
for _name in _OPERATIONS.split():
    setattr(RemoteArray, f"__{_name}__", _on_value(f"__{_name}__"))


def fetch(values: Any) -> Any:
    """Returns a pytree with the arrays that tasks hold copied to this process.

    All are asked for at once, so it takes less time than one `RemoteArray.fetch` after
    the other.

    Args:
      values: a pytree; leaves that are in this process stay as they are.

    Returns:
      The pytree with an `Array` in place of each `RemoteArray`.

    Raises:
      DistributedError: a step that computes one failed, or its task is lost.
      DeletedArrayError: one was donated or deleted.

    Example:
      >>> from fxflow import dataflow
      >>> dataflow.fetch({"loss": fnp.float32(1.0)})
      {'loss': Array(1., dtype=float32)}
    """
    leaves, structure = tree.flatten(values)
    remote = [x for x in leaves if isinstance(x, RemoteArray)]
    owners: dict[Any, list[RemoteArray]] = {}
    for array in remote:
        if array._value is None:
            if array._owner is None:
                raise array._deleted()
            owners.setdefault(array._owner, []).append(array)
    for owner, arrays in owners.items():
        for array, value in zip(arrays, owner.fetched(arrays), strict=True):
            array._value = value
    found = [x._value if isinstance(x, RemoteArray) else x for x in leaves]
    return structure.unflatten(found)


def require_no_other(arrays: Sequence[Any], owner: Owner) -> None:
    """Checks that the handles among arguments are of one cluster, and alive.

    Raises:
      ArgumentError: one is of another cluster.
      DeletedArrayError: one was donated or deleted.
    """
    for array in arrays:
        if isinstance(array, RemoteArray) and array._owner is not owner:
            if array._owner is None:
                raise array._deleted()
            raise ArgumentError(
                f"{array!r} is a handle of another cluster: fetch it (dataflow.fetch), "
                "and pass the value"
            )
