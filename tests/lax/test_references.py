"""References in graphs, control flow and transformations."""

import functools

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, make_graph
from fxflow.errors import ArgumentError, DtypeError, NotDifferentiableError
from fxflow.ref import addupdate, empty_ref, freeze, get, new_ref, set, swap

X = np.array([1.0, 2.0, 3.0], np.float32)


def test_graph() -> None:
    def f(r, x, i):
        r[...] += x
        r[0] = 2.0
        addupdate(r, i, r[1])
        return swap(r, slice(1, 3), x[:2]), freeze(new_ref(x))

    r = new_ref(fnp.zeros(3))
    found = make_graph(f)(r, fnp.ones(3), 1)
    assert str(found) == (
        "graph f(a: Ref{f32[3]}, b: f32[3], c: i32[]~) {\n"
        "  d: f32[3] = get a\n"
        "  e: f32[3] = add d b\n"
        "  f: f32[3] = swap a e\n"
        "  g: f32[] = swap[index=[0]] a 2.0:f32[]\n"
        "  h: f32[] = get[index=[1]] a\n"
        "  addupdate[index=[*]] a h c\n"
        "  i: f32[2] = slice[start_indices=(0,), limit_indices=(2,), strides=None] b\n"
        "  j: f32[2] = swap[index=[1:3]] a i\n"
        "  k: Ref{f32[3]} = new_ref b\n"
        "  l: f32[3] = get k\n"
        "  return j, l\n"
        "}"
    )
    found.check()
    old, _ = found(r, fnp.ones(3), 1)
    assert old.tolist() == [2, 1] and r[...].tolist() == [2, 1, 1]
    text = str(make_graph(lambda x: r[...] + x)(1.0))
    assert text.startswith("graph lambda_(a: Ref{f32[3]}, b: f32[]~)")


def test_writes_are_not_dead_and_reads_are() -> None:
    def f(r):
        r[0]
        r[...] = fnp.zeros(3)

    nodes = make_graph(f)(new_ref(fnp.ones(3))).nodes
    assert [node.primitive.name for node in nodes][-1] == "swap"
    assert "get" not in [node.primitive.name for node in nodes]


def test_functions_read_and_write_references() -> None:
    r = new_ref(fnp.arange(3.0))
    assert get(r).tolist() == [0, 1, 2] and get(r, 1) == 1
    set(r, None, 1.0)
    assert swap(r, 0, 5.0) == 1
    addupdate(r, (fnp.array([1, 1]),), 1.0)
    assert freeze(r).tolist() == [5, 3, 1]
    set(r.at[1:], 0, 7.0)
    addupdate(r.at[1:], None, 1.0)
    assert swap(r.at[0], None, 0.0) == 5 and r[...].tolist() == [0, 8, 2]
    empty = empty_ref(fxflow.ShapeDtypeStruct((2,), "int32"))
    assert (empty.shape, empty.dtype) == ((2,), np.int32)
    for wrong in (get, freeze, lambda x: set(x, 0, 1), lambda x: swap(x, 0, 1)):
        with pytest.raises(ArgumentError, match=r"must be a reference, got f32\[3\]"):
            wrong(fnp.ones(3))
    with pytest.raises(ArgumentError, match="references to references"):
        new_ref(r)
    with pytest.raises(ArgumentError, match=r"convert it with fnp.asarray"):
        new_ref([1, 2])
    with pytest.raises(ArgumentError, match="memory_space must be None"):
        new_ref(1.0, memory_space=fxflow.memory.Space.Host)
    assert str(fxflow.typeof(new_ref(1, kind="mine")).kind) == "mine"


# -- control flow ----------------------------------------------------------------------


def fori(r, x):
    def body(i, c):
        r[i] = c * x
        return c + r[0]

    return lax.fori_loop(0, 3, body, 1.0)


def scanned(r, x):
    def body(c, y):
        r[...] += y * x
        return c + r[0], r[1]

    return lax.scan(body, 0.0, fnp.arange(3.0))


def over_slices(r, x):
    def body(c, part):
        part[...] = part[...] * x + c
        return c + 1.0, part[...]

    return lax.scan(body, 0.0, r)


def chosen(r, x):
    def yes():
        r[0] = 2 * x
        return x

    def no():
        return r[1]

    return lax.cond(x > 1, yes, no)


def switched(r, x):
    def at(i, q):
        q[i] = x

    branches = [functools.partial(at, i) for i in range(3)]
    return lax.switch(fnp.asarray(x, "int32"), branches, r)


