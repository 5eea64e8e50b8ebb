"""Programs after reports of JAX's users: derivatives, custom rules, vmap, callbacks."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import checkify, custom_batching, lax, nn, random, tree
from fxflow.errors import NonHashableStaticError, TreeError

MODES = pytest.mark.parametrize(
    "mode", [lambda f: f, fxflow.jit], ids=["eager", "compiled"]
)


@MODES
def test_custom_jvp_whose_seed_is_mapped(mode: Any) -> None:
    """A random key can be an argument without a derivative, and be mapped
    (jax#3964)."""

    @functools.partial(fxflow.custom_jvp, nondiff_argnums=(0, 2))
    def sample(shape: Any, scale: Any, key: Any) -> Any:
        return scale * random.uniform(key, shape)

    @sample.defjvp
    def _(shape: Any, key: Any, primals: Any, tangents: Any) -> Any:
        out = sample(shape, primals[0], key)
        return out, out * tangents[0] / primals[0]

    keys = random.split(random.key(1), 5)
    draw = mode(fxflow.vmap(lambda key: sample((2, 3), 2.0, key)))
    expected = np.stack([2 * random.uniform(key, (2, 3)) for key in keys])
    np.testing.assert_array_equal(draw(keys), expected)
    slope = fxflow.vmap(
        fxflow.grad(lambda s, key: fnp.sum(sample((2, 3), s, key))), (None, 0)
    )
    got = mode(slope)(2.0, keys)
    np.testing.assert_allclose(got, expected.sum((1, 2)) / 2, rtol=1e-6)


@MODES
def test_custom_vjp_mapped_over_an_argument_without_derivative(mode: Any) -> None:
    """An argument of `nondiff_argnums` may be mapped (jax#3808)."""

    @functools.partial(fxflow.custom_vjp, nondiff_argnums=(0,))
    def scaled(factor: Any, x: Any) -> Any:
        return factor * x

    scaled.defvjp(
        lambda factor, x: (scaled(factor, x), None), lambda factor, _, g: (-factor * g,)
    )
    grads = mode(fxflow.vmap(fxflow.grad(scaled, 1), (0, None)))(fnp.arange(3.0), 2.0)
    np.testing.assert_array_equal(grads, [0, -1, -2])


@MODES
def test_nondiff_arguments_stand_in_front_in_the_backward_rule_only(mode: Any) -> None:
    """The forward rule takes the arguments as the function does (jax#4617)."""
    seen = []

    @functools.partial(fxflow.custom_vjp, nondiff_argnums=(1,))
    def psum(x: Any, axis: str) -> Any:
        return lax.psum(x, axis)

    def forward(x: Any, axis: str) -> Any:
        seen.append(axis)
        return psum(x, axis), None

    def backward(axis: str, _: None, g: Any) -> Any:
        seen.append(axis)
        return (10 * g,)

    psum.defvjp(forward, backward)
    run = fxflow.vmap(fxflow.grad(lambda x: psum(x, "i")), axis_name="i")
    np.testing.assert_array_equal(mode(run)(fnp.ones(4)), [10] * 4)
    assert set(seen) == {"i"}
    mapped = fxflow.pmap(fxflow.grad(lambda x: fnp.sum(psum(x, "i"))), "i")
    np.testing.assert_array_equal(mapped(np.ones((8, 2), "f")), np.full((8, 2), 10))


@MODES
def test_gradient_of_a_scalar_that_mapped_functions_share(mode: Any) -> None:
    """The gradient by a scalar outside of the map is a scalar (jax#6452)."""
    y = np.ones((3, 2), np.float32)

    def f(z: Any) -> Any:
        return fnp.sum(fxflow.vmap(lambda row: fnp.logaddexp(z, row.sum() + z))(y))

    value, slope = mode(fxflow.value_and_grad(f))(0.1)
    assert value.shape == slope.shape == ()
    np.testing.assert_allclose(value, 3 * (0.1 + np.log1p(np.e**2)), rtol=1e-6)
    np.testing.assert_allclose(slope, 3, rtol=1e-6)


@MODES
@pytest.mark.parametrize("mapped", [False, True])
def test_custom_vjp_in_a_scan(mode: Any, mapped: bool) -> None:
    """A scan of gradients of a mapped `custom_vjp` function takes the user's rule
    (jax#4173, jax#4521)."""

    @fxflow.custom_vjp
    def total(x: Any) -> Any:
        return x.sum()

    total.defvjp(lambda x: (x.sum(), fnp.full_like(x, 3)), lambda rule, g: (g * rule,))

    def step(x: Any, row: Any) -> Any:
        f = fxflow.vmap(total) if mapped else total
        slope = fxflow.grad(lambda v: fnp.sum(f(v)))(x)
        return x + slope * row, slope

    def run(x: Any) -> Any:
        return lax.scan(step, x, fnp.arange(4.0))

    last, slopes = mode(run)(fnp.ones((2, 3)))
    np.testing.assert_array_equal(last, np.full((2, 3), 1 + 3 * 6))
    np.testing.assert_array_equal(slopes, np.full((4, 2, 3), 3))


@MODES
def test_vmap_of_a_custom_jvp_with_an_integer_result(mode: Any) -> None:
    """An integer result has no tangent, mapped or not (jax#25724)."""

    @fxflow.custom_jvp
    def counted(x: Any) -> Any:
        return x, 1

    @counted.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        out = counted(*primals)
        return out, (5 * tangents[0], np.zeros((), fxflow.float0))

    def run(x: Any) -> Any:
        value, count = fxflow.vmap(counted)(x)
        # `clz` has no derivative at all: it must see no tangent.
        return value * lax.clz(count)

    x = fnp.arange(3.0)
    out, tangent = mode(lambda x: fxflow.jvp(run, (x,), (x,)))(x)
    np.testing.assert_array_equal(out, 31 * x)
    np.testing.assert_array_equal(tangent, 5 * 31 * x)


@MODES
def test_custom_vjp_and_custom_vmap_together(mode: Any) -> None:
    """Both rules of one function hold, in either order (jax#14150)."""

    @custom_batching.custom_vmap
    def added(a: Any, b: Any) -> Any:
        return a + b

    @added.def_vmap
    def _(size: int, mapped: Any, a: Any, b: Any) -> Any:
        return a + b + 100, True

    @fxflow.custom_vjp
    def rule(a: Any, b: Any) -> Any:
        return added(a, b)

    rule.defvjp(lambda a, b: (rule(a, b), None), lambda _, g: (2 * g, 3 * g))
    ones = fnp.ones(2)
    np.testing.assert_array_equal(mode(fxflow.vmap(rule))(ones, ones), [102, 102])
    got = mode(fxflow.vmap(fxflow.grad(rule, (0, 1))))(ones, ones)
    np.testing.assert_array_equal(got, [[2, 2], [3, 3]])


@MODES
def test_tangent_of_a_mapped_scan_of_a_custom_jvp_with_constants(mode: Any) -> None:
    """Arrays that the function closes over are no further arguments of its rule
    (jax#4665)."""
    table = fnp.float32([1, 10, 100])

    @fxflow.custom_jvp
    def f(x: Any) -> Any:
        return x * table.sum()

    @f.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        return f(*primals), 7 * tangents[0]

    def scanned(x: Any) -> Any:
        return lax.scan(lambda c, _: (f(c), None), x, length=2)[0]

    x = fnp.float32([1, 2])
    mapped = fxflow.vmap(scanned)
    out, tangent = mode(lambda x: fxflow.jvp(mapped, (x,), (x,)))(x)
    np.testing.assert_array_equal(out, 111**2 * x)
    np.testing.assert_array_equal(tangent, 49 * x)


@MODES
def test_second_derivative_by_a_rule_that_calls_its_function(mode: Any) -> None:
    """With foo = 1 and foo' = x, (foo²)'' is 2 x² + 2 (jax#28805)."""

    @fxflow.custom_jvp
    def foo(x: Any) -> Any:
        return fnp.ones_like(x)

    @foo.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        return foo(x), x * t

    second = fxflow.hessian(lambda x: foo(x) ** 2)
    assert mode(second)(fnp.float32(0.5)) == 2.5
    reverse = fxflow.grad(fxflow.grad(lambda x: foo(x) ** 2))
    assert mode(reverse)(fnp.float32(0.5)) == 2.5


@MODES
def test_hessian_of_a_squared_norm(mode: Any) -> None:
    """The Hessian of |x|² is 2 I (jax#5262)."""
    hessian = mode(fxflow.hessian(lambda x: fnp.linalg.norm(x) ** 2))
    got = hessian(fnp.float32([1, 2, 3]))
    np.testing.assert_allclose(got, 2 * np.eye(3), atol=1e-6)


@MODES
def test_hessian_in_half_precision_of_a_constant_angle(mode: Any) -> None:
    """The second derivative of 2 atan2(x, x) / x is −3π / x³ (jax#37909)."""

    def f(x: Any) -> Any:
        return 1 / (x / fnp.arctan2(x, x) / 2)

    x = fnp.float16(-0.12)
    got = mode(fxflow.hessian(f))(x)
    assert got.dtype == np.float16
    np.testing.assert_allclose(got, -3 * np.pi / np.float64(x) ** 3, rtol=4e-3)


@MODES
@pytest.mark.parametrize(
    "second",
    [
        lambda f: fxflow.grad(fxflow.grad(f)),
        lambda f: fxflow.jacfwd(fxflow.jacfwd(f)),
        lambda f: fxflow.jacrev(fxflow.jacfwd(f)),
        fxflow.hessian,
    ],
)
def test_second_derivative_behind_a_saturated_tanh(mode: Any, second: Any) -> None:
    """Where tanh is −1, (tanh(u) u²)'' with u = −c v is −2 c² (jax#40315)."""

    def f(v: Any) -> Any:
        u = -1e3 * v
        return fnp.tanh(u) * u * u

    np.testing.assert_allclose(mode(second(f))(1.0), -2e6, rtol=1e-6)


@MODES
def test_gradient_of_the_gradient_of_a_checkpointed_function(mode: Any) -> None:
    """A rematerialized relu inside of a gradient has a gradient (jax#5507)."""
    rng = np.random.default_rng(0)
    w, x = rng.normal(size=(4, 5)).astype("f"), rng.normal(size=(5, 2)).astype("f")

    def f(w: Any, x: Any) -> Any:
        layer = fxflow.checkpoint(lambda a, b: fnp.sum(nn.relu(a @ b) ** 2))
        return fnp.sum(fxflow.grad(layer, 1)(w, x))

    def exact(w: Any) -> Any:
        return np.sum(2 * w.T @ np.maximum(w @ x, 0))

    np.testing.assert_allclose(mode(f)(w, x), exact(w), rtol=1e-5)
    got = mode(fxflow.grad(f))(w, x)
    wide = w.astype(np.float64)
    for i, j in np.ndindex(w.shape):
        change = np.zeros_like(wide)
        change[i, j] = 1e-6
        slope = (exact(wide + change) - exact(wide - change)) / 2e-6
        np.testing.assert_allclose(got[i, j], slope, rtol=1e-4, atol=1e-4)


@MODES
@pytest.mark.parametrize("weak", [False, True])
def test_checkpointed_body_of_a_scan(mode: Any, weak: bool) -> None:
    """Rematerialization changes no gradient of a scan, also of Python scalars
    (jax#1907, jax#9836)."""

    def energy(body: Any) -> Any:
        def f(x: Any) -> Any:
            return lax.scan(lambda c, s: (body(c) * s, c), x, fnp.arange(1.0, 4))[0]

        return fxflow.grad(f)

    x = 0.3 if weak else fnp.float32(0.3)
    plain, kept = energy(fnp.sin), energy(fxflow.checkpoint(fnp.sin))
    value, slope = 0.3, 1.0
    for s in 1, 2, 3:
        value, slope = s * np.sin(value), slope * s * np.cos(value)
    np.testing.assert_allclose(mode(plain)(x), slope, rtol=1e-5)
    np.testing.assert_allclose(mode(kept)(x), slope, rtol=1e-5)


@MODES
def test_checkpointed_operator_of_fourier_transforms_in_a_solver(mode: Any) -> None:
    """The gradient of a solution of a checkpointed spectral operator is the one
    without the checkpoint (jax#14302)."""
    source = np.random.default_rng(0).normal(size=8).astype("f")
    symbol = 1 + np.fft.fftfreq(8).astype("f") ** 2

    def solution(wrap: Any) -> Any:
        def loss(c: Any) -> Any:
            @wrap
            def operator(u: Any) -> Any:
                return c * fnp.fft.ifft(symbol * fnp.fft.fft(u)).real

            return fnp.sum(
                lax.custom_linear_solve(
                    operator,
                    source,
                    lambda f, b: lax.fori_loop(
                        0, 60, lambda i, u: u + 0.4 * (b - f(u)), fnp.zeros_like(b)
                    ),
                    symmetric=True,
                )
                ** 2
            )

        return fxflow.value_and_grad(loss)

    # The loss is |S⁻¹ b|² / c².
    exact = np.sum(np.fft.ifft(np.fft.fft(source.astype("d")) / symbol).real ** 2)
    for wrap in fxflow.checkpoint, lambda f: f:
        value, slope = mode(solution(wrap))(1.5)
        np.testing.assert_allclose(value, exact / 1.5**2, rtol=1e-5)
        np.testing.assert_allclose(slope, -2 * exact / 1.5**3, rtol=1e-4)


@MODES
def test_taylor_series_of_a_compiled_network(mode: Any) -> None:
    """`jet` of a jitted net of tanh layers gives the nested derivatives
    (jax#19949)."""
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=s).astype("f") / 2 for s in [(1, 4), (4, 4), (4, 1)]]

    @fxflow.jit
    def net(x: Any) -> Any:
        for w in weights[:-1]:
            x = fnp.tanh(x @ w)
        return x @ weights[-1]

    x = fnp.float32([[0.3], [0.7]])
    zeros = fnp.zeros_like(x)

    def series(x: Any) -> Any:
        return fxflow.jet(net, (x,), ((fnp.ones_like(x), zeros, zeros),))

    value, terms = mode(series)(x)
    f = lambda t: net(t.reshape(1, 1))[0, 0]
    for term in (value, *terms):
        expected = [f(t[0]) for t in x]
        np.testing.assert_allclose(np.ravel(term), expected, rtol=2e-4, atol=1e-5)
        f = fxflow.grad(f)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_vmap_of_a_callback_over_another_axis(axis: int) -> None:
    """A callback over whole batches gets the mapped axis in front (jax#19978)."""
    shapes = []

    def host(x: Any) -> Any:
        shapes.append(x.shape)
        return 2 * np.asarray(x)

    @fxflow.jit
    def call(x: Any) -> Any:
        kind = fxflow.ShapeDtypeStruct(x.shape, x.dtype)
        return fxflow.pure_callback(host, kind, x, vmap_method="expand_dims")

    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    got = fxflow.vmap(call, in_axes=axis, out_axes=axis)(x)
    np.testing.assert_array_equal(got, 2 * x)
    assert shapes == [np.moveaxis(x, axis, 0).shape]


