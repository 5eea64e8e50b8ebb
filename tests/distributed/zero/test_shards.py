"""Sharded arrays: cutting, gathering and padding."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import P
from fxflow.distributed.zero.shards import (
    ShardAxis,
    Sharded,
    by_dtype,
    is_sharded,
    split,
    type_of,
)

COUNT = 4
AXIS = ShardAxis("s", COUNT)


WHOLE = P()


def on_all(function, *args, out_specs=WHOLE):
    """Runs a function on 4 devices with replicated arguments."""
    mesh = fxflow.make_mesh((COUNT,), ("s",))
    return fxflow.shard_map(
        function, mesh=mesh, in_specs=P(), out_specs=out_specs, check=False
    )(*args)


def test_cut_and_gather_are_inverse() -> None:
    arrays = {
        "padded": fnp.arange(15.0).reshape(3, 5),
        "even": fnp.arange(8, dtype=fnp.int32),
        "short": fnp.arange(2.0),
    }

    def there_and_back(arrays):
        cut = {name: AXIS.cut(x) for name, x in arrays.items()}
        whole = AXIS.gather(list(cut.values()))
        return cut, dict(zip(cut, whole, strict=True))

    cut, whole = on_all(there_and_back, arrays, out_specs=(P("s"), P()))
    assert cut["padded"].flat.tolist() == [*range(15), 0]
    assert cut["short"].flat.tolist() == [0, 1, 0, 0]
    assert cut["even"].flat.dtype == np.int32
    for name, x in arrays.items():
        assert whole[name].shape == x.shape
        assert np.array_equal(whole[name], x), name


def test_filled_replaces_only_the_padding() -> None:
    def fill(x):
        return AXIS.filled(AXIS.cut(x), 7.0)

    found = on_all(fill, fnp.zeros(6), out_specs=P("s"))
    assert found.tolist() == [0, 0, 0, 0, 0, 0, 7, 7]
    assert on_all(fill, fnp.zeros(4), out_specs=P("s")).tolist() == [0] * 4


def test_scalars_keys_and_empty_arrays_are_not_sharded() -> None:
    assert AXIS.shards(type_of(fnp.zeros(1)))
    assert not AXIS.shards(type_of(fnp.zeros((0, 3))))
    assert not AXIS.shards(type_of(fnp.zeros(())))
    assert not AXIS.shards(type_of(fxflow.random.split(fxflow.random.key(0))))


def test_sharded_is_a_pytree_with_the_unsharded_type() -> None:
    x = Sharded(fnp.zeros(16), (3, 5))
    assert fxflow.tree.leaves(x)[0] is x.flat
    assert fxflow.tree.map(lambda a: a + 1, x).shape == (3, 5)
    assert is_sharded(x) and not is_sharded(x.flat)
    assert str(type_of(x)) == "f32[3,5]" and x.size == 15
    assert "shape=(3, 5)" in repr(x)


def test_arrays_are_grouped_by_dtype_and_split() -> None:
    a, b, c = fnp.zeros(2), fnp.zeros(3, fnp.int32), fnp.zeros(1)
    assert by_dtype([a, b, c]) == [[0, 2], [1]]
    parts = split(np.arange(6).reshape(2, 3), [a, c])
    assert [p.tolist() for p in parts] == [[[0, 1], [3, 4]], [[2], [5]]]


@pytest.mark.parametrize(("size", "piece"), [(0, 0), (1, 1), (4, 1), (5, 2)])
def test_the_size_of_a_piece_includes_padding(size: int, piece: int) -> None:
    assert AXIS.piece(size) == piece
