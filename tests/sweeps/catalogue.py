"""Every public function with arguments that it takes: what the sweeps run through.

A `Call` is one way to call one function. Its array arguments are `Operand`s, which
say what arrays may stand there; a sweep asks for ordinary ones (`call.draw`), or puts
arrays of its own in their place (`call.run`). The calls of a module of fxflow are
listed in the file of its name in `tests/sweeps/calls/`; `test_catalogue.py` fails if a
public function is in none of them.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import ml_dtypes
import numpy as np

import fxflow

#: One dtype for each kind of number, the one that an array has by default.
DTYPES = {
    "b": np.dtype(np.bool_),
    "i": np.dtype(np.int32),
    "u": np.dtype(np.uint32),
    "f": np.dtype(np.float32),
    "c": np.dtype(np.complex64),
}
#: All dtypes of a kind that every function of that kind takes.
ALL_DTYPES = {
    "b": ("bool",),
    "i": ("int8", "int16", "int32", "int64"),
    "u": ("uint8", "uint16", "uint32", "uint64"),
    "f": ("bfloat16", "float16", "float32", "float64"),
    "c": ("complex64", "complex128"),
}
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)

Make = Callable[[np.random.Generator, tuple[int, ...]], Any]


def kind_of(dtype: Any) -> str:
    """The letter of a dtype's kind: b, i, u, f or c."""
    if np.dtype(dtype) == BFLOAT16:
        return "f"
    return np.dtype(dtype).kind


@dataclass(frozen=True)
class Operand:
    """An array argument.

    Attributes:
      shape: of an ordinary array.
      kinds: letters of the kinds of dtype that the function takes here.
      low: smallest ordinary value.
      high: largest ordinary value.
      make: draws the values in float64, complex128 or int64, where not any value in
        between will do (indices, positive definite matrices, sorted bins).
      rigid: whether only such values and this shape make sense (`make` is needed).
      dtype: the only one that the function takes here (None: any of `kinds`).
    """

    shape: tuple[int, ...] = ()
    kinds: str = "biufc"
    low: float = -2.0
    high: float = 2.0
    make: Make | None = None
    rigid: bool = False
    dtype: str | None = None

    def draw(self, rng: np.random.Generator, dtype: Any = None) -> Any:
        """Returns an ordinary array, of `dtype` or else of a usual one."""
        if self.dtype is not None:
            dtype = self.dtype
        elif dtype is None:
            dtype = DTYPES[next(k for k in "fiucb" if k in self.kinds)]
        dtype = np.dtype(dtype)
        if self.make is not None:
            return np.asarray(self.make(rng, self.shape)).astype(dtype)
        if kind_of(dtype) == "b":
            return np.asarray(rng.integers(0, 2, self.shape)).astype(bool)
        low, high = self.low, self.high
        if kind_of(dtype) in "iu":
            low = max(low, 0) if kind_of(dtype) == "u" else low
            bottom = int(np.ceil(low))
            drawn = rng.integers(bottom, max(high, bottom) + 1, self.shape)
            return np.asarray(drawn).astype(dtype)
        values = np.asarray(rng.uniform(low, high, self.shape))
        if kind_of(dtype) == "c":
            values = values + 1j * rng.uniform(low, high, self.shape)
        return np.asarray(values).astype(dtype)


