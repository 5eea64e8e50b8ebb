"""Programs after reports of JAX's users: loops, branches, scans."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax

MODES = pytest.mark.parametrize(
    "mode", [lambda f: f, fxflow.jit], ids=["eager", "compiled"]
)


@MODES
def test_gradient_of_a_bounded_while_loop_of_branches(mode: Any) -> None:
    """The gradient of x⁴ by four taken branches in a scan is 4 x³ (jax#5900)."""

    def power(x: Any) -> Any:
        def step(state: Any, _: Any) -> Any:
            value, go = state
            grown = lax.cond(go, lambda v: (v * x, True), lambda v: (v, False), value)
            return grown, None

        return lax.scan(step, (1.0, True), length=4)[0][0]

    assert mode(power)(3.0) == 81
    assert mode(fxflow.grad(power))(3.0) == 108
    np.testing.assert_array_equal(
        mode(fxflow.vmap(fxflow.grad(power)))(np.float32([1, 2])), [4, 32]
    )


@MODES
def test_jacobian_of_a_scan_by_its_sequence(mode: Any) -> None:
    """The partial sums of a sequence depend on what came before (jax#753)."""

    def sums(xs: Any) -> Any:
        return lax.scan(lambda c, x: (c + 2 * x,) * 2, 0.0, xs)[1]

    expected = 2 * np.tri(5)
    for jacobian in fxflow.jacrev, fxflow.jacfwd:
        np.testing.assert_array_equal(mode(jacobian(sums))(fnp.arange(5.0)), expected)


@MODES
def test_gradient_of_a_scan_with_a_carry_that_is_not_used(mode: Any) -> None:
    """An entry of the carry that the loss leaves out has no part in it (jax#1082)."""

    def loss(x: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            return {k: v + carry["a"] for k, v in carry.items()}, fnp.zeros(())

        last, _ = lax.scan(step, {"a": x, "b": fnp.zeros(())}, fnp.arange(2))
        return last["a"] * x

    # The carry doubles twice: the loss is 4 x².
    assert mode(fxflow.grad(loss))(fnp.float32(3)) == 24
    assert mode(fxflow.grad(fxflow.jit(loss)))(fnp.float32(3)) == 24


@MODES
def test_forward_jacobian_of_a_scan_of_gradients(mode: Any) -> None:
    """x ← −sin x, ten times, has the product of −cos as its derivative (jax#757)."""

    def loop(x: Any) -> Any:
        step = fxflow.grad(fnp.cos)
        return lax.scan(lambda c, i: (step(c), i), x, fnp.arange(10))[0]

    x, slope = 0.5, 1.0
    for _ in range(10):
        x, slope = -np.sin(x), slope * -np.cos(x)
    for transform in fxflow.jacfwd, fxflow.jacrev, fxflow.grad:
        np.testing.assert_allclose(mode(transform(loop))(0.5), slope, rtol=1e-5)


@MODES
def test_gradient_of_a_carry_that_the_loop_only_passes_on(mode: Any) -> None:
    """A carry that no step changes has the gradient 1, one that is replaced 0
    (jax#1361)."""

    def run(x: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            i, kept, old = carry
            return (i + 1, kept, old * 0 + x - 1), None

        return lax.scan(step, (0, x, fnp.zeros_like(x)), fnp.arange(3))[0]

    assert mode(fxflow.grad(lambda x: run(x)[1]))(fnp.zeros(())) == 1
    assert mode(fxflow.grad(lambda x: fxflow.jit(run)(x)[2]))(fnp.zeros(())) == 1
    assert mode(run)(fnp.zeros(()))[0] == 3


@MODES
def test_gradient_through_an_inner_optimization_without_inputs(mode: Any) -> None:
    """A scan over rows of length 0 counts them and is differentiated (jax#758)."""

    def minimize(rate: Any) -> Any:
        def step(carry: Any, row: Any) -> Any:
            i, x = carry
            return (i + 1, x - rate * fxflow.grad(lambda y: fnp.sum(y**2))(x)), row

        (steps, x), rows = lax.scan(step, (0, fnp.ones(1)), fnp.zeros((7, 0)))
        assert rows.shape == (7, 0)
        return x[0] + 0 * steps

    # x = (1 − 2 rate)⁷.
    np.testing.assert_allclose(mode(minimize)(0.1), 0.8**7, rtol=1e-5)
    slope = mode(fxflow.grad(minimize))(0.1)
    np.testing.assert_allclose(slope, -14 * 0.8**6, rtol=1e-5)


@MODES
@pytest.mark.parametrize("sizes", [(3, 5), (4, 4)])
def test_nested_vmap_of_a_loop_whose_condition_has_one_axis(
    mode: Any, sizes: tuple[int, int]
) -> None:
    """The condition belongs to the axis it came from, also where the sizes are equal
    (jax#2960)."""
    stop = np.arange(sizes[0], dtype=np.int32)
    step = np.arange(sizes[1], dtype=np.int32) + 1

    def loop(n: Any, s: Any) -> Any:
        return lax.while_loop(
            lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] + s), (0, 0)
        )[1]

    both = fxflow.vmap(fxflow.vmap(loop, (None, 0)), (0, None))
    np.testing.assert_array_equal(mode(both)(stop, step), np.outer(stop, step))
    other = fxflow.vmap(fxflow.vmap(loop, (0, None)), (None, 0))
    np.testing.assert_array_equal(mode(other)(stop, step), np.outer(step, stop))


@MODES
def test_loop_over_two_named_axes(mode: Any) -> None:
    """A loop whose carry has one named axis and whose body sums another one gives
    each element its own count (jax#7781)."""

    def f(x: Any) -> Any:
        start = x + lax.axis_index("a")
        other = x + lax.axis_index("b")

        def body(carry: Any) -> Any:
            i, value = carry
            return i + 1, value + lax.psum(other, "b")

        return lax.while_loop(lambda c: c[1] < 50, body, (0, start))

    inner = fxflow.vmap(f, axis_name="b", in_axes=0)
    outer = fxflow.vmap(inner, axis_name="a", in_axes=0)
    steps, values = mode(outer)(np.ones((2, 4), np.float32))
    # Each step adds 1 + 2 + 3 + 4 = 10 to 1 or 2.
    np.testing.assert_array_equal(values, [[51] * 4, [52] * 4])
    np.testing.assert_array_equal(steps, [[5] * 4, [5] * 4])


@MODES
def test_vmap_of_a_while_loop_stops_each_element(mode: Any) -> None:
    """Each element leaves the loop by itself (jax#441)."""
    loop = fxflow.vmap(lambda x: lax.while_loop(lambda v: v <= 0, lambda v: v + 1, x))
    got = mode(loop)(np.float32([-2.5, 0, 7]))
    np.testing.assert_array_equal(got, [0.5, 1, 7])


@MODES
def test_vmap_of_a_branch_on_random_bits_in_a_loop(mode: Any) -> None:
    """A scalar predicate for each row chooses whole rows (jax#1263)."""
    flips = np.array([[1, 1, 0, 1], [0, 0, 0, 0], [1, 0, 0, 1]], bool)

    def run(row: Any, x: Any) -> Any:
        def body(i: Any, x: Any) -> Any:
            return lax.cond(row[i], lambda v: v, lambda v: fnp.abs(v) - 1, x)

        return lax.fori_loop(0, 4, body, x)

    got = mode(fxflow.vmap(run))(flips, np.full((3, 4), 2.5, np.float32))
    expected = np.full((3, 4), 2.5)
    for row, values in zip(flips, expected, strict=True):
        for flip in row:
            values[:] = values if flip else np.abs(values) - 1
    np.testing.assert_array_equal(got, expected)


def _affine(left: Any, right: Any) -> Any:
    """First the left map x ↦ f x + b, then the right one."""
    return left[0] * right[0], right[0] * left[1] + right[1]


@MODES
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [1, 4, 9])
def test_associative_scan_of_affine_maps(mode: Any, reverse: bool, length: int) -> None:
    """An operation that does not commute keeps its order in both directions
    (triton#4362, triton#2359)."""
    rng = np.random.default_rng(length)
    factors, offsets = rng.uniform(0.5, 2, (2, length))
    order = range(length)[::-1] if reverse else range(length)
    expected: dict[int, Any] = {}
    last = None
    for i in order:
        own = factors[i], offsets[i]
        expected[i] = last = own if last is None else _affine(last, own)
    scan = mode(lambda *xs: lax.associative_scan(_affine, xs, reverse=reverse))
    got = scan(factors.astype("f"), offsets.astype("f"))
    for part in 0, 1:
        wanted = [expected[i][part] for i in range(length)]
        np.testing.assert_allclose(got[part], wanted, rtol=1e-5)


