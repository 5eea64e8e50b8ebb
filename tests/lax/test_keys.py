"""Keys moved as the words they are made of."""

import numpy as np
import pytest

from fxflow import lax, random
from fxflow.core.arrays.aval import Aval
from fxflow.core.arrays.convert import typeof
from fxflow.errors import DtypeError
from fxflow.lax.keys import is_key_type, map_key_data


def test_only_keys_are_words() -> None:
    assert is_key_type(typeof(random.key(0)))
    assert not is_key_type(Aval((2,), np.dtype("u4")))


def test_an_operation_on_key_data_gives_keys() -> None:
    key = random.key(1)
    both = map_key_data(lambda words: lax.broadcast(words, (3,)), key)
    assert both.shape == (3,)
    assert both.dtype == key.dtype
    assert [k.shape for k in map_key_data(lambda words: [words, words], key)] == [
        (),
        (),
    ]
    with pytest.raises(DtypeError):
        map_key_data(lambda a, b: a, key, 1)