@MODES
def test_vmap_of_a_callback_of_two_arguments(mode: Any) -> None:
    """One by one, a callback gets the rows of both arguments (jax#12596)."""

    def pair(a: Any, b: Any) -> Any:
        return fxflow.pure_callback(
            lambda a, b: (np.asarray(b), np.asarray(a) + b),
            (a, a),
            a,
            b,
            vmap_method="sequential",
        )

    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    first, second = mode(fxflow.vmap(pair))(a, a[::-1])
    np.testing.assert_array_equal(first, a[::-1])
    np.testing.assert_array_equal(second, a + a[::-1])


def test_a_user_check_that_is_not_asked_for_passes() -> None:
    """With an empty set of errors no check is raised, eagerly either (jax#9830)."""

    def f(x: Any) -> Any:
        checkify.check(x > 0, "must be positive")
        return x * 2

    for run in f, fxflow.jit(f):
        error, out = checkify.checkify(run, errors=frozenset())(-1.0)
        assert error.get() is None
        assert out == -2
        error, _ = checkify.checkify(run)(-1.0)
        assert "must be positive" in error.get()


def test_array_as_a_static_argument_is_refused_by_name() -> None:
    """The message says which argument cannot be static (jax#883)."""
    run = fxflow.jit(lambda x, table: x, static_argnums=1)
    for _ in range(2):
        with pytest.raises(NonHashableStaticError, match="table"):
            run(1.0, fnp.arange(3))


