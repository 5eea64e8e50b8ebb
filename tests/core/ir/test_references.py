"""References as objects: their attributes, indices, who may write to them."""

import copy
import operator
import pickle
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax
from fxflow.core.ir.ref_index import WHOLE, read_index
from fxflow.errors import (
    ArgumentError,
    DeletedArrayError,
    DtypeError,
    LeakedTracerError,
    OutOfRangeError,
    ShapeError,
)


def test_a_reference_has_the_attributes_of_its_array() -> None:
    r = fxflow.new_ref(fnp.ones((2, 3)))
    assert (r.shape, r.dtype, r.ndim, r.size) == ((2, 3), np.float32, 2, 6)
    assert len(r) == 2 and [row.shape for row in r] == [(3,), (3,)]
    assert not r.committed and r.sharding == r[...].sharding
    assert not isinstance(r, fxflow.Array) and r.weak_type is False
    assert repr(fxflow.new_ref(2.0)) == "Ref(2., dtype=float32, weak_type=True)"


def test_a_reference_is_refused_as_a_value() -> None:
    r = fxflow.new_ref(1.0)
    assert r != fxflow.new_ref(1.0) and hash(r) != hash(fxflow.new_ref(1.0))
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(r)
    with pytest.raises(TypeError, match="0-d reference"):
        len(r)
    with pytest.raises(ArgumentError, match="read it with"):
        fnp.sin(r)
    for part in (r, fxflow.new_ref(fnp.ones(2)).at[0]):
        for symbol, wrong in {
            r"\+": lambda x: x + 1,
            "-": lambda x: 2 - x,
            r"\*": lambda x: fnp.ones(2) * x,
            "@": lambda x: x @ np.ones(2),
            "<": lambda x: x < 1,
            r"abs\(\)": abs,
            "/": lambda x: operator.itruediv(x, 2),
        }.items():
            match = rf"^{symbol}: a reference \(Ref.*: read it first: ref\[\.\.\.\]"
            with pytest.raises(TypeError, match=match):
                wrong(part)
        with pytest.raises(AttributeError, match=r"'sum'.*first: ref\[\.\.\.\]\.sum"):
            part.sum()
        with pytest.raises(AttributeError, match=r"no attribute 'summ'$"):
            part.summ()
    assert not hasattr(r, "T") and copy.deepcopy(r)[...] == 1
    with pytest.raises(ArgumentError, match=r"Ref\{f32\[\]~\}.*read it with"):
        fxflow.jit(lambda q: fnp.sin(q))(r)


def test_reads_and_writes() -> None:
    r = fxflow.new_ref(fnp.arange(4.0))
    r[0] = 9  # a Python number takes the dtype
    r[1:3] = fnp.array([5.0, 6.0])
    r[fnp.array([3])] += 1
    assert r[...].tolist() == [9, 5, 6, 4]
    r[r[...] > 5] = 0.0
    assert r[...].tolist() == [0, 5, 0, 4]
    assert r[-1].tolist() == 4 and r[None].shape == (1, 4)
    r[...] = 1.0  # broadcasts
    assert r.swap(2.0 * r[...]).tolist() == [1, 1, 1, 1]
    r.addupdate(1.0)
    assert r.get().tolist() == [3, 3, 3, 3]
    r.set(fnp.zeros(4))
    assert r[...].tolist() == [0, 0, 0, 0]


def test_arrays_stay_as_they_are() -> None:
    x = fnp.zeros(3)
    r = fxflow.new_ref(x)
    before = r[...]
    fxflow.jit(lambda q: q.__setitem__(0, 1.0))(r)
    r[1] = 2.0
    assert x.tolist() == before.tolist() == [0, 0, 0]
    assert r[...].tolist() == [1, 2, 0]


@pytest.mark.parametrize(
    ("index", "value", "error", "message"),
    [
        (5, 1.0, OutOfRangeError, "index 5 is out of range"),
        ((0, 0), 1.0, OutOfRangeError, "2 indices|too many"),
        (0, fnp.int32(1), DtypeError, r"i32\[\] is written .* holds f32"),
        (0, 1j, DtypeError, "holds f32"),
        (..., fnp.ones(2), ShapeError, r"f32\[2\] does not broadcast"),
        (slice(0, 2), fnp.ones(3), ShapeError, "do(es)? not broadcast"),
        (0, "a", ArgumentError, "not an array"),
        (0.5, 1.0, ArgumentError, "index"),
    ],
    ids=str,
)
@pytest.mark.parametrize("jit", [False, True])
def test_writes_with_a_wrong_index_or_value_are_refused(
    index, value, error, message, jit
) -> None:
    r = fxflow.new_ref(fnp.arange(3.0))
    write = lambda q: q.__setitem__(index, value)
    with pytest.raises(error, match=message):
        (fxflow.jit(write) if jit else write)(r)
    assert r[...].tolist() == [0, 1, 2]


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("float64", 0.3),
        ("float64", 2**40 + 1),
        ("int64", 2**40),
        ("uint64", 2**63),
        ("complex128", 0.1 + 0.3j),
        ("float16", 0.1),
    ],
)
def test_python_numbers_are_written_as_they_are(
    dtype: str, value: complex, jit: bool
) -> None:
    def write(r: Any) -> None:
        r[0] = value
        r.at[1].set(value)
        r.at[2].addupdate(value)

    r = fxflow.new_ref(fnp.zeros(3, dtype))
    (fxflow.jit(write) if jit else write)(r)
    assert np.asarray(r[...]).tolist() == np.full(3, value, dtype).tolist()


