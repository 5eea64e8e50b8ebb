"""Reductions of segments, beside a loop over the rows."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fxflow
from fxflow import ops
from fxflow.errors import ArgumentError, ConcretizationError, DtypeError, ShapeError

RNG = np.random.default_rng(0)
DATA = RNG.integers(1, 5, (8, 3)).astype(np.float32)
IDS = np.array([0, 0, 2, -1, 5, 9, 2, 2])
EMPTY = {"sum": 0, "prod": 1, "max": -np.inf, "min": np.inf}
UFUNCS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


def loop(kind: str, data: Any, ids: Any, count: int, clip: bool = False) -> Any:
    """What a function gives, one row at a time."""
    out = np.full((count, *data.shape[1:]), EMPTY[kind])
    for row, i in zip(data, np.clip(ids, 0, count - 1) if clip else ids, strict=True):
        if 0 <= i < count:
            out[i] = UFUNCS[kind](out[i], row)
    return out


@pytest.mark.parametrize("kind", EMPTY)
@settings(max_examples=15)
@given(
    ids=st.lists(st.integers(-2, 7), min_size=8, max_size=8),
    bucket=st.sampled_from([None, 1, 3, 8, 100]),
    mode=st.sampled_from([None, "drop", "clip"]),
)
def test_segments_agree_with_a_python_loop(
    kind: str, ids: Any, bucket: int | None, mode: str | None
) -> None:
    function = getattr(ops, f"segment_{kind}")
    got = function(DATA, np.array(ids), 6, bucket_size=bucket, mode=mode)
    np.testing.assert_array_equal(got, loop(kind, DATA, ids, 6, mode == "clip"))


@pytest.mark.parametrize("kind", EMPTY)
def test_segments_under_jit_and_vmap(kind: str) -> None:
    function = getattr(ops, f"segment_{kind}")
    want = loop(kind, DATA, IDS, 6)
    np.testing.assert_array_equal(
        fxflow.jit(function, static_argnums=2)(DATA, IDS, 6), want
    )
    rows = fxflow.vmap(lambda d: function(d, IDS, 6), 1, 1)(DATA)
    np.testing.assert_array_equal(rows, want)
    place = np.array([0, 2, 5])

    def total(d: Any) -> Any:
        return (function(d, IDS, 6)[place] ** 2).sum()

    with fxflow.config.override(x64=True):
        d = RNG.normal(size=(8, 2))
        h, step = 1e-6, RNG.normal(size=d.shape)
        want = (float(total(d + h * step)) - float(total(d - h * step))) / (2 * h)
        got = float((fxflow.grad(total)(d) * step).sum())
        assert got == pytest.approx(want, rel=1e-6)


def test_dtypes_and_identities() -> None:
    ids = np.array([0, 2])
    for dtype in (np.int8, np.uint16, np.int32):
        x = np.array([3, 4], dtype)
        info = np.iinfo(dtype)
        assert ops.segment_max(x, ids).tolist() == [3, info.min, 4]
        assert ops.segment_min(x, ids).tolist() == [3, info.max, 4]
        assert ops.segment_sum(x, ids).dtype == dtype
    x = np.array([True, False])
    assert ops.segment_max(x, ids).tolist() == [True, False, False]
    assert ops.segment_min(x, ids).tolist() == [True, True, False]
    assert ops.segment_sum(np.array([1j, 2]), ids[::-1].copy(), 4).shape == (4,)
    assert ops.segment_sum(3.0, 0).tolist() == [3.0]
    assert ops.segment_sum(np.zeros((0, 2)), np.zeros(0, int)).shape == (0, 2)
    # Nothing is lost in a long sum if it is made of shorter ones.
    ones, zeros = np.ones(1 << 14, np.float16), np.zeros(1 << 14, int)
    assert float(ops.segment_sum(ones, zeros, 1, bucket_size=128)[0]) == 1 << 14


def test_invalid_ids_counts_and_modes_are_refused() -> None:
    for error, args in [
        (ShapeError, (DATA, IDS[:3])),
        (ShapeError, (DATA, IDS[:, None])),
        (DtypeError, (DATA, IDS * 1.0)),
        (ArgumentError, (DATA, IDS, -1)),
        (ArgumentError, (DATA, IDS, 6, False, False, 0)),
        (ArgumentError, (DATA, IDS, 6, False, False, None, "wrap")),
    ]:
        with pytest.raises(error):
            ops.segment_sum(*args)
    with pytest.raises(ConcretizationError):
        fxflow.jit(ops.segment_sum)(DATA, IDS)
    mesh = fxflow.make_mesh((2,), ("x",))
    where = fxflow.NamedSharding(mesh, fxflow.P("x"))
    assert ops.segment_sum(DATA, IDS, 6, out_sharding=where).sharding == where
