"""Grids of coordinates."""

import warnings
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from tests.numpy.oracle import same

V = np.arange(4)


@pytest.mark.parametrize("indexing", ("xy", "ij"))
@pytest.mark.parametrize("sparse", (True, False))
def test_meshgrid(indexing: str, sparse: bool) -> None:
    for given in ((V,), (V, V[:3]), (V, V[:3], V[:2]), ()):
        want = list(np.meshgrid(*given, indexing=indexing, sparse=sparse))
        assert same(want, fnp.meshgrid(*given, indexing=indexing, sparse=sparse))
    got = fxflow.jit(lambda a, b: fnp.meshgrid(a, b))(V, V[:2])
    assert same(list(np.meshgrid(V, V[:2])), got)


@pytest.mark.parametrize("shape", ((2, 3), (4,), ()))
def test_indices(shape: tuple[int, ...]) -> None:
    assert same(np.indices(shape), fnp.indices(shape))
    assert same(np.indices(shape, sparse=True), fnp.indices(shape, sparse=True))


def test_fromfunction() -> None:
    want = np.fromfunction(lambda i, j: i * 2 + j, (2, 3))
    assert same(want, fnp.fromfunction(lambda i, j: i * 2 + j, (2, 3)))
    assert fnp.fromfunction(lambda i: i, 3, dtype=int).dtype == np.int32


S = np.s_


@pytest.mark.parametrize("key", (S[0:3, 0:2], S[0:1:5j], S[1:7:2], S[0:3, 0:1:3j]))
def test_grids_written_as_slices(key: Any) -> None:
    assert same(np.mgrid[key], fnp.mgrid[key])
    assert same(np.ogrid[key], fnp.ogrid[key])


ROWS = (
    *(S[1:4, 0, V], S["0,2", V, V], S["0,2,0", V, V], S["-1", V, V]),
    *(S[0:1:3j, 5], S["1,2,0", V, V], S[V]),
)


@pytest.mark.parametrize("key", ROWS, ids=str)
def test_rows(key: Any) -> None:
    assert same(np.r_[key], fnp.r_[key])


@pytest.mark.parametrize("key", (S[V, V], S[V[:, None], V[:, None]], S[V]), ids=str)
def test_columns(key: Any) -> None:
    assert same(np.c_[key], fnp.c_[key])


def test_invalid_axes_slices_and_options_are_refused() -> None:
    with pytest.raises(ArgumentError, match="indexing must be 'xy' or 'ij'"):
        fnp.meshgrid(V, indexing="yx")
    with pytest.raises(ShapeError, match="meshgrid: takes arrays of one axis"):
        fnp.meshgrid(np.ones((2, 2)))
    with pytest.raises(ArgumentError, match="a slice needs a stop"):
        _ = fnp.mgrid[0:]
    with pytest.raises(ArgumentError, match="up to three integers"):
        _ = fnp.r_["a,b", V]


@pytest.mark.parametrize("directive", ["r", "c"])
def test_matrices_of_one_row_or_column(directive: str) -> None:
    rows = np.ones((1, 2)), np.zeros((1, 2))
    for items in [(V,), (V, V), (1, 2), rows]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy makes a matrix, and warns of it
            wanted = np.asarray(np.r_[(directive, *items)])
        same(fnp.r_[(directive, *items)], wanted)


def test_grids_are_of_the_default_dtypes() -> None:
    assert fnp.mgrid[0:2, 0:1:3j].dtype == "float32"
    assert [a.dtype for a in fnp.ogrid[0:2, 0:1:3j]] == ["float32", "float32"]
    assert fnp.mgrid[0:2, 0:3].dtype == "int32"