@dataclass(frozen=True)
class Call:
    """One way to call a public function.

    Attributes:
      name: the function's path below `fxflow`, such as `"numpy.linalg.qr"`.
      args: positional arguments, `Operand`s among them (also inside lists and tuples).
      kwargs: keyword arguments, likewise.
      one_dtype: whether all operands of inexact or any kind have to have one dtype, as
        for the functions of `lax`.
      numpy: the path of the function of NumPy or SciPy that does the same with the same
        arguments (None: there is none).
      differentiable: whether the derivative means something (it is not zero everywhere,
        and results are numbers).
      traceable: whether operands may be traced (False: the shape of the result depends
        on values).
      random: whether equal results are not expected of different programs.
      note: tells the calls of one function apart.
    """

    name: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    one_dtype: bool = False
    numpy: str | None = None
    differentiable: bool = True
    traceable: bool = True
    random: bool = False
    note: str = ""

    def __str__(self) -> str:
        return f"{self.name}-{self.note}" if self.note else self.name

    @property
    def function(self) -> Callable[..., Any]:
        """The public function itself."""
        found: Any = fxflow
        for part in self.name.split("."):
            found = getattr(found, part)
        return found

    @property
    def oracle(self) -> Callable[..., Any] | None:
        """The function of NumPy or SciPy, if there is one."""
        if not self.numpy:
            return None
        module, _, name = self.numpy.rpartition(".")
        return getattr(importlib.import_module(module), name)

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The operands in the order in which they stand in `args`, then `kwargs`."""
        return tuple(_operands((self.args, self.kwargs)))

    @property
    def kinds(self) -> str:
        """The letters of those kinds that every operand (not rigid) takes."""
        free = [o for o in self.operands if not o.rigid] or self.operands
        return "".join(k for k in "biufc" if all(k in o.kinds for o in free))

    def rng(self, seed: int = 0) -> np.random.Generator:
        """A generator that depends on the call and `seed` alone."""
        return np.random.default_rng([seed, zlib.crc32(str(self).encode())])

    def draw(self, dtype: Any = None, seed: int = 0) -> list[Any]:
        """Ordinary NumPy arrays for the operands, of `dtype` wherever it is taken."""
        rng = self.rng(seed)
        return [
            o.draw(rng, dtype if dtype and kind_of(dtype) in o.kinds else None)
            for o in self.operands
        ]

    def arguments(self, arrays: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """`args` and `kwargs` with `arrays` in the operands' places."""
        rest = iter(arrays)
        args, kwargs = _filled((self.args, self.kwargs), rest)
        return args, kwargs

    def run(self, *arrays: Any) -> Any:
        """Calls the function with `arrays` as its operands."""
        args, kwargs = self.arguments(arrays)
        return self.function(*args, **kwargs)

    def expected(self, *arrays: Any) -> Any:
        """Calls NumPy's or SciPy's function with `arrays` as operands."""
        args, kwargs = self.arguments(arrays)
        assert self.oracle is not None
        with np.errstate(all="ignore"):
            return self.oracle(*args, **kwargs)


