"""`kernels.kernel`: grid, blocks and sums from one line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels
from fxflow.errors import ArgumentError, ShapeError
from fxflow.kernels.notation import Axis, Notation
from tests.lax.kernels.samples import segment_sum


def test_a_line_is_read() -> None:
    read = Notation.parse("i:8 v, n:block i:8 -> i:8, ")
    assert read.inputs == (
        (Axis("i", 8), Axis("v", None)),
        (Axis("n", "block"), Axis("i", 8)),
    )
    assert read.outputs == ((Axis("i", 8),), ())
    assert [a.name for a in read.axes()] == ["i", "n"]


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ("i:8", "the notation is like"),
        ("a -> b -> c", "the notation is like"),
        ("i:0 -> i:0", "'i:0' in 'i:0 -> i:0' is not an axis"),
        ("i+j -> i", "'i\\+j' in .* is not an axis"),
        ("i:8 -> i:4", "gives the axis i blocks of 8 and of 4"),
        ("i i -> i", "'i i' names an axis twice"),
        ("i:2 -> ", "a result lacks the axis i"),
    ],
)
def test_malformed_lines(line: str, match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        kernels.kernel(line, out=lambda x: x)


def test_axes_that_are_summed_or_in_order() -> None:
    with pytest.raises(ArgumentError, match="'j' is not an axis in blocks"):
        kernels.kernel("i:2 -> ", out=lambda x: x, sums="j")
    with pytest.raises(ArgumentError, match="the axis i cannot be summed and in order"):
        kernels.kernel("i:2 -> ", out=lambda x: x, sums="i", in_order="i")


@pytest.mark.parametrize("rows", [1, 7, 16, 100])
def test_sums_and_static_arguments(rows: int) -> None:
    rng = np.random.default_rng(rows)
    x = rng.normal(size=(50, 6)).astype(np.float32)
    ids = rng.integers(0, 7, 50).astype(np.int32)
    expected = np.zeros((7, 6), np.float32)
    np.add.at(expected, ids, x)
    found = segment_sum(x, ids, segments=7, rows=rows)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    slope = fxflow.grad(lambda x: fnp.sum(segment_sum(x, ids, segments=7) ** 2))(
        fnp.asarray(x)
    )
    np.testing.assert_allclose(slope, 2 * expected[ids], rtol=1e-5, atol=1e-5)


def test_in_order_with_scratch() -> None:
    @kernels.kernel(
        "i:2 v -> i:2 v",
        out=lambda x: x,
        in_order="i",
        scratch=lambda x: kernels.like(x, shape=x.shape[1:]),
    )
    def running(x: Any, o: Any, total: Any) -> None:
        @kernels.loop(0, x.shape[0])
        def _(i: Any) -> None:
            total[...] += x[i]
            o[i] = total[...]

    x = np.arange(15.0, dtype=np.float32).reshape(5, 3)
    np.testing.assert_array_equal(running(x), np.cumsum(x, 0))
    slope = fxflow.grad(lambda x: fnp.sum(running(x)))(fnp.asarray(x))
    np.testing.assert_array_equal(slope[:, 0], [5, 4, 3, 2, 1])


def test_it_is_a_function_with_the_body_s_name_and_words() -> None:
    assert segment_sum.__name__ == "segment_sum"
    assert segment_sum.__doc__ == "Adds rows by their ids."


def test_a_short_axis_is_one_block() -> None:
    @kernels.kernel("i:64 -> i:64", out=lambda x: x)
    def copy(x: Any, o: Any) -> None:
        assert x.shape == (3,)
        o[...] = x[...]

    np.testing.assert_array_equal(copy(fnp.arange(3.0)), [0, 1, 2])
    assert copy(fnp.zeros(3)).shape == (3,)


def lengths(x: Any, y: Any) -> Any:
    @kernels.kernel(
        "i:2 v, v -> i:2", out=lambda x, y: kernels.like(x, shape=x.shape[:1])
    )
    def weighted(x: Any, y: Any, o: Any) -> None:
        o[...] = fnp.sum(x[...] * y[...], 1)

    return weighted(x, y)


def test_operands_that_do_not_fit() -> None:
    x = fnp.ones((4, 3))
    np.testing.assert_array_equal(lengths(x, fnp.ones(3)), [3] * 4)
    with pytest.raises(
        ShapeError,
        match=r"weighted: the axis v of 'i:2 v, v -> i:2' has the length 3 in "
        r"f32\[4,3\], but 5 in f32\[5\]",
    ):
        lengths(x, fnp.ones(5))
    with pytest.raises(ShapeError, match=r"f32\[1,3\] has 2 axes, but .* 1 \(v\)"):
        lengths(x, fnp.ones((1, 3)))


def test_static_arguments_are_keyword_only() -> None:
    def made(out: Any = lambda x: x, reference: Any = None, scratch: Any = None) -> Any:
        @kernels.kernel(
            "i:rows -> i:rows", out=out, reference=reference, scratch=scratch
        )
        def copy(x: Any, o: Any, *, rows: int = 2) -> None:
            o[...] = x[...]

        return copy

    for what in ("out", "reference", "scratch"):
        with pytest.raises(
            ArgumentError,
            match=rf"copy: {what} takes \(x, rows\), but is given 1 operand of 'i:rows "
            r"-> i:rows': make static arguments keyword-only, behind a \*: "
            r"\(..., \*, rows\)",
        ):
            made(**{what: lambda x, rows: x})
    with pytest.raises(ArgumentError, match=r"keyword argument n, .* kernel's: rows"):
        made(reference=lambda x, *, n: x)
    f = made(lambda x, *, rows: x, lambda x, *, rows, n=1: x)
    x = fnp.arange(4.0)
    np.testing.assert_array_equal(kernels.check(lambda x: f(x, rows=3), x), x)
    with pytest.raises(ArgumentError, match=r"copy: out needs a type, .* got None"):
        made(lambda x: None)(x)
    with pytest.raises(ArgumentError, match=r"copy: scratch needs a type, .* got '3'"):
        made(scratch=lambda x: "3")(x)


def test_arguments_that_do_not_fit() -> None:
    x, ids = fnp.ones((4, 2)), fnp.zeros(4, "int32")
    with pytest.raises(ArgumentError, match="the argument segments has no default"):
        segment_sum(x, ids)
    with pytest.raises(ArgumentError, match=r"arguments colums; .*segments, rows"):
        segment_sum(x, ids, segments=2, colums=3)
    with pytest.raises(
        ArgumentError,
        match="rows, the length of the blocks of the axis n, must be a pos",
    ):
        segment_sum(x, ids, segments=2, rows=0)
    with pytest.raises(ArgumentError, match=r"1 operands were given, but .* has 2"):
        segment_sum(x, segments=2)

    @kernels.kernel("i -> i, i", out=lambda x: x)
    def one(x: Any, a: Any, b: Any) -> None: ...

    with pytest.raises(ArgumentError, match=r"out returned 1 types, but .* 2 results"):
        one(x[0])

    @kernels.kernel("i:size -> i:size", out=lambda x: x)
    def unknown(x: Any, o: Any) -> None: ...

    with pytest.raises(ArgumentError, match="the length size, which is not a keyword"):
        unknown(x[0])
