"""`kernels.check` finds planted mistakes, and nothing in kernels that are right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels, lax
from fxflow.errors import KernelError
from fxflow.kernels import BlockSpec
from tests.lax.kernels.samples import arrays, attention, flash, segment_sum

X = np.arange(1.0, 13.0, dtype=np.float32).reshape(4, 3)
IDS = np.int32([0, 2, 1, 3])
ROWS = BlockSpec((1, 3), lambda i: (i, 0))
PAIRS = BlockSpec((2, 3), lambda i: (i, 0))
Body = Callable[..., None]
PLANTED: dict[str, tuple[Any, str]] = {}


def planted(
    message: str, *args: Any, reference: Any = None, **options: Any
) -> Callable[[Body], Body]:
    """Notes a body with a mistake; the kernel has rows of `X` as blocks by default."""
    given = args or (X,)
    options = {
        "out": kernels.like(X),
        "grid": 4,
        "in_specs": [ROWS] * len(given),
        "out_specs": ROWS,
        **options,
    }

    def note(body: Body) -> Body:
        def run() -> Any:
            rest = {key: value for key, value in options.items() if key != "out"}
            f = kernels.call(body, options["out"], **rest)
            return kernels.check(f, *given, reference=reference)

        PLANTED[body.__name__] = run, message
        return body

    return note


# -- races -----------------------------------------------------------------------------


@planted(
    r"programs \(0,\) and \(1,\), which are parallel, write element \(0, 0\)",
    kinds=["parallel"],
    out_specs=BlockSpec((1, 3), lambda i: (i // 2, 0)),
)
def two_programs_write_one_row(x: Any, o: Any) -> None:
    o[...] = x[...]


@planted(
    r"programs \(0,\) and \(1,\), which are parallel, write element \(1, 0\)",
    kinds=["parallel"],
    in_specs=[BlockSpec()],
    out_specs=BlockSpec((4, 3), lambda i: (i - i, 0)),
)
def neighbours_overlap(x: Any, o: Any) -> None:
    i = kernels.program_id(0)
    at = kernels.ds(i, 2)
    o[at] = x[at]


@planted(
    r"programs \(0,\) and \(3,\), which are parallel, write element \(0, 0\)",
    X,
    IDS,
    kinds=["parallel"],
    in_specs=[ROWS, BlockSpec()],
    out_specs=BlockSpec((4, 3), lambda i: (i - i, 0)),
)
def rows_by_ids_that_repeat(x: Any, ids: Any, o: Any) -> None:
    o[ids[kernels.program_id(0)] % 3] = x[0]


@planted(
    "which are parallel, write element",
    kinds=["parallel"],
    out_specs=BlockSpec((4, 3), lambda i: (i - i, 0)),
)
def all_write_the_same_value(x: Any, o: Any) -> None:
    o[...] = fnp.zeros((4, 3))


# -- elements that no program writes ---------------------------------------------------


@planted(r"no program writes 4 of 12 elements of result 0, such as \(0, 2\)")
def the_last_column_is_left_out(x: Any, o: Any) -> None:
    o[0, :2] = x[0, :2]


@planted(r"no program writes 3 of 12 elements of result 0, such as \(3, 0\)", grid=3)
def the_grid_is_too_small(x: Any, o: Any) -> None:
    o[...] = x[...]


@planted(r"no program writes 6 of 12 elements of result 0, such as \(1, 0\)")
def only_even_programs_write(x: Any, o: Any) -> None:
    @kernels.when(kernels.program_id(0) % 2 == 0)
    def _() -> None:
        o[...] = x[...]


@planted(r"no program writes 12 of 12 elements of result 0, such as \(0, 0\)")
def no_program_comes_to_the_write(x: Any, o: Any) -> None:
    @kernels.when(kernels.program_id(0) > 4)
    def _() -> None:
        o[...] = x[...]


@planted(r"no program writes 4 of 12 elements of result 0, such as \(0, 0\)")
def a_loop_starts_at_one(x: Any, o: Any) -> None:
    @kernels.loop(1, 3)
    def _(i: Any) -> None:
        o[0, i] = x[0, i]


@planted("no program writes")
def a_mask_lets_the_result_be(x: Any, o: Any) -> None:
    kernels.store(o, ..., x[...], mask=x[...] > 4)


@planted("no program writes 4 of 12", out=kernels.like(X, "int32"))
def integers_are_left_out(x: Any, o: Any) -> None:
    o[0, 1:] = x[0, 1:].astype("int32")


@planted("no program writes", out=kernels.like(X, bool))
def booleans_are_left_out(x: Any, o: Any) -> None:
    o[0, 0] = x[0, 0] > 0


# -- memory that no program has written ------------------------------------------------


@planted(r"depends on a result or scratch that no program had written")
def a_result_is_added_to(x: Any, o: Any) -> None:
    o[...] += x[...]


@planted("depends on a result or scratch", scratch=[kernels.like(X, shape=(1, 3))])
def scratch_is_not_cleared(x: Any, o: Any, s: Any) -> None:
    s[...] += x[...]
    o[...] = s[...]


@planted(
    "depends on a result or scratch",
    kinds=["arbitrary"],
    out=kernels.like(X, shape=(1, 3)),
    out_specs=BlockSpec(),
)
def a_sum_in_order_is_not_cleared(x: Any, o: Any) -> None:
    o[...] += x[...]


@planted(
    "depends on a result or scratch",
    kinds=["arbitrary"],
    out=kernels.like(X, shape=(1, 3)),
    out_specs=BlockSpec(),
)
def a_sum_is_cleared_too_late(x: Any, o: Any) -> None:
    @kernels.when(kernels.program_id(0) == 1)
    def _() -> None:
        s = fnp.zeros((1, 3))
        o[...] = s + o[...] * 0

    o[...] += x[...]


@planted("depends on a result or scratch", scratch=[kernels.like(X, "int32", shape=())])
def a_counter_is_not_cleared(x: Any, o: Any, count: Any) -> None:
    count[...] += 1
    o[...] = x[...] * count[...]


# -- outside ---------------------------------------------------------------------------


@planted(
    r"program \(0,\) uses the index 3 on axis 0, which has the length 3, of f32\[3\]"
)
def an_index_is_behind_the_end(x: Any, o: Any) -> None:
    o[...] = x[...]

    @kernels.loop(0, 4)
    def _(i: Any) -> None:
        o[0, 0] = x[0][i]


@planted(r"uses the index 4 on axis 1, which has the length 3, of f32\[1,3\]")
def an_array_of_indices_is_outside(x: Any, o: Any) -> None:
    o[...] = x[:, fnp.array([0, 1, 4])]


@planted(r"uses the index 3 on axis 1, which has the length 3")
def a_write_is_outside(x: Any, o: Any) -> None:
    o[...] = x[...]
    o[0, 3 + 0 * kernels.program_id(0)] = 0.0


@planted(r"uses the index -1 on axis 0, which has the length 3")
def an_index_is_below_zero_after_counting_back(x: Any, o: Any) -> None:
    o[...] = x[...] + x[0][kernels.program_id(0) - 4 - fnp.int32(0)]


@planted(
    r"the block of program \(3,\) starts at \(4, 0\) of operand 0",
    in_specs=[BlockSpec((1, 3), lambda i: (i + 1, 0))],
)
def a_block_is_behind_the_end(x: Any, o: Any) -> None:
    o[...] = x[...]


@planted(r"the block of program \(4,\) starts at \(4, 0\) of result 0", grid=5)
def the_grid_is_too_large(x: Any, o: Any) -> None:
    o[...] = x[...]


@planted(
    r"the block of program \(0,\) starts at \(-1, 0\) of operand 0",
    in_specs=[BlockSpec((1, 3), lambda i: (i - 1, 0))],
)
def a_block_is_before_the_start(x: Any, o: Any) -> None:
    o[...] = x[...]


@planted(
    r"uses the index 9 on axis 0, which has the length 4",
    X,
    np.int32([0, 1, 2, 9]),
    in_specs=[BlockSpec(), BlockSpec()],
)
def an_operand_holds_an_index_outside(x: Any, ids: Any, o: Any) -> None:
    o[0] = x[ids[kernels.program_id(0)]]


# -- wrong results ---------------------------------------------------------------------


@planted(r"element \(0, 0\) of result 0 is 1.0, but that of the reference is 2.0",
         reference=lambda x: 2 * x)  # fmt: skip
def the_factor_is_missing(x: Any, o: Any) -> None:
    o[...] = x[...]


@planted(
    "but that of the reference is",
    grid=2,
    in_specs=[BlockSpec((3, 3), lambda i: (i, 0))],
    out=kernels.like(X, shape=(2,)),
    out_specs=BlockSpec((1,), lambda i: (i,)),
    reference=lambda x: fnp.stack([fnp.min(x[:3]), fnp.min(x[3:])]),
)
def the_least_of_a_block_over_the_end(x: Any, o: Any) -> None:
    o[0] = fnp.min(x[...])


@planted(
    "but that of the reference is",
    reference=lambda x: fnp.cumsum(x, 0),
    scratch=[kernels.like(X, shape=(1, 3))],
)
def programs_are_thought_to_run_in_order(x: Any, o: Any, s: Any) -> None:
    s[...] = fnp.where(kernels.program_id(0) >= 0, x[...], 0)
    o[...] = s[...]


@planted(
    "but that of the reference is", reference=lambda x: x.astype("bfloat16") * 1.001
)
def the_precision_is_too_low(x: Any, o: Any) -> None:
    o[...] = (x[...].astype("bfloat16") * fnp.bfloat16(1.01)).astype("float32")


@planted("the reference gives 2 results, the kernel 1", reference=lambda x: (x, x))
def a_result_is_missing(x: Any, o: Any) -> None:
    o[...] = x[...]


@planted(
    r"result 0 has the shape \(4, 3\), but that of the reference \(3, 4\)",
    reference=lambda x: x.T,
)
def the_result_is_transposed(x: Any, o: Any) -> None:
    o[...] = x[...]


def test_there_are_thirty() -> None:
    assert len(PLANTED) >= 30


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_mistake_is_found(name: str) -> None:
    run, message = PLANTED[name]
    with pytest.raises(KernelError, match=message) as caught:
        run()
    assert name in str(caught.value) or "reference" in message


def test_findings_name_the_line() -> None:
    run, _ = PLANTED["an_array_of_indices_is_outside"]
    with pytest.raises(KernelError, match=r"test_checking\.py:\d+ \(an_array_of"):
        run()


# -- nothing to find -------------------------------------------------------------------


def test_right_kernels_pass() -> None:
    found = kernels.check(flash, *arrays(), reference=attention, rtol=1e-3)
    np.testing.assert_allclose(found, attention(*arrays()), rtol=1e-3, atol=1e-4)
    x = np.random.default_rng(0).normal(size=(20, 5)).astype(np.float32)
    kernels.check(lambda x: segment_sum(x, np.arange(20) % 3, segments=3), x)


def test_derived_kernels_pass() -> None:
    def slopes(*args: Any) -> Any:
        return fxflow.grad(lambda *a: fnp.sum(flash(*a) ** 2), argnums=(0, 1))(*args)

    kernels.check(slopes, *arrays())
    kernels.check(fxflow.vmap(flash), *arrays(2))


def test_kernels_inside_of_loops_are_checked() -> None:
    def half(x: Any, o: Any) -> None:
        o[0] = x[0]

    f = kernels.call(half, kernels.like(X[0]))

    def rows(x: Any) -> Any:
        return lax.map(f, x)

    with pytest.raises(KernelError, match="no program writes 2 of 3"):
        kernels.check(rows, X)


def test_a_kernel_s_own_reference_is_used() -> None:
    @kernels.kernel("i:1 v -> i:1 v", out=lambda x: x, reference=lambda x: x + 1)
    def same(x: Any, o: Any) -> None:
        o[...] = x[...]

    with pytest.raises(KernelError, match=r"that of the reference is 2\.0"):
        kernels.check(same, X)
    kernels.check(same, X, reference=lambda x: x)