def test_integers_that_do_not_fit() -> None:
    r = fxflow.new_ref(fnp.zeros(3, "int8"))
    with pytest.raises(OverflowError, match="300 does not fit int8"):
        r[0] = 300


def test_indices_are_split() -> None:
    assert read_index(...) == (WHOLE, []) and read_index(())[0] is WHOLE
    assert read_index(slice(None))[0] is WHOLE
    static, arrays = read_index((1, slice(None, -1), None, np.int32(2)))
    assert str(static) == "[1, :-1, None, 2]" and not arrays
    i = fnp.array([0, 1])
    static, arrays = read_index((i, ..., 0))
    assert str(static) == "[*, ..., 0]" and arrays == [i]
    assert static.filled(arrays) == (i, ..., 0)
    assert read_index(fnp.array([True]))[0] is None


def test_views() -> None:
    r = fxflow.new_ref(fnp.zeros((2, 3)))
    row = r.at[1]
    assert (row.shape, row.dtype, row.ndim, len(row)) == ((3,), np.float32, 1, 3)
    row[0] = 1.0
    row.at[1:].at[1][...] = 5.0
    row.addupdate(1.0)
    assert r[...].tolist() == [[0, 0, 0], [2, 1, 6]]
    assert row.swap(fnp.zeros(3)).tolist() == [2, 1, 6]
    assert row.get().tolist() == row[...].tolist() == [0, 0, 0]
    assert repr(row) == "View<Ref{f32[3]}>"


def test_copies_of_a_reference_are_independent() -> None:
    r = fxflow.new_ref(fnp.ones(2))
    for other in (copy.copy(r), copy.deepcopy(r), pickle.loads(pickle.dumps(r))):
        other[0] = 5.0
        assert r[0] == 1 and other[...].tolist() == [5, 1]


def test_a_reference_holds_a_key() -> None:
    r = fxflow.new_ref(fxflow.random.key(0))

    @fxflow.jit
    def draw():
        r[...], key = fxflow.random.split(r[...])
        return fxflow.random.uniform(key)

    assert draw() != draw()


def test_large_ones_are_written_in_place() -> None:
    r = fxflow.new_ref(fnp.zeros(1 << 17))
    r[0] = 1.0  # the zeros were not ours alone: copied once
    where = r.unsafe_buffer_pointer()
    r[1] = 2.0
    r[-1] = 3.0
    fxflow.ref.addupdate(r, fnp.array([1, 1]), 1.0)
    assert r.unsafe_buffer_pointer() == where
    assert [float(r[i]) for i in (0, 1, 2, -1)] == [1, 4, 0, 3]
    seen = r[...]
    r[0] = 7.0
    assert seen[0] == 1 and r[0] == 7
    with pytest.raises(OutOfRangeError):
        r[1 << 17] = 1.0


def test_freed() -> None:
    r = fxflow.new_ref(1.0)
    fxflow.ref.free_ref(r)
    with pytest.raises(DeletedArrayError, match="free_ref"):
        r[...]


def test_leaked() -> None:
    leaked = []

    @fxflow.jit
    def f(r, x):
        leaked.extend((r, fxflow.new_ref(x)))
        return x

    f(fxflow.new_ref(1.0), 1.0)
    for r in leaked:
        with pytest.raises(LeakedTracerError, match="outside the transformed"):
            r[...]


@pytest.mark.parametrize(
    ("transform", "word"),
    [
        (fxflow.grad, "differentiated"),
        (lambda f: lambda x: fxflow.jvp(f, (x,), (x,)), "differentiated"),
        (lambda f: lambda x: fxflow.vmap(f)(fnp.ones(2)), "vectorized"),
    ],
)
def test_writes_from_inside_of_a_transformation(transform, word) -> None:
    r = fxflow.new_ref(fnp.zeros(()))

    def f(x):
        r[...] = x
        return x

    with pytest.raises(ArgumentError, match=f"being {word} cannot be written"):
        transform(f)(1.0)

    def constant(x):
        r[...] += 1.0
        return lax.stop_gradient(x) + r[...] + x

    transform(constant)(1.0)
    assert r[...] == 1