@MODES
def test_associative_scan_from_behind_along_the_last_axis(mode: Any) -> None:
    """Sums from behind along axis 1 of an odd length (pytorch#137943)."""
    x = np.arange(18, dtype=np.float32).reshape(2, 9)
    scan = mode(lambda x: lax.associative_scan(fnp.add, x, axis=1, reverse=True))
    np.testing.assert_array_equal(scan(x), np.cumsum(x[:, ::-1], 1)[:, ::-1])
    np.testing.assert_array_equal(mode(fxflow.vmap(fnp.cumsum))(x), np.cumsum(x, 1))


@MODES
def test_associative_scan_of_matrices_from_behind(mode: Any) -> None:
    """From behind, the later matrix stands on the left (jax#29313)."""
    a, b, c = np.random.default_rng(0).integers(-9, 9, (3, 2, 2)).astype("f")
    scan = mode(lambda x: lax.associative_scan(fnp.matmul, x, reverse=True))
    np.testing.assert_array_equal(scan(np.stack([a, b, c])), [c @ b @ a, c @ b, c])


@MODES
def test_tangent_of_a_counted_loop(mode: Any) -> None:
    """The tangent of x · 3! is 6 t; also the gradient, as the count is known
    (jax#1980)."""

    def factorial(x: Any) -> Any:
        return lax.fori_loop(0, 3, lambda i, v: v * (i + 1), x)

    value, tangent = mode(lambda x: fxflow.jvp(factorial, (x,), (1.0,)))(2.0)
    assert (value, tangent) == (12, 6)
    assert mode(fxflow.grad(factorial))(2.0) == 6


