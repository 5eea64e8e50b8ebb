"""From and to bytes, files, iterables, other libraries; text."""

import io
from pathlib import Path

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError
from tests.numpy.oracle import same

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_bytes_and_text() -> None:
    assert same(X.ravel(), fnp.frombuffer(X.tobytes(), "float32"))
    assert same(X.ravel()[1:3], fnp.frombuffer(X.tobytes(), "float32", 2, 4))
    assert fnp.fromstring("1 2 3", int, sep=" ").dtype == np.int32
    assert fnp.fromstring("1,2.5", sep=",").tolist() == [1, 2.5]
    assert fnp.fromiter((i * i for i in range(4)), "int8").tolist() == [0, 1, 4, 9]
    with pytest.raises(ArgumentError, match="sep must not be empty"):
        fnp.fromstring("1", sep="")


def test_files_are_read_back(tmp_path: Path) -> None:
    X.tofile(tmp_path / "raw")
    assert same(X.ravel(), fnp.fromfile(tmp_path / "raw", "float32"))
    for dtype in ("float32", "bfloat16", "int64", "complex64"):
        x = fnp.asarray(X, dtype)
        fnp.save(tmp_path / "x.npy", x)
        back = fnp.load(tmp_path / "x.npy")
        assert back.dtype == x.dtype and same(np.asarray(x), back)
    fnp.savez(tmp_path / "x.npz", fnp.asarray(X), named=fnp.ones(2))
    with fnp.load(tmp_path / "x.npz") as archive:
        assert same(X, archive["arr_0"]) and same(np.ones(2), archive["named"])
    stream = io.BytesIO()
    fnp.save(stream, X)
    assert stream.tell() > X.nbytes


def test_dlpack() -> None:
    host = np.arange(64, dtype=np.float32)
    x = fnp.from_dlpack(host)
    assert same(host, x) and fnp.from_dlpack(x).tolist() == host.tolist()
    copied = fnp.from_dlpack(host, copy=True)
    host[0] = 9
    assert float(copied[0]) == 0
    assert same(host, np.from_dlpack(fnp.asarray(host)))
    assert fnp.from_dlpack(x, device=fxflow.devices()[0]).device == x.device
    with pytest.raises(ArgumentError, match="from_dlpack: takes an array of a library"):
        fnp.from_dlpack([1, 2])


def test_print_options_apply_to_text() -> None:
    assert fnp.array_repr(fnp.arange(3)) == "Array([0, 1, 2], dtype=int32)"
    assert fnp.array_str(fnp.asarray([1.23456]), precision=2) == "[1.23]"
    with fnp.printoptions(precision=1):
        assert str(fnp.asarray([1.26])) == "[1.3]"
    assert fnp.get_printoptions()["precision"] == 8
