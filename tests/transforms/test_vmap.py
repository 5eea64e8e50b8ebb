"""vmap: axes, structure, composition, named axes."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import fxflow
import fxflow.numpy as fnp
from fxflow import grad, jit, lax, vmap
from fxflow.errors import ArgumentError, ShapeError


@settings(max_examples=20, deadline=None)
@given(
    st.integers(1, 4),
    st.tuples(st.integers(0, 3), st.integers(1, 3)),
    st.sampled_from([0, 1, 2, -1, None]),
    st.sampled_from([0, 1, -1]),
)
def test_is_a_loop(size, shape, in_axis, out_axis):
    rng = np.random.default_rng(0)
    x = rng.normal(size=shape).astype("f4")
    if in_axis is not None:
        ndim = len(shape) + 1
        stacked = np.moveaxis(
            rng.normal(size=(size, *shape)).astype("f4"), 0, in_axis % ndim
        )
    else:
        stacked = x
    y = rng.normal(size=(size, shape[1])).astype("f4")

    def one(a, b):
        return fnp.sin(a) * b + a.sum()

    got = vmap(one, in_axes=(in_axis, 0), out_axes=out_axis)(stacked, y)
    rows = [
        np.asarray(one(x if in_axis is None else np.take(stacked, i, in_axis), y[i]))
        for i in range(size)
    ]
    np.testing.assert_allclose(got, np.stack(rows, out_axis), rtol=1e-5, atol=1e-6)


def test_pytrees_of_axes():
    def fun(p, x):
        return {"y": p["w"] @ x + p["b"], "w": p["w"]}

    p = {"w": fnp.ones((2, 3)), "b": fnp.arange(4.0)}
    x = fnp.ones((3, 4))
    out = vmap(fun, in_axes=({"w": None, "b": 0}, 1), out_axes={"y": 1, "w": None})(
        p, x
    )
    assert out["y"].shape == (2, 4) and out["w"].shape == (2, 3)
    np.testing.assert_allclose(out["y"], 3 + np.arange(4.0) + np.zeros((2, 1)))


def test_nested_jitted_and_unmapped():
    x = fnp.arange(6.0).reshape(2, 3)
    outer = vmap(vmap(lambda a, b: a * b, (0, None)), (None, 0))
    np.testing.assert_allclose(
        jit(outer)(x[0], x[1]), np.outer(np.asarray(x[1]), np.asarray(x[0]))
    )
    assert vmap(lambda a: 1.0, axis_size=3)(fnp.ones(3)).shape == (3,)
    assert vmap(lambda: fnp.ones(2), axis_size=3)().shape == (3, 2)


def test_keyword_arguments_are_mapped_over_axis_0():
    got = vmap(lambda x, *, y: x * y)(fnp.ones(3), y=fnp.arange(3.0))
    assert got.tolist() == [0.0, 1.0, 2.0]


def test_unmapped_traced_scalars():
    # A 0-d value from an outer transformation beside a mapped one.
    g = grad(lambda w: vmap(lambda x: x * w)(fnp.arange(3.0)).sum())
    assert float(g(2.0)) == 3.0
    assert float(jit(g)(2.0)) == 3.0


def test_unmapped_arguments_may_be_anything():
    x = fnp.arange(3.0)
    got = vmap(lambda f, options, x: f(x) * options["b"], in_axes=(None, None, 0))(
        fnp.exp, {"a": "text", "b": 2.0}, x
    )
    np.testing.assert_allclose(got, 2 * np.exp(x), rtol=1e-6)
    with pytest.raises(ArgumentError, match=r"argument options\['a'\] of .* 'text'"):
        vmap(lambda f, options, x: x, in_axes=(None, 0, 0))(fnp.exp, {"a": "text"}, x)


def self_calling(fun, rule):
    f = fxflow.custom_jvp(fun)
    f.defjvp(lambda primals, tangents: (f(*primals), rule(f, primals, tangents)))
    return f


def with_vjp(fun):
    f = fxflow.custom_vjp(fun)
    f.defvjp(
        lambda *args: (fun(*args), None),
        lambda _, cts: cts if isinstance(cts, tuple) else (cts,),
    )
    return f


def pair(x, w):
    return 2.0 * x, w


UNCHANGED = {
    "call": jit(pair),
    "checkpoint": fxflow.checkpoint(pair),
    "cond": lambda x, w: lax.cond(x.sum() < 1, lambda x, w: (x, w), pair, x, w),
    "cond of jit": lambda x, w: lax.cond(x.sum() < 1, jit(pair), pair, x, w),
    "switch": lambda x, w: lax.switch(
        fnp.int32(x.sum()), [pair, lambda x, w: (x, w), jit(pair)], x, w
    ),
    "while": lambda x, w: lax.while_loop(
        lambda c: c[0].sum() < 9, lambda c: jit(pair)(c[0] + 1.0, c[1]), (x, w)
    ),
    "while of cond": lambda x, w: lax.while_loop(
        lambda c: c[0].sum() < 9,
        lambda c: lax.cond(c[0].sum() < 5, pair, pair, c[0] + 1.0, c[1]),
        (x, w),
    ),
    "fori": lambda x, w: lax.fori_loop(0, 2, lambda _, c: pair(*c), (x, w)),
    "scan": lambda x, w: lax.scan(
        lambda c, _: (jit(pair)(*c), None), (x, w), None, length=2
    )[0],
    "scanned": lambda x, w: lax.scan(lambda c, _: pair(c, w), x, None, length=1),
    "custom_jvp": self_calling(pair, lambda f, p, t: (2.0 * t[0], t[1])),
    "custom_vjp": with_vjp(pair),
    "linear solve": lambda x, w: lax.custom_linear_solve(
        lambda v: (x * v[0], 2.0 * v[1]),
        (x, w),
        lambda _, b: (b[0] / x, b[1] / 2.0),
        lambda _, b: (b[0] / x, b[1] / 2.0),
    ),
    "root": lambda x, w: (
        x,
        lax.custom_root(lambda v: v - 2.0, w, lambda f, v: v, lambda g, y: y),
    ),
}


@pytest.mark.parametrize("name", UNCHANGED)
@pytest.mark.parametrize("through", ["", "jit", "vmap"])
def test_what_is_passed_on_stays_unmapped(name, through):
    fun = UNCHANGED[name]
    x, w = fnp.array([0.5, 2.0, 3.5]), fnp.array([1.0, 2.0])
    mapped = vmap(fun, in_axes=(0, None), out_axes=(0, None))
    if through == "jit":
        mapped = jit(mapped)
    if through == "vmap":
        mapped = vmap(mapped, in_axes=(0, None), out_axes=(0, None))
        x = fnp.stack([x, 2 * x])
    first, second = mapped(x, w)
    rows = [fun(v, w) for v in np.asarray(x).ravel()]
    np.testing.assert_allclose(first.ravel(), [row[0] for row in rows], rtol=1e-6)
    assert second.shape == rows[0][1].shape or name == "scanned"
    np.testing.assert_allclose(second.ravel(), np.ravel(rows[0][1]), rtol=1e-6)


COLLECTED = {
    "call": jit(lambda x: lax.psum(x, "i")),
    "while": lambda x: lax.while_loop(
        lambda c: c < 50.0, lambda c: c + lax.psum(x, "i"), 1.0
    ),
    "scan": lambda x: lax.scan(
        lambda c, _: (c + lax.psum(x, "i"), None), 0.0, None, length=2
    )[0],
    "cond": lambda x: lax.cond(
        lax.psum(x, "i") > 1, lambda x: lax.psum(x, "i"), lambda _: 0.0, x
    ),
    "custom_jvp": self_calling(
        lambda x: lax.psum(x, "i"), lambda f, primals, tangents: f(*tangents)
    ),
    "custom_vjp": with_vjp(lambda x: lax.psum(x, "i")),
}


@pytest.mark.parametrize("name", COLLECTED)
def test_what_is_collected_is_unmapped(name):
    mapped = vmap(COLLECTED[name], out_axes=None, axis_name="i")
    x = fnp.arange(3.0)
    expected = vmap(COLLECTED[name], axis_name="i")(x)
    assert mapped(x).shape == ()
    np.testing.assert_allclose(np.full(3, mapped(x)), expected)
    np.testing.assert_allclose(jit(mapped)(x), mapped(x))


def test_a_constant_whose_derivative_is_mapped():
    @fxflow.custom_jvp
    def through(x):
        return fnp.ones(())

    @through.defjvp
    def rule(primals, tangents):
        return through(*primals), 3.0 * tangents[0]

    x = fnp.arange(3.0)
    with pytest.raises(ArgumentError, match="out_axes is None"):
        vmap(through, out_axes=None)(x)
    got = grad(lambda x: vmap(through)(x).sum())(x)
    assert got.tolist() == [3.0, 3.0, 3.0]
    assert vmap(grad(through))(x).tolist() == [3.0, 3.0, 3.0]
    assert fxflow.jacfwd(vmap(through))(x).tolist() == (3 * np.eye(3)).tolist()


def test_rules_that_fail_or_go_on_for_ever_are_only_asked_for_derivatives():
    @fxflow.custom_jvp
    def failing(x):
        return fnp.ones(())

    @failing.defjvp
    def rule(primals, tangents):
        raise ValueError("no derivative")

    assert vmap(failing)(fnp.arange(3.0)).tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="no derivative"):
        grad(lambda x: vmap(failing)(x).sum())(fnp.arange(3.0))
    made = []

    def nth(n):
        made.append(n)
        f = fxflow.custom_jvp(lambda x, w: (w, made and w))
        f.defjvp(lambda p, t: (f(*p), (n * nth(n + 1)(*p)[0] * t[1], t[1])))
        return f

    outs = vmap(nth(1), in_axes=(0, None), out_axes=(0, None))(fnp.ones(2), 3.0)
    assert outs[0].tolist() == [3.0, 3.0]
    assert len(made) < 5


def test_derivatives_of_what_is_passed_on():
    x, w = fnp.array([0.5, 2.0, 3.5]), fnp.array([1.0, 2.0])
    for name, fun in UNCHANGED.items():
        if name in ("while", "while of cond"):
            continue

        def loss(x, w, fun=fun):
            first, second = vmap(fun, in_axes=(0, None), out_axes=(0, None))(x, w)
            return first.sum() + (second**2).sum()

        def rows(x, w, fun=fun):
            outs = [fun(v, w) for v in x]
            return sum(o[0].sum() for o in outs) + (outs[0][1] ** 2).sum()

        for one, other in zip(
            grad(loss, (0, 1))(x, w), grad(rows, (0, 1))(x, w), strict=True
        ):
            np.testing.assert_allclose(one, other, rtol=1e-5, err_msg=name)


def test_cotangents_of_what_is_the_same_for_all_slices():
    @fxflow.custom_vjp
    def scaled(x, w):
        return x * w, w

    scaled.defvjp(
        lambda x, w: (scaled(x, w), (x, w)),
        lambda r, cts: (cts[0] * r[1], cts[0] * r[0] + cts[1]),
    )
    x = fnp.array([1.0, 2.0, 3.0])

    def loss(w, axis):
        first, second = vmap(scaled, (0, None), (0, axis))(x, w)
        return first.sum() + 5.0 * (second if axis is None else second[1])

    assert float(grad(loss)(2.0, None)) == 11.0
    assert float(grad(loss)(2.0, 0)) == 11.0
    total = with_vjp(lambda x: lax.psum(x, "i"))
    each = grad(lambda x: 2.0 * vmap(total, out_axes=None, axis_name="i")(x))
    assert each(x).tolist() == [2.0, 2.0, 2.0]


def test_named_axes():
    x = fnp.arange(6.0).reshape(3, 2)

    def normalized(v):
        return v - lax.pmean(v, "i")

    got = vmap(normalized, axis_name="i")(x)
    np.testing.assert_allclose(got, x - np.asarray(x).mean(0))
    np.testing.assert_allclose(jit(vmap(jit(normalized), axis_name="i"))(x), got)
    two = vmap(vmap(lambda v: lax.psum(v, ("i", "j")), axis_name="j"), axis_name="i")
    np.testing.assert_allclose(two(x), np.full((3, 2), 15.0))
    only = vmap(vmap(lambda v: lax.psum(v, "i"), axis_name="j"), axis_name="i")
    np.testing.assert_allclose(only(x), np.broadcast_to(np.asarray(x).sum(0), (3, 2)))


def test_gradient_through_collectives():
    x = fnp.arange(3.0)
    per = vmap(grad(lambda v: lax.psum(v**2, "i")), axis_name="i")(x)
    np.testing.assert_allclose(per, [0.0, 6.0, 12.0])
    whole = grad(lambda v: vmap(lambda t: lax.psum(t**2, "i"), axis_name="i")(v)[0])(x)
    np.testing.assert_allclose(whole, [0.0, 2.0, 4.0])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: vmap(lambda x, y: x)(fnp.ones(3), fnp.ones(4)),
            TypeError,
            r"axis 0 of argument x \(f32\[3\]\) is 3.*argument y \(f32\[4\]\) is 4",
        ),
        (lambda: vmap(lambda x: x, in_axes=None)(1.0), TypeError, "nothing to map"),
        (lambda: vmap(lambda x: x)(1.0), ValueError, "out of range for 0 axes"),
        (lambda: vmap(lambda x: x, in_axes=2)(fnp.ones(3)), IndexError, "axis 2"),
        (
            lambda: vmap(lambda x: x, in_axes=(0, 0))(fnp.ones(3)),
            TypeError,
            "one entry for each of the 1",
        ),
        (lambda: vmap(lambda x: x, in_axes="a"), TypeError, "in_axes is an int"),
        (
            lambda: vmap(lambda x: x, in_axes=({"a": 0},))({"b": fnp.ones(3)}),
            TypeError,
            "does not fit the structure",
        ),
        (
            lambda: vmap(lambda x: x, out_axes=None)(fnp.ones(3)),
            TypeError,
            "out_axes is None",
        ),
        (lambda: vmap(lambda x: x, out_axes=3)(fnp.ones(3)), ValueError, "out_axes"),
        (lambda: vmap(lambda x: x)([1, "a"]), TypeError, r"x\[1\].*not an array"),
        (lambda: vmap(lambda x: lax.psum(x, "k"))(fnp.ones(3)), NameError, "'k'"),
        (lambda: vmap(3), TypeError, "takes a function"),
    ],
)
def test_axes_and_lengths_that_do_not_fit_are_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_spmd_axis_name_divides_the_mapped_axis():
    mesh = fxflow.make_mesh((4, 2), ("x", "y"))
    a = np.arange(64.0, dtype=np.float32).reshape(8, 2, 4)

    def constrained(v):
        rows = fxflow.NamedSharding(mesh, fxflow.P(None, "y"))
        return fxflow.lax.with_sharding_constraint(fnp.sin(v), rows)

    run = fxflow.jit(fxflow.vmap(constrained, spmd_axis_name="x"))
    out = run(a)
    np.testing.assert_allclose(out, np.sin(a), rtol=1e-6)
    assert out.sharding.spec == fxflow.P("x", None, "y")
    # Through calls, loops and a second mapped axis.
    nested = fxflow.vmap(
        fxflow.vmap(lambda v: fxflow.checkpoint(fxflow.jit(constrained))(v)),
        spmd_axis_name=("x",),
    )
    out = fxflow.jit(nested)(a.reshape(8, 2, 2, 2))
    assert out.sharding.spec[0] == "x"
    assert out.sharding.spec[3] == "y"


def test_spmd_axis_name_and_shard_map():
    mesh = fxflow.make_mesh((4, 2), ("x", "y"))

    @fxflow.shard_map(
        mesh=mesh, in_specs=(fxflow.P("y"), fxflow.P()), out_specs=fxflow.P()
    )
    def total(v, w):
        slope = fxflow.grad(lambda w: fnp.sum(w * v))(w)
        return fxflow.lax.psum(fnp.sum(v * w), "y") + slope

    a = np.arange(32.0, dtype=np.float32).reshape(8, 4)
    for spmd, local in [("x", "f32[2,2]"), (None, "f32[8,2]")]:
        run = fxflow.vmap(total, in_axes=(0, None), spmd_axis_name=spmd)
        np.testing.assert_allclose(run(a, 2.0), 3 * a.sum(1))
        assert local in str(fxflow.make_graph(run)(a, 2.0))
    with pytest.raises(ShapeError, match=r"length 6, cannot be divided into 4"):
        fxflow.vmap(total, in_axes=(0, None), spmd_axis_name="x")(a[:6], 2.0)
    with pytest.raises(ArgumentError, match="divide others over 'y' already"):
        fxflow.vmap(total, in_axes=(0, None), spmd_axis_name="y")(a, 2.0)