@MODES
def test_perturbation_enters_a_carry_through_a_captured_value(mode: Any) -> None:
    """A carry of constants that meets a perturbed value in the loop has a tangent
    (jax#9567)."""

    def f(x: Any) -> Any:
        return lax.scan(lambda y, _: (y * x, y), 1.0, length=3)

    (last, seen), tangents = mode(lambda x: fxflow.jvp(f, (x,), (1.0,)))(2.0)
    assert (last, tangents[0]) == (8, 12)
    np.testing.assert_array_equal(seen, [1, 2, 4])
    np.testing.assert_array_equal(tangents[1], [0, 1, 4])


@MODES
def test_gradient_by_both_arguments_of_a_rollout(mode: Any) -> None:
    """A linear system that a counted loop writes row by row into its carry has the
    gradients of the same system in a scan (jax#1954)."""
    a, b = np.float32([[0.7, 0.5], [0.5, 0.8]]), np.float32([0.4, 1.2])

    def counted(x: Any, us: Any) -> Any:
        def step(i: Any, carry: Any) -> Any:
            out, last = carry
            last = a @ last + b * us[i]
            return out.at[i].set(last), last

        return fnp.sum(lax.fori_loop(0, 5, step, (fnp.zeros((5, 2)), x))[0] ** 2)

    def scanned(x: Any, us: Any) -> Any:
        return fnp.sum(lax.scan(lambda x, u: (a @ x + b * u,) * 2, x, us)[1] ** 2)

    args = np.float32([1, 2]), np.linspace(-1, 1, 5, dtype="f")
    got = mode(fxflow.grad(counted, (0, 1)))(*args)
    for mine, other in zip(got, fxflow.grad(scanned, (0, 1))(*args), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-5)
