"""The dtypes of random keys: one for each generator."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from fxflow.errors import DtypeError


class extended(np.generic):
    """Abstract kind of dtypes that NumPy does not have."""


class prng_key(extended):
    """Abstract kind of random keys: `issubdtype(key.dtype, prng_key)`."""


class KeyDtype:
    """The dtype of a random key, written `key<fry>`; one object per generator.

    Args:
      impl: the generator: `"threefry2x32"`, `"rbg"` or `"unsafe_rbg"`.

    Attributes:
      impl: the generator's name.
      name: how the dtype is written.
      suffix: the axes that one key takes in memory.
      base: the dtype of the words in memory.
      itemsize: bytes of one key.
      kind: `"key"`, where a NumPy dtype has one letter.
      type: the abstract kind, `prng_key`.

    Raises:
      DtypeError: unknown generator.

    Example:
      >>> KeyDtype("threefry2x32")
      key<fry>
      >>> KeyDtype("threefry2x32") is KeyDtype("threefry2x32")
      True
    """

    __slots__ = ("base", "impl", "itemsize", "name", "suffix")

    kind: ClassVar[str] = "key"
    type: ClassVar[Any] = prng_key

    impl: str
    name: str
    suffix: tuple[int, ...]
    base: np.dtype[Any]
    itemsize: int

    def __new__(cls, impl: str) -> KeyDtype:
        """Returns the one object of this generator."""
        is_name = isinstance(impl, str)
        known = _keys.get(impl) if is_name else None
        if known is not None:
            return known
        if not is_name or impl not in _KEY_IMPLS:
            raise DtypeError(
                f"KeyDtype: unknown generator {impl!r}; expected one of "
                f"{', '.join(map(repr, _KEY_IMPLS))}"
            )
        short, suffix = _KEY_IMPLS[impl]
        self = object.__new__(cls)
        self.impl, self.name, self.suffix = impl, f"key<{short}>", suffix
        self.base = np.dtype(np.uint32)
        self.itemsize = int(np.prod(suffix)) * self.base.itemsize
        return _keys.setdefault(impl, self)

    def __reduce__(self) -> tuple[Any, ...]:
        return KeyDtype, (self.impl,)

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


# Generator → short name and the shape of a key in memory. Salmon et al. 2011:
# Threefry-2x32 has two words; the state of XLA's own generators is four.
_KEY_IMPLS: dict[str, tuple[str, tuple[int, ...]]] = {
    "threefry2x32": ("fry", (2,)),
    "rbg": ("rbg", (4,)),
    "unsafe_rbg": ("urbg", (4,)),
}
_keys: dict[str, KeyDtype] = {}