@pytest.mark.parametrize("keys", [{1: 7, "y": 42}, {(1,): 1, 2: 3}])
def test_keys_of_a_dict_that_do_not_sort_are_named(keys: Any) -> None:
    """The message names the keys that do not compare (jax#15358)."""
    with pytest.raises(TreeError, match="sort"):
        tree.map(lambda x: x + 1, keys)


@MODES
def test_scalar_of_a_narrow_dtype_keeps_it_in_powers(mode: Any) -> None:
    """Dividing by the square of a float32 scalar stays in float32, also where 64 bits
    are on (jax#1830)."""
    with fxflow.config.override(x64=True):
        scale = fnp.float32(2)
        out = mode(lambda x: fnp.exp(x / scale**2))(np.float32([0, 4]))
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, [1, np.e], rtol=1e-6)


@MODES
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8"])
def test_where_takes_the_dtype_of_its_array(mode: Any, dtype: str) -> None:
    """A Python scalar beside an array does not widen it (jax#1801)."""
    x = fnp.arange(3).astype(dtype)
    out = mode(lambda x: fnp.where(x > 1, x, 0))(x)
    assert out.dtype == x.dtype
    np.testing.assert_array_equal(out, fnp.float32([0, 0, 2]).astype(dtype))


@MODES
def test_python_booleans_have_one_type(mode: Any) -> None:
    """True becomes the same array in compiled code, and adds to what is weakly typed
    (jax#11388)."""
    out = mode(fnp.array)(True)
    assert out.dtype == bool
    total = mode(lambda flag, x: fnp.asarray(flag) + x)(True, fnp.int8(3))
    assert (total, total.dtype) == (4, np.int8)


