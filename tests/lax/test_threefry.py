"""The block cipher against Random123's known answers."""

import re

import numpy as np
import pytest

from fxflow import config, lax
from fxflow.core.ir.staging import trace_flat
from fxflow.core.runtime.lowering import lower_graph
from fxflow.errors import DtypeError, ShapeError
from fxflow.lax import random_seed, sampling
from fxflow.lax.threefry import FEW_KEYS, PACKED, block, blocks

# Random123 1.14, tests/kat_vectors, lines "threefry2x32 20": counter, key, result.
KNOWN = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)),
    (
        (0x243F6A88, 0x85A308D3),
        (0x13198A2E, 0x03707344),
        (0xC4923A9C, 0x483DF7A0),
    ),
]


@pytest.mark.parametrize(("counter", "key", "want"), KNOWN)
def test_known_answers(counter: tuple, key: tuple, want: tuple) -> None:
    assert block(*key, *counter) == want
    words = [np.array([w], np.uint32) for w in (*key, *counter)]
    assert tuple(int(w[0]) for w in blocks(*words)) == want
    for eager in ("auto", "xla"):
        with config.override(eager=eager):
            assert tuple(int(w[0]) for w in lax.threefry2x32(*words)) == want


@pytest.mark.parametrize("count", [0, 1, 2, 17, PACKED, PACKED + 1])
@pytest.mark.parametrize("keys", [1, 3, FEW_KEYS + 1])
def test_host_paths_agree(count: int, keys: int) -> None:
    # Few blocks are lanes of long Python integers, many are NumPy arrays.
    data = np.arange(2**32 - 3, 2**32 - 3 + 2 * keys, dtype=np.uint64).astype(np.uint32)
    data = data.reshape(keys, 2)
    words = sampling.RandomSplit.evaluate(data, shape=(count,))
    want = [[block(int(a), int(b), 0, i) for i in range(count)] for a, b in data]
    np.testing.assert_array_equal(words, np.array(want).reshape(keys, count, 2))


def test_one_function_for_each_shape() -> None:
    def program(words: object) -> list[object]:
        first, second, third = sampling.split(words, 3)
        return [sampling.bits(first, 32, (7,)), sampling.bits(second, 32, (7,)), third]

    graph, _ = trace_flat(program, [lax.random_unwrap(random_seed(0)).aval])
    text, _ = lower_graph(graph, name="program", platform="cpu")
    assert len(re.findall(r"func.func private @threefry2x32", text)) == 2
    assert len(re.findall(r"func.call @threefry2x32", text)) == 3


def test_invalid_operands_are_refused() -> None:
    u, v = np.zeros(3, np.uint32), np.zeros(2, np.uint32)
    with pytest.raises(DtypeError, match=r"words must be u32, got i32\[3\]"):
        lax.threefry2x32(u.astype(np.int32), u, u, u)
    with pytest.raises(ShapeError, match="the counter's words must have one shape"):
        lax.threefry2x32(u, u, u, v)
    with pytest.raises(ShapeError, match="and the key's that shape or none"):
        lax.threefry2x32(v, v, u, u)
