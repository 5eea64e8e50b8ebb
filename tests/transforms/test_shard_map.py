"""`shard_map`: against the function of whole arrays, alone and under transforms."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import NamedSharding, P, lax, shard_map
from fxflow.devices import PlacementError
from fxflow.errors import ArgumentError, ShapeError

MESH = fxflow.make_mesh((4, 2), ("x", "y"))
RNG = np.random.default_rng(0)
A = RNG.normal(size=(8, 8)).astype(np.float32)
B = RNG.normal(size=(8, 4)).astype(np.float32)


@shard_map(mesh=MESH, in_specs=(P("x", "y"), P("y")), out_specs=P("x"))
def product(a, b):
    return lax.psum(a @ b, "y")


@shard_map(mesh=MESH, in_specs=(P("x", "y"), P("y")), out_specs=P("x"))
def bent(a, b):
    return fnp.tanh(lax.psum(fnp.sin(a) @ b, "y"))


def bent_whole(a, b):
    return fnp.tanh(fnp.sin(a) @ b)


def close(got, want, tol=2e-5):
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol)


def test_eager_and_jitted():
    for f in (product, fxflow.jit(product)):
        got = f(A, B)
        close(got, A @ B)
        assert got.sharding.is_equivalent_to(NamedSharding(MESH, P("x")), 2)
    with fxflow.disable_jit():
        close(product(A, B), A @ B)


def test_derivatives_are_those_of_the_whole():
    weights = RNG.normal(size=(8, 4)).astype(np.float32)

    def loss(f):
        return lambda a, b: fnp.sum(f(a, b) * weights)

    got = fxflow.grad(loss(bent), (0, 1))(A, B)
    want = fxflow.grad(loss(bent_whole), (0, 1))(A, B)
    for g, w in zip(got, want, strict=True):
        close(g, w)
    jitted = fxflow.jit(fxflow.grad(loss(bent), (0, 1)))(A, B)
    for g, w in zip(jitted, want, strict=True):
        close(g, w)
    _, got_t = fxflow.jvp(bent, (A, B), (A, B))
    _, want_t = fxflow.jvp(bent_whole, (A, B), (A, B))
    close(got_t, want_t)


def test_second_derivatives():
    def curvature(f):
        slope = fxflow.grad(lambda a, b: fnp.sum(f(a, b) ** 2))
        return fxflow.grad(lambda a, b: fnp.sum(slope(a, b) * A))(A, B)

    close(curvature(bent), curvature(bent_whole), 2e-4)


@pytest.mark.parametrize("in_axes", [(0, None), (None, 1), (1, 0)])
def test_vmap_agrees_with_the_whole_arrays(in_axes):
    a = np.stack([A, A + 1, A * 2], in_axes[0] or 0) if in_axes[0] is not None else A
    b = np.stack([B, B - 1, B], in_axes[1]) if in_axes[1] is not None else B
    got = fxflow.vmap(bent, in_axes)(a, b)
    close(got, fxflow.vmap(bent_whole, in_axes)(a, b))


def test_in_scan_and_remat_and_cond():
    def step(c, _):
        return lax.cond(c[0, 0] > 100, lambda v: v, fxflow.checkpoint(layer), c), None

    def layer(c):
        return bent(c, B) @ B.T / 8

    def whole(c):
        return fnp.tanh(fnp.sin(c) @ B) @ B.T / 8

    def run(c):
        return lax.scan(step, c, None, length=3)[0]

    close(run(fnp.asarray(A)), whole(whole(whole(A))))
    slope = fxflow.grad(lambda c: fnp.sum(run(c)))(fnp.asarray(A))
    close(slope, fxflow.grad(lambda c: fnp.sum(whole(whole(whole(c)))))(fnp.asarray(A)))


def test_named_axes_and_captured_values():
    offset = fnp.arange(4.0)

    @shard_map(mesh=MESH, in_specs=P("x"), out_specs=(P("x"), P(), P("x", "y")))
    def f(x):
        assert lax.axis_size(("x", "y")) == 8
        at = fnp.stack([lax.axis_index("x"), lax.axis_index(("x", "y"))])
        total = lax.psum(x.sum(0), "x")
        return x + offset, total, at[:, None]

    shifted, total, at = f(B)
    close(shifted, B + np.arange(4))
    close(total, B.sum(0))
    assert at.tolist() == [
        *(row for x in range(4) for row in ([x, x], [2 * x, 2 * x + 1]))
    ]


def test_some_axes_are_the_compilers():
    @shard_map(mesh=MESH, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    def f(a):
        assert a.shape == (2, 8)
        inner = fxflow.jit(lambda v: v + lax.axis_index("x"))
        a = lax.with_sharding_constraint(a, NamedSharding(MESH, P(None, "y")))
        return inner(a) * lax.pmean(a, "x")

    mean = np.tile(A.reshape(4, 2, 8).mean(0), (4, 1))
    want = (A + np.arange(8)[:, None] // 2) * mean
    close(f(A), want)
    close(fxflow.jit(f)(fxflow.device_put(A, NamedSharding(MESH, P("x", "y")))), want)
    slope = fxflow.grad(lambda a: fnp.sum(f(a)))(fnp.asarray(A))
    close(
        slope,
        fxflow.grad(
            lambda a: fnp.sum(
                (a + fnp.arange(8)[:, None] // 2)
                * fnp.tile(a.reshape(4, 2, 8).mean(0), (4, 1))
            )
        )(fnp.asarray(A)),
    )


def test_trees_and_the_current_mesh():
    f = shard_map(
        lambda d, k: {"s": d["a"] + k, "t": (d["b"],)},
        in_specs=({"a": P("x"), "b": P()}, P()),
        out_specs={"s": P("x"), "t": P()},
    )
    with fxflow.set_mesh(MESH):
        out = f({"a": A, "b": B}, 2.0)
    close(out["s"], A + 2)
    close(out["t"][0], B)
    with pytest.raises(PlacementError, match="no current mesh"):
        f({"a": A, "b": B}, 3.0)


def test_keys_are_divided():
    keys = fxflow.random.split(fxflow.random.key(0), 8)
    f = shard_map(
        lambda k: fxflow.vmap(fxflow.random.uniform)(k),
        mesh=MESH,
        in_specs=P("x"),
        out_specs=P("x"),
    )
    close(f(keys), fxflow.vmap(fxflow.random.uniform)(keys))


def test_derivatives_inside():
    """By what devices share they are summed; unchecked, they are of one device."""

    def slopes(w, x):
        own = fxflow.grad(lambda w: fnp.sum(w * x))(w)
        joint = fxflow.grad(lambda w: lax.psum(fnp.sum(w * x), "x"))(w)
        return fnp.stack([own, joint])[None]

    specs = {"mesh": MESH, "in_specs": (P(), P("x")), "out_specs": P("x")}
    w, x = fnp.float32(2.0), np.arange(4.0, dtype=np.float32)
    assert shard_map(slopes, **specs)(w, x).tolist() == [[6, 6]] * 4
    unchecked = shard_map(slopes, check=False, **specs)(w, x)
    assert unchecked.tolist() == [[i, 4 * i] for i in range(4)]


def test_callbacks_see_the_parts():
    seen = []
    f = shard_map(
        lambda a: fxflow.pure_callback(lambda v: seen.append(v.shape) or v * 2, a, a),
        mesh=MESH,
        in_specs=P("x", "y"),
        out_specs=P("x", "y"),
    )
    close(f(A), A * 2)
    assert set(seen) == {(2, 4)}


def passed_on(a):
    same = lax.psum(a, "x")
    return lax.scan(lambda c, v: ((c[0] + v, c[1]), v), (a[0], same), a)[0][1]


def test_results_that_differ_by_device_are_refused():
    def spec_of(f, **options):
        return shard_map(f, mesh=MESH, in_specs=P("x"), out_specs=P(), **options)

    same = [
        lambda a: lax.psum(a, "x"),
        lambda a: lax.all_gather(a, "x", to="invarying"),
        lambda a: fxflow.jit(lambda v: lax.pmax(v, "x"))(a),
        lambda a: fnp.zeros(3),
        lambda a: lax.cond(True, lambda v: lax.psum(v, "x"), fnp.zeros_like, a),
        fxflow.checkpoint(lambda a: lax.pmean(fnp.sin(a), ("x", "y"))),
        passed_on,
    ]
    for f in same:
        spec_of(f)(A)
    differing = [
        lambda a: a,
        lambda a: lax.all_gather(a, "x"),
        lambda a: lax.psum(a, "y"),
        lambda a: lax.axis_index("x") * fnp.ones(2),
        lambda a: lax.ppermute(lax.psum(a, "x"), "x", [(0, 1)]),
        lambda a: lax.scan(lambda c, v: (c + v, c), fnp.zeros(8), a)[0],
        lambda a: lax.fori_loop(0, 2, lambda i, c: c + lax.axis_index("x"), 0),
        lambda a: lax.cond(a[0, 0] > 0, fnp.sin, fnp.cos, 1.0),
    ]
    for f in differing:
        with pytest.raises(ArgumentError, match="may vary along the mesh axis 'x'"):
            spec_of(f)(A)
        spec_of(f, check=False)(A)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: shard_map(lambda a: a, mesh=MESH, in_specs=P("x")),
            ArgumentError,
            "out_specs is missing",
        ),
        (
            lambda: shard_map(
                lambda a: a, mesh=MESH, in_specs=P("x"), out_specs=P("x")
            )(A[:3]),
            ShapeError,
            r"argument a is f32\[3,8\]: its axis 0 cannot be divided into 4",
        ),
        (
            lambda: shard_map(
                lambda a: a, mesh=MESH, in_specs=P(None, None, "x"), out_specs=P()
            )(A),
            ShapeError,
            "fewer axes than",
        ),
        (
            lambda: shard_map(lambda a: a, mesh=MESH, in_specs=P("q"), out_specs=P())(
                A
            ),
            PlacementError,
            "no axis 'q'",
        ),
        (
            lambda: shard_map(
                lambda a: a,
                mesh=MESH,
                in_specs=P("y"),
                out_specs=P("y"),
                axis_names={"x"},
            )(A),
            ArgumentError,
            "names the axis 'y', which axis_names leaves",
        ),
        (
            lambda: shard_map(
                lambda a: a, mesh=MESH, in_specs=P(), out_specs=P(), axis_names={"z"}
            )(A),
            ArgumentError,
            "axis_names has 'z'",
        ),
        (
            lambda: shard_map(lambda a: a, mesh=MESH, in_specs=3, out_specs=P())(A),
            ArgumentError,
            "must hold PartitionSpecs, got 3",
        ),
        (
            lambda: shard_map(lambda a: "a", mesh=MESH, in_specs=P(), out_specs=P())(A),
            ArgumentError,
            "returned",
        ),
        (
            lambda: shard_map(
                lambda a: lax.psum(a, "z"), mesh=MESH, in_specs=P(), out_specs=P()
            )(A),
            NameError,
            "unbound axis name 'z': axes in scope are 'x', 'y'",
        ),
        (
            lambda: shard_map(
                lambda a: a, mesh=MESH, in_specs=P("x"), out_specs=P("x")
            )(fxflow.device_put(A, "cpu:3")),
            ArgumentError,
            "committed to cpu:3; move it",
        ),
    ],
)
def test_specs_and_shapes_that_do_not_fit_are_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_the_graph_prints_and_checks():
    graph = fxflow.make_graph(bent)(A, B)
    assert "shard_map[mesh=Mesh('x': 4, 'y': 2)" in str(graph)
    graph.check()


# -- arrays without elements -----------------------------------------------------------


ROWS, PAIR = P(("x", "y")), P("x", "y")
EMPTY = np.zeros((0, 4), np.float32)
NARROW = np.zeros((16, 0), np.float32)
FULL = np.arange(16, dtype=np.float32)


def on_rows(f, ins, outs, **more):
    return shard_map(f, mesh=MESH, in_specs=ins, out_specs=outs, **more)


@pytest.mark.parametrize("wrap", [lambda f: f, fxflow.jit])
def test_operands_without_elements(wrap):
    def beside(e, n, f):
        return f * 2 + e.sum() + n.sum(1)

    f = wrap(on_rows(beside, (ROWS, ROWS, ROWS), ROWS))
    close(f(EMPTY, NARROW, FULL), FULL * 2)
    f = wrap(on_rows(beside, (P(), ROWS, ROWS), ROWS))
    close(f(EMPTY, NARROW, FULL), FULL * 2)
    f = wrap(on_rows(lambda e: lax.psum(e.sum() + 1, ("x", "y")), (ROWS,), P()))
    close(f(EMPTY), 8)


@pytest.mark.parametrize("wrap", [lambda f: f, fxflow.jit])
def test_results_without_elements(wrap):
    def gives(f):
        return f[:0], f * 2, fnp.zeros((2, 0)), lax.psum(f, ("x", "y"))

    outs = wrap(on_rows(gives, (ROWS,), (ROWS, ROWS, P("y", "x"), P())))(FULL)
    specs = [v.sharding.spec for v in outs]
    assert specs == [ROWS, ROWS, P("y", "x"), P()]
    assert [v.shape for v in outs] == [(0,), (16,), (4, 0), (2,)]
    close(outs[1], FULL * 2)
    close(outs[3], FULL.reshape(8, 2).sum(0))
    only = wrap(on_rows(lambda f: fnp.zeros((1, 0)), (ROWS,), ROWS))(FULL)
    assert (only.shape, only.sharding.spec) == ((8, 0), ROWS)
    none = wrap(on_rows(lambda: (fnp.zeros((0, 2)), fnp.ones(1)), (), ROWS))()
    assert [v.shape for v in none] == [(0, 2), (8,)]


@pytest.mark.parametrize("dtype", ["bool", "int4", "complex64", "float8_e4m3fn"])
def test_operands_and_results_without_elements(dtype):
    empty = fnp.zeros((0, 8), dtype)
    f = on_rows(lambda e, f: (f + 1, e.T, e), (PAIR, ROWS), (ROWS, P("y", "x"), PAIR))
    f = fxflow.jit(f, donate_argnums=(0, 1))
    full = fxflow.device_put(fnp.array(FULL), NamedSharding(MESH, ROWS))
    add, turned, same = f(fxflow.device_put(empty, NamedSharding(MESH, P())), full)
    close(add, FULL + 1)
    assert full.is_deleted()
    assert (turned.shape, turned.dtype) == ((8, 0), empty.dtype)
    assert (same.shape, same.dtype) == ((0, 8), empty.dtype)
    assert [turned.sharding.spec, same.sharding.spec] == [P("y", "x"), PAIR]
    close(f(same, add)[0], FULL + 2)


def test_keys_without_elements():
    keys = fxflow.random.split(fxflow.random.key(0), (0,))
    got, full = on_rows(lambda k, f: (k, f), (ROWS, ROWS), (ROWS, ROWS))(keys, FULL)
    assert got.shape == (0,)
    assert got.dtype == keys.dtype
    close(full, FULL)


def test_collectives_of_nothing():
    ring = [(i, (i + 1) % 4) for i in range(4)]

    def all_of_them(e, f):
        return (
            lax.all_gather(e, "x", tiled=True),
            lax.psum_scatter(e, "x", scatter_dimension=0, tiled=True),
            lax.all_to_all(e, "x", 0, 1, tiled=True),
            lax.ppermute(e, "x", ring),
            lax.pmax(e, ("x", "y")),
            lax.psum(f, ("x", "y")),
        )

    outs = on_rows(all_of_them, (P("x"), ROWS), P(), check=False)(EMPTY, FULL)
    assert [v.shape for v in outs[:5]] == [(0, 4), (0, 4), (0, 16), (0, 4), (0, 4)]
    close(outs[5], FULL.reshape(8, 2).sum(0))


def test_loops_branches_and_callbacks_carry_nothing():
    def carried(e, f):
        _, e, f = lax.while_loop(
            lambda c: c[0] < 3,
            lambda c: (c[0] + 1, c[1] * 2, c[2] + c[1].sum()),
            (0, e, f),
        )
        f, stacked = lax.scan(lambda c, v: (c + v.sum(), c[:0]), f, fnp.zeros((3, 0)))
        e, f = lax.cond(
            lax.axis_index("x") < 2,
            lambda e, f: (e, f),
            lambda e, f: (e + 1, -f),
            e,
            f,
        )
        f = fxflow.pure_callback(lambda e, f: f + e.sum(), fxflow.typeof(f), e, f)
        return e, f, stacked

    outs = on_rows(carried, (ROWS, ROWS), (ROWS, ROWS, P(None, ROWS[0])), check=False)(
        EMPTY, FULL
    )
    close(outs[1], np.where(FULL < 8, FULL, -FULL))
    assert outs[0].shape == (0, 4)
    assert outs[2].shape == (3, 0)


def test_manual_over_some_axes_with_nothing():
    def part(e, n, f):
        return e * 2, n + lax.axis_index("x"), lax.psum(f, "x")

    f = on_rows(part, (P("x"), P("x"), P("x")), (P("x"), P("x"), P()), axis_names={"x"})
    for g in (f, fxflow.jit(f)):
        e, n, total = g(EMPTY, NARROW, FULL)
        assert (e.shape, n.shape) == ((0, 4), (16, 0))
        close(total, FULL.reshape(4, 4).sum(0))


def test_derivatives_with_nothing():
    def both(e, f):
        return fnp.sin(e), lax.psum(fnp.sin(f) + fnp.sum(fnp.sin(e)), ("x", "y"))

    f = on_rows(both, (ROWS, ROWS), (ROWS, P()))

    def loss(e, x):
        return sum(fnp.sum(v) for v in f(e, x))

    for derive in (fxflow.grad, lambda *a: fxflow.jit(fxflow.grad(*a))):
        de, df = derive(loss, (0, 1))(EMPTY, FULL)
        assert de.shape == (0, 4)
        close(df, np.cos(FULL))
    outs, tangents = fxflow.jvp(f, (EMPTY, FULL), (EMPTY, FULL))
    close(outs[1], np.sin(FULL).reshape(8, 2).sum(0))
    close(tangents[1], (np.cos(FULL) * FULL).reshape(8, 2).sum(0))
    second = fxflow.hessian(loss, (0, 1))(EMPTY, FULL)
    close(second[1][1], np.diag(-np.sin(FULL)))
    assert second[0][1].shape == (0, 4, 16)
    again = fxflow.grad(fxflow.checkpoint(loss), 1)(EMPTY, FULL)
    close(again, np.cos(FULL))


def test_vectorized_over_and_with_nothing():
    f = on_rows(
        lambda e, f: (e * 2, lax.psum(f, ("x", "y")), f[:0]),
        (ROWS, ROWS),
        (ROWS, P(), ROWS),
    )
    e, total, none = fxflow.vmap(f)(np.zeros((3, 0, 4)), np.stack([FULL] * 3))
    assert (e.shape, none.shape) == ((3, 0, 4), (3, 0))
    close(total, np.stack([FULL.reshape(8, 2).sum(0)] * 3))
    # The mapped axis itself is empty.
    e, total, none = fxflow.vmap(f)(np.zeros((0, 16)), np.zeros((0, 16)))
    assert [v.shape for v in (e, total, none)] == [(0, 16), (0, 2), (0, 0)]
    e, total, none = fxflow.vmap(f, in_axes=(0, None))(np.zeros((0, 16)), FULL)
    assert e.shape == (0, 16)


def test_unchecked_derivatives_leave_axes_that_nothing_names():
    mesh = fxflow.make_mesh((4, 2), ("x", "y"))

    @fxflow.shard_map(mesh=mesh, in_specs=(P("y"), P()), out_specs=P(), check=False)
    def total(v, w):
        return fxflow.lax.psum(fnp.sum(fnp.sin(v) * w), "y")

    a = np.arange(32.0, dtype=np.float32).reshape(8, 4)
    for wrap in (lambda f: f, fxflow.jit):
        per = wrap(
            fxflow.vmap(fxflow.grad(total, (0, 1)), (0, None), spmd_axis_name="x")
        )
        by_v, by_w = per(a, np.float32(2))
        np.testing.assert_allclose(by_v, 2 * np.cos(a), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(by_w, np.sin(a).sum(1), rtol=1e-4, atol=1e-5)
