"""Keys moved as the words they are made of."""

import pytest

from fxflow import lax, random
from fxflow.errors import DtypeError
from fxflow.lax.keys import map_key_data


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