def while_read(r, x):
    def body(n):
        r[0] += x
        return n + 1

    return lax.while_loop(lambda n: r[0] < 6 * x, body, 0)


def nested(r, x):
    q = new_ref(x)

    def outer(c, _):
        def inner(d, _):
            q[...] *= 2.0
            r[...] += q[...]
            return d, None

        return lax.scan(inner, c, None, length=2)[0] + r[0], q[...]

    return lax.scan(outer, x, None, length=2)


FLOWS = [fori, scanned, over_slices, chosen, switched, while_read, nested]


@pytest.mark.parametrize("f", FLOWS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("x", [0.5, 1.5])
def test_control_flow(f, x) -> None:
    """It does what it does in Python, eager, compiled and captured by a function."""
    with fxflow.disable_jit():
        plain = new_ref(X)
        want = fxflow.tree.leaves(f(plain, fnp.float32(x))) if f is not scanned else ()
        want = [np.asarray(w) for w in (*want, plain[...])]
    if f is scanned or f is over_slices:  # of the loop itself, by hand
        want = by_hand(f, x)
    for way in (f, fxflow.jit(f), lambda r, x: fxflow.jit(lambda x: f(r, x))(x)):
        r = new_ref(X)
        found = [*fxflow.tree.leaves(way(r, fnp.float32(x))), r[...]]
        assert len(found) == len(want)
        for a, b in zip(found, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


def by_hand(f, x):
    r, c, ys = X.copy(), 0.0, []
    for i in range(3):
        if f is scanned:
            r += i * x
            c += r[0]
            ys.append(r[1])
        else:
            r[i] = r[i] * x + c
            c += 1
            ys.append(r[i])
    return [np.float32(c), np.array(ys, np.float32), r]


def test_graphs_of_control_flow_check() -> None:
    for f in FLOWS:
        make_graph(f)(new_ref(X), 1.5).check()


def test_mistakes_in_control_flow() -> None:
    r = new_ref(X)
    with pytest.raises(ArgumentError, match=r"scan: init is a reference.*capture it"):
        lax.scan(lambda c, x: (c, None), r, fnp.ones(3))
    with pytest.raises(ArgumentError, match="while_loop: init_val is a reference"):
        lax.while_loop(lambda c: True, lambda c: c, r)
    with pytest.raises(ArgumentError, match="a reference"):
        lax.cond(True, lambda: r, lambda: r)

    def condition(n):
        r[0] = 1.0
        return n < 3

    with pytest.raises(ArgumentError, match="cond_fun writes to a reference"):
        lax.while_loop(condition, lambda n: n + 1, 0)
    with pytest.raises(ArgumentError, match=r"one reference.*twice"):
        fxflow.jit(
            lambda a, x: lax.cond(x > 0, lambda b, c: b[0], lambda b, c: c[0], a, a)
        )(r, 1.0)


# -- derivatives -----------------------------------------------------------------------


def inside(x):
    r = new_ref(x)
    r[0] *= 2.0
    r[1] = r[0] * x[2]
    return fnp.sum(r[...] ** 2)


def accumulated(x):
    r = new_ref(0.0)

    def body(i, c):
        r[...] += x[i] ** 2
        return c

    lax.fori_loop(0, 3, body, 0.0)
    return r[...]


def branched(x):
    r = new_ref(fnp.zeros(3))
    lax.cond(x[0] > 0, lambda: set(r, 0, x[1] ** 2), lambda: None)
    return r[...].sum()


def rematerialized(x):
    r = new_ref(x)

    @fxflow.checkpoint
    def f(y):
        r[0] = y[0] ** 2
        return (r[...] * fnp.sin(y)).sum()

    return f(x)


def called(x):
    r = new_ref(x)

    @fxflow.jit
    def f(y):
        r[1:] *= y[:2]

    f(x)
    return (r[...] ** 2).sum()


PURE = {
    inside: lambda x: 4 * x[0] ** 2 + (2 * x[0] * x[2]) ** 2 + x[2] ** 2,
    accumulated: lambda x: (x**2).sum(),
    branched: lambda x: fnp.where(x[0] > 0, x[1] ** 2, 0.0),
    rematerialized: lambda x: (x.at[0].set(x[0] ** 2) * fnp.sin(x)).sum(),
    called: lambda x: x[0] ** 2 + (x[1] * x[0]) ** 2 + (x[2] * x[1]) ** 2,
}
TRANSFORMS = {
    "call": lambda f: f,
    "grad": fxflow.grad,
    "jit-grad": lambda f: fxflow.jit(fxflow.grad(f)),
    "grad-jit": lambda f: fxflow.grad(fxflow.jit(f)),
    "jvp": lambda f: lambda x: fxflow.jvp(f, (x,), (fnp.ones(3),)),
    "linearize": lambda f: lambda x: fxflow.linearize(f, x)[1](fnp.ones(3)),
    "hessian": lambda f: fxflow.hessian(f),
    "vmap": lambda f: lambda x: fxflow.vmap(f)(fnp.stack([x, -x])),
    "vmap-grad": lambda f: lambda x: fxflow.vmap(fxflow.grad(f))(fnp.stack([x, -x])),
    "jit-vmap": lambda f: lambda x: fxflow.jit(fxflow.vmap(f))(fnp.stack([x, -x])),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("f", PURE, ids=lambda f: f.__name__)
def test_references_inside(f, transform) -> None:
    apply = TRANSFORMS[transform]
    found, want = (fxflow.tree.leaves(apply(g)(fnp.asarray(X))) for g in (f, PURE[f]))
    for a, b in zip(found, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_plumbing_through_derivatives() -> None:
    log = new_ref(0.0)

    def f(x, r):
        y = fnp.sin(x)
        r[...] += lax.stop_gradient(y)
        return 2 * y

    for way in (
        fxflow.grad(f),
        fxflow.jit(fxflow.grad(f)),
        fxflow.grad(fxflow.jit(f)),
        fxflow.grad(lambda x, r: fxflow.checkpoint(f)(x, r)),
        lambda x, r: fxflow.vjp(lambda x: f(x, r), x)[1](1.0)[0],
    ):
        log[...] = 1.0
        assert way(1.0, log) == pytest.approx(2 * np.cos(1.0))
        assert log[...] == pytest.approx(1 + np.sin(1.0))
    with pytest.raises(ArgumentError, match=r"argument r of f is Ref\{"):
        fxflow.grad(f, argnums=1)(1.0, log)


def test_plumbing_through_loops() -> None:
    def f(w, stats):
        def body(c, x):
            h = fnp.tanh(c * w + x)
            stats[...] += lax.stop_gradient(h)
            return h, None

        return lax.scan(body, 0.0, fnp.arange(4.0))[0]

    s = new_ref(0.0)
    with fxflow.disable_jit():
        want = fxflow.value_and_grad(f)(0.5, s), s[...]
    for way in (
        fxflow.value_and_grad(f),
        fxflow.jit(fxflow.value_and_grad(f)),
        fxflow.value_and_grad(fxflow.jit(f)),
    ):
        s[...] = 0.0
        found = way(0.5, s), s[...]
        np.testing.assert_allclose(
            fxflow.tree.leaves(found), fxflow.tree.leaves(want), rtol=1e-4
        )


def test_transposed() -> None:
    def f(x):
        r = new_ref(x)
        r[0] = 2 * r[0]
        return r[...]

    x = fnp.ones(3)
    assert fxflow.linear_transpose(f, x)(x)[0].tolist() == [2, 1, 1]


def test_forwards_along_a_reference() -> None:
    r, t = new_ref(3.0), new_ref(1.0)

    def f(r):
        r[...] = r[...] ** 2
        return 2 * r[...]

    y, dy = fxflow.jvp(f, (r,), (t,))
    assert (y, dy, r[...], t[...]) == (18, 12, 9, 6)
    with pytest.raises(ArgumentError, match="the tangent of a reference"):
        fxflow.jvp(f, (r,), (1.0,))


def test_a_gradient_put_into_a_reference() -> None:
    @fxflow.custom_vjp
    def stash(r, x):
        return x

    def backward(r, ct):
        r[...] = ct
        return None, ct

    stash.defvjp(lambda r, x: (x, r), backward)

    def f(x, r):
        return fnp.sin(stash(r, x * 2))

    r = new_ref(0.0)
    for way in (
        fxflow.grad(f),
        fxflow.jit(fxflow.grad(f)),
        fxflow.grad(fxflow.jit(f)),
        fxflow.jit(fxflow.grad(fxflow.jit(f))),
    ):
        r[...] = 0.0
        assert way(1.0, r) == pytest.approx(2 * np.cos(2.0), rel=1e-5)
        assert r[...] == pytest.approx(np.cos(2.0), rel=1e-5)
    assert f(1.0, r) == pytest.approx(np.sin(2.0))
    assert fxflow.jit(f)(1.0, r) == pytest.approx(np.sin(2.0))
    with pytest.raises(NotDifferentiableError, match="inside of the vmap"):
        fxflow.grad(lambda x: fxflow.vmap(lambda y: f(y, r))(x).sum())(fnp.ones(2))


# -- many slices, many devices ---------------------------------------------------------


def test_mapped_references() -> None:
    def f(r, x):
        r[...] += x
        return r[0]

    want = np.zeros((3, 2)) + X[:, None]
    for way in (fxflow.vmap(f), fxflow.jit(fxflow.vmap(f))):
        r = new_ref(fnp.zeros((3, 2)))
        assert way(r, fnp.asarray(X)).tolist() == X.tolist()
        assert r[...].tolist() == want.tolist()
    r = new_ref(fnp.zeros((2, 3)))
    fxflow.vmap(f, in_axes=(1, 0))(r, fnp.asarray(X))
    assert r[...].tolist() == want.T.tolist()
    with pytest.raises(ArgumentError, match="twice, as a and b"):
        fxflow.vmap(lambda a, b: a[0])(r, r)


def test_captured_references_are_read_by_mapped_functions() -> None:
    r = new_ref(fnp.asarray(X))
    i = fnp.array([2, 0])
    assert fxflow.vmap(lambda i: r[i])(i).tolist() == [3, 1]
    assert fxflow.vmap(lambda q, i: q[i], in_axes=(None, 0))(r, i).tolist() == [3, 1]


@pytest.mark.parametrize("f", FLOWS, ids=lambda f: f.__name__)
def test_control_flow_vectorized(f) -> None:
    xs = fnp.array([0.5, 1.5])
    batch = new_ref(fnp.stack([X, X + 1]))
    out = fxflow.jit(fxflow.vmap(f))(batch, xs)
    for i, start in enumerate((X, X + 1)):
        r = new_ref(start)
        want = f(r, xs[i])
        np.testing.assert_allclose(batch[i], r[...], rtol=1e-6)
        for a, b in zip(fxflow.tree.leaves(out), fxflow.tree.leaves(want), strict=True):
            np.testing.assert_allclose(a[i], b, rtol=1e-6)


def test_shard_map() -> None:
    mesh = fxflow.Mesh(fxflow.devices()[:2], ("i",))
    spec = fxflow.P("i")
    r = new_ref(fnp.zeros(4))

    def f(r, x):
        r[...] += x * lax.axis_index("i").astype("float32")
        return r[0][None]

    mapped = fxflow.shard_map(f, mesh=mesh, in_specs=(spec, spec), out_specs=spec)
    assert mapped(r, fnp.ones(4)).tolist() == [0, 1]
    assert r[...].tolist() == [0, 0, 1, 1]
    assert fxflow.jit(mapped)(r, fnp.ones(4)).tolist() == [0, 2]
    assert r[...].tolist() == [0, 0, 2, 2]


def test_shard_map_captures_references() -> None:
    mesh = fxflow.Mesh(fxflow.devices()[:2], ("i",))
    total = new_ref(0.0)

    @fxflow.jit
    def f(x):
        @fxflow.jit
        def count(x):
            seen = new_ref(lax.axis_index("i"))
            seen[...] += 1
            return seen[...].astype("float32") * x

        total[...] += lax.psum(count(x).sum(), "i")
        return x

    spec = fxflow.P("i")
    g = fxflow.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec)
    g(fnp.ones(4))
    fxflow.jit(g)(fnp.ones(4))
    assert total[...] == 12

    def differs(x):
        total[...] = x[0]
        return x

    with pytest.raises(ArgumentError, match="a captured reference"):
        fxflow.shard_map(differs, mesh=mesh, in_specs=spec, out_specs=spec)(fnp.ones(4))


def test_dtype_at_a_write_in_a_loop() -> None:
    r = new_ref(fnp.zeros(3, "int32"))
    with pytest.raises(DtypeError, match="holds i32"):
        lax.fori_loop(0, 3, lambda i, c: set(r, i, c), 1.0)


def test_explicit_axes() -> None:
    explicit = fxflow.sharding.AxisType.Explicit
    mesh = fxflow.make_mesh((2,), ("x",), axis_types=explicit)
    with fxflow.set_mesh(mesh):
        ones = fxflow.sharding.reshard(fnp.ones(8), fxflow.P("x"))
        r = new_ref(ones)
        assert str(fxflow.typeof(r)) == "Ref{f32[8@x]}"
        fxflow.jit(lambda r, x: set(r, None, r[...] + x))(r, ones)
        assert str(fxflow.typeof(r[...])) == "f32[8@x]" and r[...].tolist() == [2] * 8
        with pytest.raises(fxflow.errors.ShardingTypeError, match=r"holds f32\[8@x\]"):
            r[...] = fnp.zeros(8)
