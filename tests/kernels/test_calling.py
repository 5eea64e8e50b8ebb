"""`kernels.call`: results, blocks, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels
from fxflow.errors import (
    ArgumentError,
    DtypeError,
    KernelError,
    ShapeError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
)
from fxflow.kernels import BlockSpec


def copy(x: Any, o: Any) -> None:
    o[...] = x[...]


X = np.arange(12.0, dtype=np.float32).reshape(4, 3)
ROWS = BlockSpec((2, 3), lambda i: (i, 0))


def test_results_have_the_structure_of_out() -> None:
    def body(x: Any, a: Any, b: Any) -> None:
        a[...], b[...] = x[...], x[...].sum()

    one = kernels.like(X)
    total = kernels.like(X, shape=())
    assert isinstance(kernels.call(body, (one, total))(X), tuple)
    found = kernels.call(body, [one, total])(X)
    assert isinstance(found, list)
    assert float(found[1]) == X.sum()
    assert kernels.call(copy, one)(X).shape == (4, 3)


def test_squeezed_axes_are_not_seen() -> None:
    def body(x: Any, o: Any) -> None:
        assert (x.shape, o.shape) == ((3,), (3,))
        o[...] = x[...]

    spec = BlockSpec((None, 3), lambda i: (i, 0))
    f = kernels.call(body, X, grid=4, in_specs=[spec], out_specs=spec)
    np.testing.assert_array_equal(f(X), X)


def test_an_index_map_may_compute() -> None:
    reverse = BlockSpec((2, 3), lambda i: (1 - i, 0))
    f = kernels.call(copy, X, grid=2, in_specs=[reverse], out_specs=ROWS)
    np.testing.assert_array_equal(f(X), np.concatenate([X[2:], X[:2]]))


def test_an_axis_without_blocks_of_its_own_is_in_order() -> None:
    def body(x: Any, o: Any) -> None:
        @kernels.when(kernels.program_id(0) == 0)
        def _() -> None:
            o[...] = fnp.zeros(3)

        o[...] = o[...] * 2 + x[...].sum(0)

    f = kernels.call(body, kernels.like(X, shape=(3,)), grid=2, in_specs=[ROWS])
    np.testing.assert_array_equal(f(X), X[:2].sum(0) * 2 + X[2:].sum(0))
    slope = fxflow.grad(lambda x: f(x).sum())(fnp.asarray(X))
    np.testing.assert_array_equal(slope[:, 0], [2, 2, 1, 1])


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "complex64", "float16"])
def test_all_dtypes(dtype: str) -> None:
    x = fnp.asarray(X > 4 if dtype == "bool" else X).astype(dtype)
    f = kernels.call(copy, x, grid=2, in_specs=[ROWS], out_specs=ROWS)
    np.testing.assert_array_equal(f(x), x)


@pytest.mark.parametrize("grid", [0, (0, 3), ()])
def test_empty_and_single_grids(grid: Any) -> None:
    f = kernels.call(copy, X, grid=grid, kinds=["arbitrary"] * np.size(grid))
    np.testing.assert_array_equal(f(X), X if grid == () else np.zeros_like(X))


def test_empty_arrays() -> None:
    x = fnp.zeros((0, 3))
    f = kernels.call(copy, x, grid=0, in_specs=[ROWS], out_specs=ROWS)
    assert f(x).shape == (0, 3)


def twice(x: Any) -> Any:
    return kernels.call(copy, X, grid=2, in_specs=[ROWS], out_specs=ROWS)(x)


def returning(x: Any, o: Any) -> Any:
    return x[...]


CASES: dict[str, tuple[Any, type[Exception], str]] = {
    "grid": (lambda: kernels.call(copy, X, grid=-1), ArgumentError, "grid must be"),
    "kinds": (
        lambda: kernels.call(copy, X, grid=2, kinds=["serial"]),
        ArgumentError,
        "kinds must have one of 'parallel', 'arbitrary', 'sum' for each of the 1 axes",
    ),
    "out_specs": (
        lambda: kernels.call(copy, X, out_specs=[ROWS, ROWS]),
        ArgumentError,
        "1 results, but out_specs has 2 blocks",
    ),
    "in_specs": (
        lambda: kernels.call(copy, X, in_specs=[ROWS])(X, X),
        ArgumentError,
        "copy: 2 operands were given, but in_specs has 1 blocks",
    ),
    "not a spec": (
        lambda: kernels.call(copy, X, in_specs=[(2, 3)])(X),
        ArgumentError,
        r"a block is a BlockSpec, got \(2, 3\)",
    ),
    "rank": (
        lambda: kernels.call(copy, X, grid=2, in_specs=[BlockSpec((2,))])(X),
        ShapeError,
        r"copy: operand 0: the block \(2,\) does not fit f32\[4,3\], which has 2",
    ),
    "length": (
        lambda: kernels.call(copy, X, in_specs=[BlockSpec((2, 0))])(X),
        ShapeError,
        r"the block \(2, 0\) does not fit f32\[4,3\]",
    ),
    "ids": (
        lambda: kernels.call(copy, X, grid=(2, 2), in_specs=[ROWS])(X),
        ArgumentError,
        "must take 2 ids",
    ),
    "indices": (
        lambda: kernels.call(
            copy, X, grid=2, in_specs=[BlockSpec((2, 3), lambda i: i)]
        )(X),
        ArgumentError,
        "an index map must return 2 integers, one for each axis of the array, got 1",
    ),
    "float index": (
        lambda: kernels.call(
            copy, X, grid=2, in_specs=[BlockSpec((2, 3), lambda i: (i / 2, 0))]
        )(X),
        ArgumentError,
        "must return integers, got f32",
    ),
    "race": (
        lambda: kernels.call(copy, X, grid=2, kinds=["parallel"])(X),
        ArgumentError,
        "the 2 programs along axis 0 of the grid are parallel, but all write to one "
        "block of result 0",
    ),
    "returns": (
        lambda: kernels.call(returning, X)(X),
        ArgumentError,
        "returning: the body of a kernel writes its results to references and returns "
        "nothing",
    ),
    "arity": (
        lambda: kernels.call(lambda x, o, n: None, X)(X),
        ArgumentError,
        r"the body takes \(x, o, n\), but is given 1 operand and 1 result: make static "
        r"arguments keyword-only, behind a \*: \(..., \*, n\)",
    ),
    "more references": (
        lambda: kernels.call(copy, X, scratch=[X, X])(X),
        ArgumentError,
        r"takes \(x, o\), but is given 1 operand, 1 result and 2 scratch: take each",
    ),
    "arity of a reference": (
        lambda: kernels.call(copy, X, reference=lambda: 0)(X),
        ArgumentError,
        r"copy: reference takes \(\), but is given 1 operand",
    ),
    "block of an axis": (
        lambda: kernels.call(copy, X, in_specs=[None])(X),
        ArgumentError,
        r"copy: operand 0: a block is a BlockSpec, got None; BlockSpec\(\) is the w",
    ),
    "no index": (
        lambda: kernels.call(
            copy, X, grid=2, in_specs=[BlockSpec((2, 3), lambda i: (i, None))]
        )(X),
        ArgumentError,
        "an index map must return integers, got None",
    ),
    "no type": (
        lambda: kernels.call(copy, None),
        ArgumentError,
        "out needs a type, something with a shape and a dtype .*, got None",
    ),
    "unwritten": (
        lambda: kernels.call(renaming, X)(X),
        ArgumentError,
        r"renaming: the body never writes to o \(result 0\), Ref\{f32\[4,3\]\}: "
        r"renaming at .*test_calling.py:\d+ must write it with ref\[...\] = value",
    ),
    "operand written": (
        lambda: kernels.call(in_place, X)(X),
        ArgumentError,
        r"in_place: the body writes to x \(operand 0\), Ref\{f32\[4,3\]\}, at "
        r".*test_calling.py:\d+ \(add\), but operands are read-only",
    ),
    "branch": (
        lambda: kernels.call(branching, X, grid=2, in_specs=[ROWS], out_specs=ROWS)(X),
        TracerBoolConversionError,
        r"argument program_id\(0\) of branching.*@kernels.when\(condition\)",
    ),
    "range": (
        lambda: kernels.call(counting, X, grid=2, in_specs=[ROWS], out_specs=ROWS)(X),
        TracerIntegerConversionError,
        r"argument program_id\(0\) of counting.*@kernels.loop\(start, stop\)",
    ),
    "alias": (
        lambda: kernels.call(copy, X, aliases={1: 0})(X),
        ArgumentError,
        "aliases has 1: 0, but the kernel has 1 operands and 1 results",
    ),
    "alias type": (
        lambda: kernels.call(copy, X, aliases={0: 0})(X[:2]),
        ArgumentError,
        r"operand 0, f32\[2,3\], and result 0, f32\[4,3\], have different types",
    ),
    "reference": (
        lambda: kernels.call(copy, X)(fxflow.new_ref(X)),
        ArgumentError,
        r"operand 0 is a reference Ref\{f32\[4,3\]\}: pass its contents",
    ),
    "no array": (
        lambda: kernels.call(copy, X)("x"),
        ArgumentError,
        "operand 0 is",
    ),
    "key": (
        lambda: kernels.call(copy, X)(fxflow.random.key(0)),
        DtypeError,
        "pass random.key_data",
    ),
    "captured reference": (
        lambda: capturing(fxflow.new_ref(X)),
        ArgumentError,
        "captures a reference",
    ),
    "captured in a map": (
        lambda: mapping(fnp.arange(4)),
        ArgumentError,
        r"an index map must not capture arrays, got i32\[4\]",
    ),
}


def renaming(x: Any, o: Any) -> None:
    o = x[...]  # noqa: F841


def in_place(x: Any, o: Any) -> None:
    @kernels.loop(0, 2)
    def add(i: Any) -> None:
        x[i] += 1

    o[...] = x[...]


def branching(x: Any, o: Any) -> None:
    if kernels.program_id(0) == 0:
        o[...] = x[...]


def counting(x: Any, o: Any) -> None:
    for i in range(kernels.program_id(0)):
        o[i] = x[i]


def capturing(ref: Any) -> Any:
    def body(x: Any, o: Any) -> None:
        o[...] = ref[...]

    return kernels.call(body, X)(X)


def mapping(table: Any) -> Any:
    spec = BlockSpec((2, 3), lambda i: (table[i], 0))
    return kernels.call(copy, X, grid=2, in_specs=[spec], out_specs=ROWS)(X)


@pytest.mark.parametrize("name", CASES)
def test_bad_arguments(name: str) -> None:
    run, kind, match = CASES[name]
    with pytest.raises(kind, match=match):
        run()
    np.testing.assert_array_equal(twice(X), X)


# -- references ------------------------------------------------------------------------


def running(x, o):
    """Sums up the rows before each row, in order."""

    @kernels.when(kernels.program_id(0) == 0)
    def _():
        o[...] = fnp.zeros(o.shape)

    o[...] += x[...]


def total(f=lambda x: fnp.sum(x, 0), factor=1.0, **kwargs):
    """Returns a kernel that sums rows in order, with a reference."""
    scale = fnp.float32(factor)
    return kernels.call(
        running,
        fxflow.ShapeDtypeStruct((3,), "float32"),
        grid=4,
        in_specs=[kernels.BlockSpec((None, 3), lambda i: (i, 0))],
        reference=lambda x: f(x) * scale,
        **kwargs,
    )


TALL = np.arange(12, dtype=np.float32).reshape(4, 3)


def test_the_reference_is_differentiated_where_programs_run_in_order():
    # The wrong factor shows whose derivative it is.
    f = total(factor=3.0)
    np.testing.assert_array_equal(fxflow.grad(lambda x: fnp.sum(f(x)))(TALL), 3.0)
    np.testing.assert_array_equal(f(TALL), TALL.sum(0))


def test_the_reference_runs_where_nothing_is_compiled():
    f = total(factor=3.0)
    with fxflow.config.override(passes="none"):
        np.testing.assert_array_equal(fxflow.jit(f)(TALL), 3 * TALL.sum(0))
        np.testing.assert_array_equal(
            fxflow.jit(fxflow.vmap(f, in_axes=2, out_axes=1))(
                np.stack([TALL, 2 * TALL], 2)
            ),
            np.stack([3 * TALL.sum(0), 6 * TALL.sum(0)], 1),
        )


def test_check_compares_with_the_reference():
    kernels.check(total(), TALL)
    with pytest.raises(KernelError, match=r"running: element .* of the reference"):
        kernels.check(total(factor=2.0), TALL)


def test_a_reference_of_other_types_is_an_error():
    f = total(lambda x: x)
    with pytest.raises(ArgumentError, match=r"returns f32\[4,3\], but the kernel"):
        f(TALL)


def test_derivatives_of_a_parallel_kernel_are_compared_with_those_of_the_reference():
    def made(reference):
        return kernels.kernel("i:2 d -> i:2 d", out=lambda x: x, reference=reference)(
            lambda x, o: o.set(fnp.sin(x[...]))
        )

    right, wrong = made(fnp.sin), made(lambda x: fnp.sin(x) + 1e-6 * x**4)
    grad = lambda f: fxflow.grad(lambda x: fnp.sum(f(x) ** 2))
    kernels.check(grad(right), TALL)
    kernels.check(fxflow.grad(lambda x: fnp.sum(grad(right)(x))), TALL)
    with pytest.raises(KernelError, match="reference"):
        kernels.check(grad(wrong), TALL)
    with fxflow.config.override(passes="none"):
        np.testing.assert_allclose(
            fxflow.jit(grad(right))(TALL), np.sin(2 * TALL), rtol=1e-3, atol=1e-5
        )


def test_a_custom_derivative_comes_before_the_reference():
    f = total(factor=3.0)
    g = fxflow.custom_vjp(f)
    g.defvjp(lambda x: (f(x), x), lambda x, ct: (7.0 * x,))
    np.testing.assert_array_equal(
        fxflow.grad(lambda x: fnp.sum(g(x)))(TALL), 7.0 * TALL
    )


def test_explain_says_what_is_differentiated():
    text = kernels.explain(total(), TALL)
    assert "derivatives: those of the reference (a program may see what" in text


@pytest.mark.parametrize("platform", ["cpu", "gpu"])
def test_kernels_for_one_platform(platform):
    def body(x, o):
        o[...] = x[...] + 1

    x = fnp.ones(3)
    made = [
        kernels.call(body, x, platforms=[platform]),
        kernels.kernel("n -> n", out=lambda x: x, platforms=[platform])(body),
    ]
    for f in made:
        text = kernels.explain(f, x)
        for other, name in (("cpu", "a CPU"), ("gpu", "an NVIDIA GPU")):
            said = f"on {name}: operations on arrays (it is not for {other.upper()}s)"
            assert (said in text) == (other != platform)
        assert kernels.explain(fxflow.vmap(f), x[None]).count("(it is not for") == 1
        np.testing.assert_array_equal(fxflow.jit(f)(x), x + 1)


@pytest.mark.parametrize("platforms", ["cpu", ["cuda"], ["gpu", "tpu"]])
def test_unknown_platforms_of_a_kernel(platforms):
    wanted = r"platforms is a sequence of cpu and gpu, got"
    with pytest.raises(ArgumentError, match=wanted):
        kernels.call(lambda x, o: None, fnp.ones(3), platforms=platforms)
    with pytest.raises(ArgumentError, match=wanted):
        kernels.kernel("n -> n", out=lambda x: x, platforms=platforms)


def test_numbers_of_index_maps_are_constants_whatever_the_bits() -> None:
    """A map that computes is not compiled for blocks of results."""
    for x64 in (False, True):
        with fxflow.config.override(x64=x64):
            found = kernels.explain(
                kernels.call(copy, X, grid=2, in_specs=[ROWS], out_specs=ROWS), X
            )
            assert "index map" not in found
