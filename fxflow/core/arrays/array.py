"""`Array`: an immutable array on a device.

It is our own class, not the runtime's: a runtime buffer, and on the CPU, where host
memory *is* device memory, possibly a NumPy array instead, which becomes a buffer only
when a compiled program asks. So tiny eager operations never reach the runtime. Either
slot may be unset; both unset means that the memory was donated or deleted. A slot that
is unset raises `AttributeError` by itself, which keeps the check out of the fast path.

Arithmetic, indexing and the methods of NumPy arrays are put on the class by
`fxflow.numpy`, which lies to the right of this layer; `array_interface.pyi` tells type
checkers of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fxflow.core import tree
from fxflow.core.arrays import dtypes
from fxflow.core.arrays.abstract_ref import AbstractRef
from fxflow.core.arrays.aval import ArrayType, Aval, _Typed, type_on
from fxflow.core.arrays.protocol import array_method
from fxflow.core.sizes import is_symbolic
from fxflow.core.source import at_fault, leave, located
from fxflow.devices import DeletedBufferError, Device, buffers, dlpack, transfers
from fxflow.devices.shardings import Sharding
from fxflow.errors import ArgumentError, DeletedArrayError

if TYPE_CHECKING:
    from fxflow.core.arrays.array_interface import ArrayInterface
else:
    ArrayInterface = object


@dataclass(frozen=True, slots=True)
class Shard:
    """The part of an array that one device holds.

    Attributes:
      device: the device.
      index: slices of the whole array.
      replica_id: 0 for the first device with this part, then 1, …; -1 if unknown.
      data: the part, an array on the device; None in another process.
    """

    device: Device
    index: tuple[slice, ...]
    replica_id: int
    data: Any


class Array(_Typed, ArrayInterface):
    """An immutable n-dimensional array.

    Made by `fxflow.numpy.asarray`, the creation functions and the results of
    operations. Supports NumPy's operators, indexing and methods, the array API and
    DLPack. Never modified in place: `x.at[i].set(v)` returns a new array.
    """

    __slots__ = ("__weakref__", "_buffer", "_host", "_type")

    _buffer: Any
    _host: np.ndarray[Any, Any]
    _type: ArrayType
    # NumPy must leave `ndarray + Array` to us.
    __array_priority__ = 100

    def __init__(self, buffer: Any, array_type: ArrayType) -> None:
        if type(array_type) is not ArrayType:
            raise ArgumentError(
                "arrays are made of data by fxflow.numpy.array, or of a shape and a "
                "dtype by fxflow.numpy.zeros or empty, not by the class"
            )
        self._buffer = buffer
        self._type = array_type

    # -- type --------------------------------------------------------------------------

    @property
    def aval(self) -> Aval:
        """The type: shape, dtype, weak type."""
        return self._type.aval

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return self.aval.dtype  # type: ignore[no-any-return]

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return self.aval.nbytes

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return int(self.aval.dtype.itemsize)

    # -- devices -----------------------------------------------------------------------

    @property
    def device(self) -> Any:
        """The device that holds the array; its sharding, if it lies on several."""
        placement = self._type.placement
        return placement.device if placement.is_single else placement.sharding

    @property
    def sharding(self) -> Sharding:
        """Which device holds which part."""
        return self._type.placement.sharding  # type: ignore[no-any-return]

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process holds all parts."""
        return bool(self.sharding.is_fully_addressable)

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds the whole array."""
        return bool(self.sharding.is_fully_replicated)

    @property
    def addressable_shards(self) -> list[Shard]:
        """The parts that lie on devices of this process, in the devices' order."""
        placement = self._type.placement
        shape = self.aval.shape
        indices = placement.sharding.devices_indices_map(shape)
        part = Aval(placement.sharding.shard_shape(shape), self.aval.dtype)
        first: dict[Any, int] = {}
        copies = {}
        for device, index in indices.items():
            key = tuple((s.start, s.stop) for s in index)
            first[key] = first.get(key, -1) + 1
            copies[device] = first[key]
        return [
            Shard(
                device,
                indices[device],
                copies[device],
                Array(
                    piece,
                    type_on(part, buffers.part_placement(placement, device), True),
                ),
            )
            for device, piece in zip(
                placement.local, buffers.parts(buffer_of(self)), strict=True
            )
        ]

    def addressable_data(self, index: int) -> Array:
        """Returns the part on one of this process's devices.

        Args:
          index: of the part in `addressable_shards`.
        """
        part: Array = self.addressable_shards[index].data
        return part

    @property
    def global_shards(self) -> list[Shard]:
        """All parts; those of other processes have no data."""
        mine = {shard.device: shard for shard in self.addressable_shards}
        where = self.sharding.devices_indices_map(self.aval.shape)
        return [mine.get(d) or Shard(d, index, -1, None) for d, index in where.items()]

    def devices(self) -> set[Device]:
        """Returns the set of devices that hold parts of the array."""
        return set(self._type.placement.devices)

    @property
    def committed(self) -> bool:
        """Whether the array was put on its device on request (it then stays there)."""
        return self._type.committed

    def platform(self) -> str:
        """Returns the name of the platform: `cpu`, `gpu` or `tpu`."""
        return str(self._type.placement.platform)

    def block_until_ready(self) -> Array:
        """Waits until the value is computed; returns the array."""
        if hasattr(self, "_buffer"):
            buffers.block_until_ready([self._buffer])
        elif not hasattr(self, "_host"):
            raise self._deleted()
        return self

    def is_ready(self) -> bool:
        """Returns whether the value is computed."""
        return buffers.is_ready(self._buffer) if hasattr(self, "_buffer") else True

    def copy_to_host_async(self) -> None:
        """Starts a copy to the host, so that a later conversion need not wait."""
        if hasattr(self, "_buffer"):
            buffers.start_copy_to_host(self._buffer)

    def delete(self) -> None:
        """Frees the memory now; any later use is an error."""
        if hasattr(self, "_buffer"):
            buffers.delete(self._buffer)
        forget(self)

    def is_deleted(self) -> bool:
        """Returns whether the memory was donated or deleted."""
        if hasattr(self, "_buffer"):
            # Another array may have shared the memory (`device_put` to where it was).
            return buffers.is_deleted(self._buffer)
        return not hasattr(self, "_host")

    def unsafe_buffer_pointer(self) -> int:
        """Returns the address of the data in the memory of its device."""
        return buffers.unsafe_pointer(buffer_of(self))

    def _deleted(self) -> DeletedArrayError:
        return DeletedArrayError(
            f"the memory of this {self.aval} was deleted: it was donated to a jitted "
            "call (donate_argnums/donate_argnames) or freed by .delete(). Use the "
            "call's result instead, or do not donate."
        )

    # -- to the host -------------------------------------------------------------------

    def _value(self) -> np.ndarray[Any, Any]:
        """Returns the elements as a read-only NumPy array."""
        if dtypes.is_key(self.aval.dtype):
            raise ArgumentError(
                f"{at_fault(self)}{self.aval} holds PRNG keys, which have no plain "
                "value: use "
                "fxflow.random.key_data to see their bits"
            )
        if self.aval.dtype == dtypes.float0:
            return np.zeros(self.aval.shape, dtypes.float0)
        host = host_of(self)
        if host.flags.writeable:
            # What a view is a view of decides whether it can be made writable again.
            if isinstance(host.base, np.ndarray):
                host.base.flags.writeable = False
            host.flags.writeable = False
        # A view, so that what the user sets on it (its shape, its flags) is not ours.
        return host.view()

    def __array__(
        self, dtype: Any = None, copy: bool | None = None
    ) -> np.ndarray[Any, Any]:
        value = self._value()
        if dtype is not None and np.dtype(dtype) != value.dtype:
            if copy is False:
                raise ValueError(
                    f"a view of {self.aval} as {np.dtype(dtype).name} needs a copy, "
                    "and copy=False forbids it"
                )
            return value.astype(dtype)
        return value.copy() if copy else value

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        if dtypes.is_key(self.aval.dtype):
            raise BufferError(
                f"{self.aval} holds PRNG keys, for which DLPack has no dtype: export "
                "fxflow.random.key_data of them"
            )
        if len(self._type.placement.devices) > 1:
            raise BufferError(
                f"{self.aval} lies on several devices ({self.sharding}), which DLPack "
                "cannot describe: export the parts, x.addressable_shards[i].data, or "
                "put it on one device"
            )
        return dlpack.to_dlpack(
            buffer_of(self),
            stream=stream,
            max_version=max_version,
            dl_device=dl_device,
            copy=copy,
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.dlpack_device(buffer_of(self))

    def item(self, *args: int) -> Any:
        """Returns one element as a Python scalar."""
        if not args and self.aval.size != 1:
            raise ValueError(
                f"item: takes an array of one element, got {self.aval}: give its index"
            )
        return self._value().item(*args)

    def tolist(self) -> Any:
        """Returns the elements as nested Python lists."""
        return self._value().tolist()

    def tobytes(self, order: Any = "C") -> bytes:
        """Returns the elements as bytes."""
        return self._value().tobytes(order)

    # Entering a `try` costs nothing, other than a call of a wrapper.
    def __bool__(self) -> bool:
        try:
            if self.aval.size != 1:
                raise ValueError(
                    f"{at_fault(self)}the truth value of {self.aval} is ambiguous: use "
                    ".any() or .all()"
                )
            return bool(self._value().reshape(()))
        except Exception as error:
            leave(error)
            raise

    def _one(self, what: str) -> np.ndarray[Any, Any]:
        if self.aval.size != 1 or self.aval.ndim:
            raise ArgumentError(
                f"{at_fault(self)}{what} takes a 0-d array, not {self.aval}: index it "
                "or use .item()"
            )
        return self._value()

    def __int__(self) -> int:
        try:
            return int(self._one("int()"))
        except Exception as error:
            leave(error)
            raise

    def __float__(self) -> float:
        try:
            return float(self._one("float()"))
        except Exception as error:
            leave(error)
            raise

    def __complex__(self) -> complex:
        try:
            return complex(self._one("complex()"))
        except Exception as error:
            leave(error)
            raise

    def __index__(self) -> int:
        try:
            if not dtypes.is_integer(self.aval.dtype):
                raise ArgumentError(
                    f"{at_fault(self)}an index must be a 0-d integer array, not "
                    f"{self.aval}"
                )
            return int(self._one("an index"))
        except Exception as error:
            leave(error)
            raise

    def __len__(self) -> int:
        try:
            if not self.shape:
                raise TypeError(f"{at_fault(self)}len() of a 0-d array ({self.aval})")
            return self.shape[0]
        except Exception as error:
            leave(error)
            raise

    def __hash__(self) -> int:
        raise TypeError(
            f"{at_fault(self)}arrays are not hashable (this one is {self.aval}): use "
            "a tuple of Python numbers as key, or, for a static argument of jit, pass "
            "the value as an ordinary argument"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        weak = self.aval.weak_type
        if self.aval.dtype != self.aval.physical.dtype:
            return _restore, (host_of(self), weak, self.aval.dtype)
        return _restore, (np.array(self._value()), weak, None)

    def __deepcopy__(self, memo: Any) -> Array:
        array_type = self._type
        here = array_type.placement
        if here.is_host:
            return from_host(np.array(host_of(self)), array_type)
        return Array(
            buffers.move(self.aval.physical, buffer_of(self), here, here), array_type
        )

    def __copy__(self) -> Array:
        return self

    # -- text --------------------------------------------------------------------------

    def __repr__(self) -> str:
        if self.is_deleted():
            return f"Array(<deleted>, {self.aval})"
        if dtypes.is_key(self.aval.dtype):
            body = np.array2string(host_of(self), separator=", ", prefix="Array(")
            return f"Array({self.aval}) overlaying:\n{body}"
        dtype = f"dtype={self.dtype.name}" + (", weak_type=True" * self.weak_type)
        value = self._value()
        if value.size:
            body = np.array2string(value, separator=", ", prefix="Array(", suffix=",")
            return f"Array({body}, {dtype})"
        return f"Array([], shape={self.shape}, {dtype})"

    def __str__(self) -> str:
        if self.is_deleted() or dtypes.is_key(self.aval.dtype):
            return repr(self)
        return str(self._value())

    def __format__(self, spec: str) -> str:
        return format(self._value()[()] if not self.shape else str(self), spec)

    def _repr_html_(self) -> str:
        return (
            f"<code>{self.aval}</code> on <code>{_escaped(self.device)}</code>"
            f"<pre>{_escaped(self)}</pre>"
        )


# -- the two representations -----------------------------------------------------------


#: From this many bytes on an array is not kept twice, in host memory and in a buffer.
LARGE = 1 << 20


def from_host(value: np.ndarray[Any, Any], array_type: ArrayType) -> Array:
    """Wraps a NumPy array without a copy: it must not be written to any more.

    Args:
      value: the elements (of the physical type, for keys).
      array_type: its placement is the host's.
    """
    self = object.__new__(Array)
    self._host = value
    self._type = array_type
    return self


def host_of(array: Array) -> np.ndarray[Any, Any]:
    """Returns the elements in host memory, without a copy where that is possible.

    The result must not be written to, and may not outlive the array's own memory.
    """
    try:
        return array._host
    except AttributeError:
        pass
    try:
        buffer = array._buffer
    except AttributeError:
        raise array._deleted() from None
    array_type = array._type
    if transfers.on and array_type.placement.platform != "cpu":
        transfers.guard(transfers.TO_HOST, array_type.aval, "the host")
    try:
        value: np.ndarray[Any, Any] = (
            buffers.to_host(buffer)
            if array_type.placement.is_single
            else buffers.gather_to_host(
                array_type.aval.physical, buffer, array_type.placement
            )
        )
    except DeletedBufferError:
        raise array._deleted() from None
    array._host = value
    return value


def buffer_of(array: Array) -> Any:
    """Returns the runtime buffer, made from the host's elements if need be."""
    try:
        return array._buffer
    except AttributeError:
        pass
    try:
        value = array._host
    except AttributeError:
        raise array._deleted() from None
    array_type = array._type
    if value.nbytes >= LARGE and not buffers.can_alias(value):
        # A copy at once, so that the host memory can be freed.
        array._buffer = buffers.put_copy(
            array_type.aval.physical, value, array_type.placement
        )
        del array._host
        return array._buffer
    buffer = buffers.put(array_type.aval.physical, value, array_type.placement)
    array._buffer = buffer
    return buffer


def release(array: Array) -> Any:
    """Returns the array's buffer, about to be donated, with our own view of it dropped.

    The runtime reuses memory only if it has no other reference: where NumPy or DLPack
    still hold a view, the program's result gets new memory (measured, see
    `devices/buffers`).
    """
    buffer = buffer_of(array)
    if hasattr(array, "_host"):
        del array._host
        buffers.can_donate(buffer)
    return buffer


def require_alive(arrays: Sequence[Array]) -> None:
    """Checks arrays that the runtime refused.

    Raises:
      DeletedArrayError: one of them was donated or deleted.
    """
    for array in arrays:
        if array.is_deleted():
            raise array._deleted() from None


def forget(array: Array) -> None:
    """Drops both representations: the memory was donated or deleted."""
    for slot in ("_buffer", "_host"):
        if hasattr(array, slot):
            delattr(array, slot)


def _restore(value: np.ndarray[Any, Any], weak_type: bool, dtype: Any) -> Array:
    if dtype is not None and dtypes.is_key(dtype):
        aval = Aval(value.shape[: value.ndim - len(dtype.suffix)], dtype)
    elif dtype == dtypes.float0:
        aval = Aval(value.shape, dtype)
    else:
        aval = Aval(value.shape, value.dtype, weak_type)
    array_type = type_on(aval)
    if array_type.placement.is_host:
        return from_host(value, array_type)
    return Array(buffers.put(aval.physical, value, array_type.placement), array_type)


def put_host(value: np.ndarray[Any, Any], aval: Aval) -> Array:
    """Makes an array on the default device of host elements that stay as they are."""
    return _restore(value, aval.weak_type, aval.dtype)


def _escaped(value: Any) -> str:
    """Returns text for HTML; the `html` module takes 1.4 ms to import."""
    text = str(value).replace("&", "&amp;")
    return text.replace("<", "&lt;").replace(">", "&gt;")


# -- from what users pass --------------------------------------------------------------

#: What becomes an array; for annotations of what takes no pytrees.
ArrayOrNumber = Array | np.ndarray[Any, Any] | np.generic | complex

_SCALARS = (bool, int, float, complex)


def is_arraylike(value: Any) -> bool:
    """Returns whether an operation accepts `value` as an array."""
    known = isinstance(value, (Array, *_SCALARS, np.ndarray, np.generic))
    return known or array_method(value) is not None


def text_of(value: Any, length: int = 60) -> str:
    """Returns the text of a value for a message, cut at a length."""
    try:
        text = repr(value)
    except Exception:  # the user's class: its own error would hide ours
        text = "a value"
    return text if len(text) <= length else text[: length - 3] + "..."


def kind_of(value: Any) -> str:
    """Returns what a message says a value is: an array's type, or its class."""
    return str(value.aval) if isinstance(value, Array) else type(value).__name__


# Arrays of other libraries, by the package that their class is from.
_FOREIGN = {
    "jax": "a JAX array",
    "jaxlib": "a JAX array",
    "torch": "a PyTorch tensor",
    "cupy": "a CuPy array",
    "tensorflow": "a TensorFlow tensor",
    "mlx": "an MLX array",
    "pandas": "a pandas object",
}


def not_an_array(value: Any, where: str = "", label: str = "") -> ArgumentError:
    """Returns the error for a value that is not an array.

    Args:
      value: what was given.
      where: how the message begins, such as `f: x is`; nothing: the public function
        and its argument are looked up.
      label: the parameter's name, where it is that of a transformed function.
    """
    aval = getattr(value, "aval", None)
    if type(aval) is AbstractRef:
        return ArgumentError(
            f"{where or at_fault(value) + 'got'} {aval}, a reference, which is not an "
            "array: read it with ref[...]"
        )
    shown = text_of(value)
    if label == "self":
        hint = (
            "the object of a method is an argument, too: register its class as a "
            "pytree (fxflow.tree.register_dataclass), make it static "
            "(functools.partial(fxflow.jit, static_argnums=0)), or transform a "
            "function of its arrays"
        )
    elif isinstance(value, list | tuple):
        hint = "convert it with fnp.asarray"
    elif hasattr(value, "todense") and not isinstance(value, type):
        hint = "it is sparse: make it dense with todense(), or use its methods"
    elif hasattr(value, "__dlpack__") and not isinstance(value, type):
        hint = (
            "share its memory with fxflow.numpy.from_dlpack, or copy it with "
            "fnp.asarray"
        )
    elif hasattr(value, "__array__") and not isinstance(value, type):
        hint = "copy it with fnp.asarray"
    elif inspect.isroutine(value):
        shown = located(value)
        hint = "pass its result, not the function itself"
    else:
        hint = "pass an array, a number or a NumPy array"
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    foreign = package not in ("builtins", "__main__")
    name = f"{kind.__module__}.{kind.__name__}" if foreign else kind.__name__
    if package in _FOREIGN and hasattr(value, "shape"):
        dims = ",".join(map(str, value.shape))
        dtype = str(getattr(value, "dtype", "")).rpartition(".")[2]
        return ArgumentError(
            f"{where or at_fault(value) + 'got'} {_FOREIGN[package]}, "
            f"{dtype}[{dims}], which is not an array of fxflow: {hint}"
        )
    typed = "None" if value is None else f"{shown} of type {name}"
    return ArgumentError(
        f"{where or at_fault(value) + 'got'} {typed}, which is not an array: {hint}"
    )


def typeof(value: Any) -> Aval:
    """Returns the type of an array, tracer, scalar or NumPy array.

    Args:
      value: array-like, or anything with an `aval`.

    Returns:
      Its type, as an operation sees it.

    Raises:
      ArgumentError: `value` is not an array.

    Example:
      >>> typeof(3.0)
      f32[]~
    """
    aval = getattr(value, "aval", None)
    if type(aval) is Aval:
        return aval
    # `np.float64` derives from `float`, but is not weak.
    if isinstance(value, _SCALARS) and not isinstance(value, np.generic):
        return Aval((), dtypes.of_python(value), not isinstance(value, bool))
    if isinstance(value, np.ndarray | np.generic):
        return Aval(value.shape, dtypes.of_host(value))
    convert = array_method(value)
    if convert is not None:
        return typeof(convert())
    if type(aval) is AbstractRef:
        return aval
    raise not_an_array(value)


def like_type(value: Any) -> Aval:
    """Returns the type of anything with a shape and a dtype, which it only looks at.

    Args:
      value: array-like, or an object that says its shape and dtype.

    Returns:
      Its type; weak if it says so.

    Raises:
      ArgumentError: `value` is not an array and says neither.
    """
    if (
        isinstance(value, np.ndarray | np.generic)
        or type(getattr(value, "aval", None)) is Aval
    ):
        return typeof(value)
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is None or dtype is None:
        return typeof(value)
    weak = getattr(value, "weak_type", False) is True
    lengths = tuple(n if is_symbolic((n,)) else int(n) for n in shape)
    return Aval(lengths, dtypes.dtype(dtype), weak)


def unwrapped(value: Any) -> Any:
    """Returns the array that an object stands for; anything else as it is."""
    convert = None if isinstance(value, Array) else array_method(value)
    return value if convert is None else convert()


def as_array(value: Any, dtype: Any = None) -> Array:
    """Returns `value` as an array (host memory is copied, never aliased).

    Args:
      value: array-like.
      dtype: the one that is declared for the value, such as an exported program's. Host
        data of this dtype, and Python numbers of its kind, keep 64 bits then although
        `config.x64` is off. No other value is converted to it.

    Raises:
      ArgumentError: `value` is not an array.
      OverflowError: an integer does not fit the dtype that it gets.
    """
    if isinstance(value, Array):
        return value
    kept = None if dtype is None else _kept(value, dtype)
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype == dtypes.float0:
            aval = Aval(value.shape, dtypes.float0)
            return put_host(np.zeros(aval.shape, aval.physical.dtype), aval)
        # A copy: the user may write to the original, and programs run later.
        host = np.array(dtypes.host_array(value, kept))
        aval = Aval(host.shape, host.dtype)
        if transfers.on:
            transfers.guard(transfers.TO_DEVICE, aval, "the default device")
        return put_host(host, aval)
    if isinstance(value, _SCALARS):
        chosen = dtypes.of_python(value, kept)
        aval = Aval((), chosen, not isinstance(value, bool))
        if transfers.on:
            transfers.guard(transfers.TO_DEVICE, aval, "the default device")
        return put_host(np.array(value, chosen), aval)
    convert = array_method(value)
    if convert is not None:
        return as_array(convert(), dtype)
    raise not_an_array(value)


def _kept(value: Any, dtype: Any) -> Any:
    """Returns the declared dtype if a value has it already, at 64 bits; else None."""
    if not dtypes.is_wide(dtype):
        return None
    if dtype == dtypes.uint64 and isinstance(value, int) and type(value) is not bool:
        return dtype
    if isinstance(value, np.ndarray | np.generic):
        own = value.dtype.newbyteorder("=")
        return dtype if own == dtype else None
    for kind in _SCALARS:
        if isinstance(value, kind):
            return dtype if dtypes.default(kind, wide=True) == dtype else None
    return None


def read_only(values: Any) -> Any:
    """Returns a pytree with NumPy arrays replaced by (immutable) arrays.

    For functions that are run as they are (`config.disable_jit`): `x += 1` in them must
    not change what the caller has.
    """
    return tree.map(lambda x: as_array(x) if isinstance(x, np.ndarray) else x, values)
