"""The types of references."""

import pickle

import numpy as np

import fxflow
from fxflow.core.arrays import AbstractRef, Aval

F3 = Aval((3,), np.dtype(np.float32))


def test_interned_and_printed() -> None:
    ref = AbstractRef(F3)
    assert ref is AbstractRef(F3)
    assert str(ref) == repr(ref) == "Ref{f32[3]}"
    assert ref is not AbstractRef(F3, None, "other")
    assert pickle.loads(pickle.dumps(ref)) is ref


def test_has_the_shape_of_what_it_refers_to() -> None:
    ref = AbstractRef(F3)
    assert (ref.shape, ref.dtype, ref.ndim, ref.size) == ((3,), np.float32, 1, 3)
    assert ref.update(shape=(2,)).inner_aval == Aval((2,), np.dtype(np.float32))
    assert ref.tangent().dtype == fxflow.float0


def test_typeof() -> None:
    assert fxflow.typeof(fxflow.new_ref(np.ones(3, np.float32))) is AbstractRef(F3)
