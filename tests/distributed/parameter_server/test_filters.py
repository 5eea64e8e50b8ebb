"""Each filter in one process: what arrives, what stays, and how many bytes it sends."""

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fxflow
from fxflow.distributed import compression
from fxflow.distributed.parameter_server import place, tensors_of
from fxflow.distributed.parameter_server.filters import (
    Filter,
    by_group,
    bytes_by_filter,
    coded_types,
    filter_of,
    pull_filter_of,
    significance,
    top_k,
)
from fxflow.distributed.parameter_server.worker.pieces import Cutter
from fxflow.errors import ArgumentError

LIKE = {
    "a/b": np.zeros(3, np.float32),
    "a/w": np.zeros((5, 70), np.float32),
    "empty": np.zeros((0, 2), np.float32),
    "half": np.zeros(40, np.float16),
    "number": np.zeros((), np.float32),
    "steps": np.zeros(3, np.int32),
}
FILTERS = [
    filter_of("f32"),
    filter_of("f16"),
    filter_of("bf16"),
    filter_of(compression.int8(64)),
    filter_of(compression.one_bit(64)),
    top_k(0.1),
    top_k(0.2, values="int8"),
    significance(0.5, 0.3, block_size=8),
    significance(2, 1, relative=True, values="bf16"),
    by_group({"a/b": "f32", "*/w": top_k(0.05), "no*": "int8"}, "bf16"),
]
IDS = [code.name for code in FILTERS]


@functools.cache
def compiled(which: int) -> tuple[Any, Any]:
    return fxflow.jit(FILTERS[which].encode), fxflow.jit(FILTERS[which].decode)


def gradient(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {n: rng.normal(size=x.shape).astype(x.dtype) for n, x in LIKE.items()}


def step(which: int, x: Mapping[str, Any], residual: Any) -> tuple[Any, Any]:
    """Returns what arrives, and the residual."""
    encode, decode = compiled(which)
    sent, residual = encode(x, residual)
    found = fxflow.device_get(decode(sent, LIKE))
    assert list(found) == list(LIKE)
    for name, value in found.items():
        assert (value.shape, value.dtype) == (LIKE[name].shape, LIKE[name].dtype)
    return found, residual


def waiting(residual: Any, total: dict[str, np.ndarray]) -> dict[str, Any]:
    """Returns the residual of each array; 0 for arrays that are sent unchanged."""
    if isinstance(residual, list):
        merged: dict[str, Any] = {}
        for part in residual:
            merged.update(part)
        residual = merged
    return {n: 0 if residual.get(n) is None else residual[n] for n in total}


@pytest.mark.parametrize("which", range(len(FILTERS)), ids=IDS)
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**20), steps=st.integers(1, 6))
def test_each_gradient_arrives_or_is_residual(
    which: int, seed: int, steps: int
) -> None:
    residual = FILTERS[which].init(LIKE)
    total = {n: np.zeros(x.shape) for n, x in LIKE.items()}
    arrived = {n: np.zeros(x.shape) for n, x in LIKE.items()}
    for i in range(steps):
        x = gradient(seed + i)
        found, residual = step(which, x, residual)
        for name in LIKE:
            total[name] += x[name]
            arrived[name] += found[name]
    for name, rest in waiting(residual, total).items():
        np.testing.assert_allclose(
            arrived[name] + np.asarray(rest, np.float64), total[name], atol=1e-4
        )


@pytest.mark.parametrize("which", range(len(FILTERS)), ids=IDS)
def test_the_residual_does_not_grow(which: int) -> None:
    # If the gradient stays the same, what arrives has the same mean.
    x = gradient(0)
    residual = FILTERS[which].init(LIKE)
    total = {n: np.zeros(v.shape) for n, v in LIKE.items()}
    for i in range(160):
        found, residual = step(which, x, residual)
        if i >= 40:
            total = {n: total[n] + found[n] for n in LIKE}
    for name in LIKE:
        np.testing.assert_allclose(total[name] / 120, x[name], atol=0.4)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 3.4e38])
@pytest.mark.parametrize("which", range(len(FILTERS)), ids=IDS)
def test_a_non_finite_gradient_does_not_affect_the_next(which: int, bad: float) -> None:
    x = gradient(0)
    x["a/w"][0, 0] = bad
    found, residual = step(which, x, FILTERS[which].init(LIKE))
    if not np.isfinite(bad):
        assert not np.isfinite(found["a/w"]).all()
    _, residual = step(which, gradient(1), residual)
    for rest in waiting(residual, LIKE).values():
        assert np.isfinite(np.asarray(rest)).all()


def test_arrays_that_a_code_would_not_make_smaller_are_sent_unchanged() -> None:
    for which, code in enumerate(FILTERS):
        x = gradient(3)
        found, _ = step(which, x, code.init(LIKE))
        np.testing.assert_array_equal(found["steps"], x["steps"])
        sizes, _ = coded_types(code, LIKE)
        exact_bytes = sum(v.nbytes for v in LIKE.values())
        assert sum(a.size * a.dtype.itemsize for a in sizes) <= exact_bytes
    found, _ = step(3, gradient(3), filter_of(compression.int8(64)).init(LIKE))
    np.testing.assert_array_equal(found["number"], gradient(3)["number"])


@pytest.mark.parametrize(
    ("code", "nbytes"),
    [
        (filter_of("f32"), 4096),
        (filter_of("f16"), 2048),
        (filter_of("int8"), 1024 + 4 * 4),
        (filter_of("one_bit"), 128 + 4 * 8),
        (top_k(0.01), 11 * (4 + 2)),
        (top_k(0.01, values=compression.int8(16)), 11 * 2 + 16 + 4),
        (significance(0.1, 0.25), 4 * (64 * 4 + 2)),
    ],
    ids=lambda x: getattr(x, "name", ""),
)
def test_a_filter_sends_the_expected_bytes(code: Filter, nbytes: int) -> None:
    sizes, _ = coded_types(code, {"w": np.zeros((4, 256), np.float32)})
    assert sum(a.size * a.dtype.itemsize for a in sizes) == nbytes