@MODES
def test_gradient_of_a_complex_modulus_by_either_formula(mode: Any) -> None:
    """|z| and √(re² + im²) have one gradient, the conjugate of z / |z| (jax#979)."""
    z = fnp.complex64(1 + 0.5j)
    expected = np.conj(1 + 0.5j) / abs(1 + 0.5j)
    for f in fnp.abs, lambda z: fnp.sqrt(z.real**2 + z.imag**2):
        np.testing.assert_allclose(mode(fxflow.grad(f))(z), expected, rtol=1e-6)
    got = mode(fxflow.grad(lambda z: z.imag**2))(fnp.complex64(2j))
    np.testing.assert_allclose(got, -4j)  # jax#15872: the conjugate, by convention


@MODES
def test_tangent_of_a_function_that_is_not_holomorphic(mode: Any) -> None:
    """The tangent of z² / 2 + conj(z)³ / 3 is z t + conj(z)² conj(t) (jax#3433)."""
    z, t = np.complex64(1.5 - 0.5j), np.complex64(-0.3 + 2j)
    f = lambda z: z**2 / 2 + fnp.conj(z) ** 3 / 3
    _, got = mode(lambda z, t: fxflow.jvp(f, (z,), (t,)))(z, t)
    expected = z * t + np.conj(z) ** 2 * np.conj(t)
    np.testing.assert_allclose(got, expected, rtol=1e-5)


