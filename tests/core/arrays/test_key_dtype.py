"""Dtypes of random keys."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from fxflow.core.arrays import dtypes
from fxflow.core.arrays.key_dtype import KeyDtype, extended, prng_key
from fxflow.errors import DtypeError


@pytest.mark.parametrize(
    ("impl", "name", "words"),
    [("threefry2x32", "fry", 2), ("rbg", "rbg", 4), ("unsafe_rbg", "urbg", 4)],
)
def test_one_object_for_each_generator(impl: str, name: str, words: int) -> None:
    key = KeyDtype(impl)
    assert key is KeyDtype(impl) is copy.deepcopy(key)
    assert pickle.loads(pickle.dumps(key)) is key
    assert repr(key) == key.name == f"key<{name}>"
    assert key.suffix == (words,) and key.itemsize == 4 * words
    assert key.base == np.uint32 and key.impl == impl
    assert dtypes.is_key(key) and dtypes.dtype(key) is key
    assert dtypes.bits(key) == 32 * words


def test_key_dtypes_are_extended_dtypes() -> None:
    assert issubclass(prng_key, extended) and issubclass(extended, np.generic)
    assert KeyDtype("rbg").type is prng_key
    assert dtypes.issubdtype(KeyDtype("rbg"), prng_key)


@pytest.mark.parametrize("impl", ["mersenne", "", 3, None])
def test_no_such_generator(impl: object) -> None:
    with pytest.raises(DtypeError, match="unknown generator"):
        KeyDtype(impl)  # type: ignore[arg-type]