def test_top_k_sends_the_largest_entries() -> None:
    code = top_k(0.25)
    x = {"w": np.array([1, -8, 3, 0, 2, 0, 7, 1] * 2, np.float32)}
    sent, residual = code.encode(x, code.init(x))
    found = code.decode(sent, x)["w"].tolist()
    assert found == [0, -8, 0, 0, 0, 0, 7, 0] * 2
    assert residual["w"].tolist() == [1, 0, 3, 0, 2, 0, 0, 1] * 2


def test_blocks_accumulate_until_they_are_significant() -> None:
    code = significance(1.0, 0.5, block_size=2)
    x = {"w": np.array([0.4, 0, 0, -3, 0, 0.1, 0, 0], np.float32)}
    residual = code.init(x)
    found = []
    for _ in range(3):
        sent, residual = code.encode(x, residual)
        found.append(code.decode(sent, x)["w"])
    np.testing.assert_allclose(found[0], [0, 0, 0, -3, 0, 0, 0, 0])
    np.testing.assert_allclose(found[2], [1.2, 0, 0, -3, 0, 0, 0, 0], rtol=1e-6)
    np.testing.assert_allclose(residual["w"][5], 0.3, rtol=1e-6)


def test_by_group_selects_filters_by_name() -> None:
    code = by_group(
        {"*/b": "f32", lambda name: name.startswith("e"): top_k(0.1)}, "bf16"
    )
    rng = np.random.default_rng(0)
    shapes = {"0/b": (8,), "0/w": (8, 8), "e": (20, 4)}
    x = {n: rng.normal(size=s).astype(np.float32) for n, s in shapes.items()}
    sent, _ = code.encode(x, code.init(x))
    found = fxflow.device_get(code.decode(sent, x))
    np.testing.assert_array_equal(found["0/b"], x["0/b"])
    assert 0 < np.abs(found["0/w"] - x["0/w"]).max() < 0.02
    assert np.count_nonzero(found["e"]) == 8


def test_an_error_names_an_empty_group() -> None:
    inner = by_group({"0/*": "int8"})
    by_group({"*/b": "f32", "*": inner}).check(["0/b", "0/w"])
    with pytest.raises(
        ArgumentError, match=r"'\*/c' matches no.*parameters: '0/b', '0/w'"
    ):
        by_group({"*/c": "f32"}).check(["0/b", "0/w"])
    with pytest.raises(ArgumentError, match=r"'0/\*' matches no.*parameters: '1/w'"):
        by_group({"0/*": "f32"}, inner).check(["1/w", "0/w"][:1])
    with pytest.raises(ArgumentError, match=r"'0/\*' matches no"):
        by_group({"0/w": "f32", "*": inner}).check(["0/w", "1/w"])


def test_pieces_belong_to_the_group_of_their_tensor() -> None:
    tensor = np.ones((2**20, 2), np.float32)
    names = Cutter(place(tensors_of({"table": tensor}), 2)).names
    assert all("[" in name for (name,) in names)
    code = by_group({"table": "bf16"})
    for (name,) in names:
        x = {name: np.full(8, 1.001, np.float32)}
        sent, _ = code.encode(x, code.init(x))
        assert code.decode(sent, x)[name].tolist() == [1.0] * 8


def test_filters_have_distinct_names() -> None:
    assert filter_of("f32").name == "f32"
    assert filter_of(filter_of("f32")).name == "f32"
    assert filter_of("int8").name == filter_of(compression.int8()).name
    assert filter_of("f16").name == pull_filter_of("f16").name == "f16()"
    assert len(set(IDS)) == len(IDS)
    assert by_group({str.isupper: "int8"}).name == (
        "by_group({str.isupper: int8(256)}, f32)"
    )
    assert IDS[8].startswith("significance(2, 1, relative=True, block_size=64, values=")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: top_k(0),
            "top_k: share must be a number above 0 and at most 1, got 0",
        ),
        (lambda: top_k("1"), "share must be"),
        (lambda: top_k(0.1, values="f8"), "values must be 'f32'.*got 'f8'"),
        (lambda: top_k(0.1, values=compression.int8(rounding="stochastic")), "key"),
        (lambda: filter_of(compression.bf16("stochastic")), "key"),
        (lambda: significance(-1), "threshold must be a number, 0 or more, got -1"),
        (lambda: significance(1, 2), "significance: share must be"),
        (lambda: significance(1, block_size=0), "block_size must be at least 1"),
        (lambda: by_group({3: "f32"}), "pattern or a predicate.*got 3"),
        (
            lambda: by_group({"w": "f8"}),
            "by_group: 'w' must be 'f32'.*Filter, got 'f8'",
        ),
        (lambda: by_group({}, "f8"), "'default' must be 'f32'"),
        (lambda: filter_of("f8"), "exchange must be 'f32'.*got 'f8'"),
        (lambda: pull_filter_of("int8"), "pull must be 'f32', 'bf16' or 'f16'"),
    ],
)
def test_invalid_arguments_are_rejected(make: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()


def test_bytes_by_filter_counts_nested_groups() -> None:
    like = {n: np.zeros(256, np.float32) for n in ("a/b", "a/w", "c/b", "t")}
    inner = by_group({"a/*": "int8"}, "bf16")
    code = by_group({"t": "f32", "*": inner})
    assert bytes_by_filter(code, like) == {
        "int8(256)": 2 * 260,
        "bf16()": 512,
        "f32": 1024,
    }