@pytest.mark.parametrize("mode", [lambda f: f, fxflow.jit])
def test_python_integer_beyond_32_bits_is_refused(mode: Any) -> None:
    """Without 64 bits, 2³² raises instead of becoming 0 (jax#3840, jax#5952)."""
    with pytest.raises(OverflowError):
        mode(lax.neg)(1 << 32)
    with pytest.raises(OverflowError):
        mode(lambda x: x + (1 << 40))(fnp.int32(1))


def test_a_rule_of_custom_vmap_gets_what_is_not_mapped() -> None:
    """An argument with `in_axes=None` reaches the rule without an axis (jax#14961)."""

    @custom_batching.custom_vmap
    def dot(u: Any, v: Any, c: Any) -> Any:
        return c * u @ v

    @dot.def_vmap
    def rule(size: int, mapped: Any, u: Any, v: Any, c: Any) -> Any:
        assert mapped == [True, False, False] and v.ndim == 1 and c.ndim == 0
        return c * u @ v, True

    got = fxflow.vmap(dot, (0, None, None))(fnp.ones((4, 3)), fnp.ones(3), 2.0)
    assert got.tolist() == [6, 6, 6, 6]


def test_sequential_vmap_while_compiling() -> None:
    """It runs within `ensure_compile_time_eval` (jax#29996)."""

    @fxflow.jit
    def f(x: Any) -> Any:
        with fxflow.ensure_compile_time_eval():
            y = fxflow.vmap(custom_batching.sequential_vmap(fnp.cos))(fnp.arange(3.0))
        return x + y

    np.testing.assert_allclose(f(1.0), 1 + np.cos(np.arange(3.0)), rtol=1e-6)


def test_callbacks_of_loops_that_end_at_steps_of_their_own() -> None:
    """A vectorized loop calls Python for the rows that go on (jax#20628)."""
    seen: list[int] = []

    def loop(n: Any) -> Any:
        def step(i: Any) -> Any:
            fxflow.io_callback(lambda v: seen.append(int(v)), None, n)
            return i + 1

        return lax.while_loop(lambda i: i < n, step, 0)

    assert fxflow.vmap(loop)(fnp.array([1, 3])).tolist() == [1, 3]
    assert sorted(seen) == [1, 3, 3, 3]