def _operands(value: Any) -> Iterator[Operand]:
    if isinstance(value, Operand):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _operands(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _operands(item)


def _filled(value: Any, arrays: Iterator[Any]) -> Any:
    if isinstance(value, Operand):
        return next(arrays)
    if isinstance(value, list):
        return [_filled(item, arrays) for item in value]
    if type(value) is tuple:
        return tuple(_filled(item, arrays) for item in value)
    if type(value) is dict:
        return {key: _filled(item, arrays) for key, item in value.items()}
    return value


# -- operands --------------------------------------------------------------------------


def A(
    *shape: int, kinds: str = "biufc", low: float = -2.0, high: float = 2.0
) -> Operand:
    """An array of `shape`, of any kind unless `kinds` says less."""
    return Operand(shape, kinds, low, high)


def real(*shape: int, low: float = -2.0, high: float = 2.0) -> Operand:
    """An array of numbers that have an order."""
    return Operand(shape, "biuf", low, high)


def whole(*shape: int, low: float = 0, high: float = 5) -> Operand:
    """An array of integers or truth values."""
    return Operand(shape, "biu", low, high)


def inexact(*shape: int, low: float = -2.0, high: float = 2.0) -> Operand:
    """An array of floats, real or complex."""
    return Operand(shape, "fc", low, high)


def floating(*shape: int, low: float = -2.0, high: float = 2.0) -> Operand:
    """An array of real floats."""
    return Operand(shape, "f", low, high)


def mask(*shape: int) -> Operand:
    """An array of truth values."""
    return Operand(shape, "b")


def index(*shape: int, below: int) -> Operand:
    """Integers in 0 … below - 1."""
    return Operand(
        shape, "iu", make=lambda rng, s: rng.integers(0, below, s), rigid=True
    )


def made(make: Make, *shape: int, kinds: str = "f") -> Operand:
    """An array whose values only `make` can draw."""
    return Operand(shape, kinds, make=make, rigid=True)


def octets(*shape: int) -> Operand:
    """Bytes."""
    return Operand(
        shape,
        "u",
        make=lambda rng, s: rng.integers(0, 256, s),
        rigid=True,
        dtype="uint8",
    )


def positive_definite(*shape: int, kinds: str = "fc") -> Operand:
    """Symmetric matrices with eigenvalues of at least 1."""

    def make(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
        root = rng.normal(size=shape)
        return root @ np.swapaxes(root, -1, -2) + np.eye(shape[-1])

    return made(make, *shape, kinds=kinds)


def invertible(*shape: int, kinds: str = "fc") -> Operand:
    """Matrices that are far from singular."""
    return made(
        lambda rng, s: rng.uniform(-1, 1, s) + 3 * np.eye(s[-2], s[-1]),
        *shape,
        kinds=kinds,
    )


def ascending(*shape: int, kinds: str = "iuf") -> Operand:
    """Values that grow along the last axis."""
    return made(
        lambda rng, s: np.cumsum(rng.integers(1, 3, s), axis=-1), *shape, kinds=kinds
    )


# -- making tables ---------------------------------------------------------------------


def each(module: str, names: str, *operands: Any, **options: Any) -> list[Call]:
    """The same call of several functions of `module`: names set apart by spaces."""
    return [call(f"{module}.{name}", *operands, **options) for name in names.split()]


_FIELDS = {"one_dtype", "numpy", "differentiable", "traceable", "random", "note"}


def call(name: str, *args: Any, **options: Any) -> Call:
    """Returns a `Call`; options that are not fields of it are the function's."""
    fields = {k: options.pop(k) for k in list(options) if k in _FIELDS}
    return Call(name, args, options, **fields)


def like(other: str, calls: list[Call]) -> list[Call]:
    """`calls` whose functions do what those of the same name in module `other` do.

    A call that says `numpy=""` has none.
    """
    result = []
    for one in calls:
        if one.numpy is None:  # an empty name says that there is none
            last = one.name.rpartition(".")[2]
            module = importlib.import_module(other)
            found = f"{other}.{last}" if hasattr(module, last) else None
            result.append(replace(one, numpy=found))
        else:
            result.append(replace(one, numpy=one.numpy or None))
    return result


@functools.cache
def catalogue() -> tuple[Call, ...]:
    """All calls, in the order of the modules and of their tables."""
    from tests.sweeps import calls

    found: list[Call] = []
    for entry in pkgutil.iter_modules(calls.__path__):
        module = importlib.import_module(f"{calls.__name__}.{entry.name}")
        found += module.CALLS
    return tuple(found)


@functools.cache
def exempt() -> dict[str, str]:
    """Functions that no call is listed for, each with the reason."""
    from tests.sweeps import calls

    found: dict[str, str] = {}
    for entry in pkgutil.iter_modules(calls.__path__):
        module = importlib.import_module(f"{calls.__name__}.{entry.name}")
        found |= getattr(module, "EXEMPT", {})
    return found


def distributions() -> list[str]:
    """The modules of `fxflow.scipy.stats` that are distributions."""
    stats = importlib.import_module("fxflow.scipy.stats")
    return [
        f"scipy.stats.{name}"
        for name in stats.__all__
        if inspect.ismodule(getattr(stats, name))
    ]


MODULES = (
    "numpy",
    "numpy.linalg",
    "numpy.fft",
    "lax",
    "lax.linalg",
    "nn",
    "nn.initializers",
    "random",
    "image",
    "ops",
    "ref",
    "scipy.special",
    "scipy.linalg",
    "scipy.cluster.hierarchy",
    "scipy.cluster.vq",
    "scipy.differentiate",
    "scipy.fft",
    "scipy.integrate",
    "scipy.interpolate",
    "scipy.ndimage",
    "scipy.optimize",
    "scipy.optimize.elementwise",
    "scipy.signal",
    "scipy.sparse.csgraph",
    "scipy.sparse.linalg",
    "scipy.spatial",
    "scipy.stats",
    "scipy.stats.contingency",
    *distributions(),
)


def public_functions() -> list[str]:
    """The paths of all public functions of `MODULES`."""
    found = []
    for path in MODULES:
        module = importlib.import_module(f"fxflow.{path}")
        names = getattr(module, "__all__", None) or list(vars(module))
        for name in sorted(names):
            if name.startswith("_"):
                continue
            value = getattr(module, name)
            home = getattr(value, "__module__", None)
            ours = isinstance(home, str) and home.startswith("fxflow")
            # Distributions are modules; calling one gives it its parameters.
            plain = not inspect.isclass(value) and not inspect.ismodule(value)
            if callable(value) and ours and plain:
                found.append(f"{path}.{name}")
    return found
