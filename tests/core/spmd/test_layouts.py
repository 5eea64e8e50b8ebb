"""Shardings in types: what each kind of operation makes of them; compared with JAX.

The programs and their types, or that there is none, are those of JAX 0.10.2, but where
an operand that is not divided meets one that is: here they go together everywhere.
"""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import NamedSharding, P, lax, typeof
from fxflow.errors import PlacementError, ShardingTypeError
from fxflow.sharding import AxisType, reshard


@pytest.fixture(autouse=True)
def mesh():
    explicit = fxflow.make_mesh((4, 2), ("x", "y"), axis_types=AxisType.Explicit)
    with fxflow.set_mesh(explicit):
        yield explicit


def put(shape, *spec, dtype="f4"):
    values = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    return fxflow.device_put(values, NamedSharding(fxflow.get_mesh(), P(*spec)))


def _operands():
    return {
        "a": put((8, 4), "x", "y"),
        "b": put((8, 4), "x"),
        "c": put((8, 4)),
        "d": put((8, 4), "y"),
        "f": put((4, 8), "y", "x"),
        "g": put((4, 8), None, "x"),
        "m": put((4, 8), None, "y"),
        "s": put((8, 4), None, "x"),
        "t": put((4, 8), "x"),
        "v": put((8,), "x"),
        "w": put((8,), "y"),
        "i": put((4,), dtype="i4"),
        "ix": put((8,), "x", dtype="i4"),
        "k": put((8, 4, 6), "x", "y"),
        "keys": reshard(fxflow.random.split(fxflow.random.key(0), 8), P("x")),
        "fnp": fnp,
        "lax": lax,
        "nn": fxflow.nn,
        "put": put,
        "P": P,
        "fxflow": fxflow,
    }


TYPES = """
a: f32[8@x,4@y]
c: f32[8,4]
put((8, 4), ("x", "y")): f32[8@(x,y),4]
a + a: f32[8@x,4@y]
a + c: f32[8@x,4@y]
a + b: f32[8@x,4@y]
b + d: error
a * 2.0: f32[8@x,4@y]
a + v[:, None]: f32[8@x,4@y]
fnp.where(a > 0, a, 0.0): f32[8@x,4@y]
a > c: bool[8@x,4@y]
a.astype("i4"): i32[8@x,4@y]
a.sum(): f32[]
a.sum(0): f32[4@y]
a.sum(1, keepdims=True): f32[8@x,1]
fnp.argmax(a, 0): i32[4@y]
a.var(axis=1): f32[8@x]
a.T: f32[4@y,8@x]
k.transpose(2, 0, 1): f32[6,8@x,4@y]
a.reshape(8, 2, 2): f32[8@x,2@y,2]
b.reshape(4, 2, 4): f32[4@x,2,4]
b.reshape(2, 4, 4): error
a.reshape(32): f32[32@(x,y)]
g.reshape(32): error
lax.reshape(a, (32,), out_sharding=P("x")): f32[32@x]
v[:, None]: f32[8@x,1]
fnp.broadcast_to(v, (3, 8)): f32[3,8@x]
fnp.concatenate([b, b], 1): f32[8@x,8]
fnp.concatenate([b, d], 1): error
fnp.stack([v, v]): f32[2,8@x]
fnp.pad(b, ((4, 4), (0, 0))): f32[16@x,4]
fnp.pad(b, ((1, 1), (0, 0))): error
b[:, 1:3]: f32[8@x,2]
b[0:3]: error
b[0]: error
b[:, 0]: f32[8@x]
b[::-1]: f32[8@x,4]
lax.dynamic_slice(b, (0, 1), (8, 2)): f32[8@x,2]
lax.dynamic_update_slice(b, b[:, 0:2], (0, 1)): f32[8@x,4]
lax.dynamic_update_slice(b, c[:4], (0, 0)): error
s @ t: error
s @ put((4, 8)): f32[8,8]
b @ m: f32[8@x,8@y]
b @ g: error
fnp.dot(s, t, out_sharding=P("x")): f32[8@x,8]
fnp.einsum("ij,jk->ik", s, t, out_sharding=P()): f32[8,8]
fnp.einsum("ij,jk->ik", s, t): error
fnp.outer(v, w): f32[8@x,8@y]
fnp.cumsum(b, 1): f32[8@x,4]
fnp.cumsum(b, 0): error
fnp.sort(b, 1): f32[8@x,4]
fnp.sort(b, 0): error
lax.top_k(b, 2)[0]: f32[8@x,2]
fnp.arange(8, out_sharding=P("x")): i32[8@x]
fnp.zeros((8, 4), out_sharding=P("x")): f32[8@x,4]
fnp.ones_like(a): f32[8@x,4@y]
fxflow.random.normal(fxflow.random.key(0), (8,), out_sharding=P("x")): f32[8@x]
c[i]: f32[4,4]
b[i]: error
b.at[i].get(out_sharding=P()): f32[4,4]
b.at[ix].get(out_sharding=P("x")): f32[8@x,4]
fnp.take_along_axis(b, fnp.zeros((8, 1), "i4"), 1): f32[8@x,1]
b.at[i].set(1.0): error
b.at[i].set(1.0, out_sharding=P("x")): f32[8@x,4]
b.at[:, i].add(c): f32[8@x,4]
b.at[:, i].add(b): f32[8@x,4]
a.at[:, :].set(0.0): f32[8@x,4@y]
k.at[:, :, i].add(1.0): f32[8@x,4@y,6]
c.at[ix].add(b): error
fxflow.vmap(lambda r, j: r.at[j].max(1.0))(b, ix % 4): f32[8@x,4]
nn.softmax(a): f32[8@x,4@y]
nn.silu(a): f32[8@x,4@y]
nn.one_hot(ix, 4): f32[8@x,4]
fnp.fft.fft(b): c64[8@x,4]
lax.conv(put((8, 2, 6), "x"), put((4, 2, 3)), (1,), "SAME"): f32[8@x,4,6]
fnp.linalg.cholesky(put((8, 4, 4), "x")): f32[8@x,4,4]
fnp.linalg.svd(put((8, 4, 4), "x"), compute_uv=False): f32[8@x,4]
fnp.linalg.det(put((8, 4, 4), "x")): f32[8@x]
fnp.linalg.qr(put((8, 4, 4), None, "x")): error
lax.reduce_window(k, 0.0, lax.add, (1, 1, 2), (1, 1, 2), "VALID"): f32[8@x,4@y,3]
lax.reduce_window(k, 0.0, lax.add, (2, 1, 1), (1, 1, 1), "VALID"): error
fxflow.vmap(lambda q: fxflow.random.uniform(q, (4,)))(keys): f32[8@x,4]
lax.approx_max_k(b, 2)[1]: i32[8@x,2]
lax.approx_max_k(s, 2): error
lax.linear_recurrence(b, b, axis=1): f32[8@x,4]
lax.linear_recurrence(b, b, axis=0): error
lax.linalg.tridiagonal_solve(b, b, b, b[..., None]): f32[8@x,4,1]
lax.linalg.tridiagonal_solve(s, s, s, s[..., None]): error
lax.reduce((b, b), (0.0, 0.0), lambda p, q: (p[0] + q[0], p[1]), (1,))[1]: f32[8@x]
fnp.split(b, 2, axis=1)[0]: f32[8@x,2]
fnp.roll(b, 1, 1): f32[8@x,4]
lax.optimization_barrier(a): f32[8@x,4@y]
"""
CASES = [line.rsplit(": ", 1) for line in TYPES.strip().splitlines()]


@pytest.fixture(scope="module")
def operands():
    explicit = fxflow.make_mesh((4, 2), ("x", "y"), axis_types=AxisType.Explicit)
    with fxflow.set_mesh(explicit):
        return _operands()


@pytest.mark.parametrize(("program", "expected"), CASES, ids=[c for c, _ in CASES])
def test_result_types_name_the_layout_of_the_array(program, expected, operands):
    try:
        out = eval(program, dict(operands))
    except ShardingTypeError as error:
        assert expected == "error", error
        return
    assert str(typeof(out)).replace("~", "") == expected
    # What the type says is how the array lies.
    aval = typeof(out)
    spec = P(*[None] * aval.ndim) if aval.layout is None else aval.layout.spec
    assert out.sharding.is_fully_replicated or out.sharding.spec == spec


def test_messages_name_the_axes_and_the_remedy(operands):
    def said(program):
        with pytest.raises(ShardingTypeError) as caught:
            eval(program, dict(operands))
        return str(caught.value)

    assert said("b + d") == (
        "add of f32[8@x,4], f32[8@y,4]: operands are divided differently along axis 0: "
        "over 'x' and over 'y': reshard one of them (fxflow.sharding.reshard(x, "
        "P(...)))"
    )
    assert "say it with out_sharding=P(...)" in said("s @ t")
    assert "would divide two axes of the result" in said("b @ g")
    assert "auto_axes" in said("lax.approx_max_k(s, 2)")
    assert "x.at[...].get(out_sharding=P(...))" in said("b[i]")


def test_jit_sees_and_keeps_types(operands):
    a, b, d = operands["a"], operands["b"], operands["d"]
    seen = []

    @fxflow.jit
    def f(x):
        seen.append(str(typeof(x)))
        return fxflow.jit(fnp.cos)(x).T

    assert str(typeof(f(a))) == "f32[4@y,8@x]"
    assert str(typeof(f(b))) == "f32[4,8@x]"
    assert seen == ["f32[8@x,4@y]", "f32[8@x,4]"]
    with pytest.raises(ShardingTypeError, match="divided differently"):
        fxflow.jit(fnp.add)(b, d)
    assert str(typeof(fxflow.jit(fnp.zeros_like)(a))) == "f32[8@x,4@y]"
    assert str(fxflow.eval_shape(f, a)) == "ShapeDtypeStruct(f32[4@y,8@x])"
    assert str(fxflow.jit(f).lower(a).out_info.sharding.spec) == str(P("y", "x"))


def test_cotangents_are_divided_as_values(operands):
    b, c = operands["b"], operands["c"]
    losses = [
        lambda x: x.sum(),
        lambda x: (x * x * b).sum(),
        lambda x: fnp.sin(x @ operands["m"]).sum(),
        lambda x: (reshard(x, P()) * c).sum(),
        lambda x: (x.reshape(4, 2, 4) ** 2).sum(),
        lambda x: nn_loss(x),
        lambda x: x.at[operands["i"]].get(out_sharding=P()).sum(),
    ]

    def nn_loss(x):
        return (fxflow.nn.softmax(x) * b).sum()

    for loss in losses:
        plain = fxflow.grad(loss)(b)
        jitted = fxflow.jit(fxflow.grad(loss))(b)
        assert str(typeof(plain)) == str(typeof(jitted)) == "f32[8@x,4]"
        np.testing.assert_allclose(plain, jitted, rtol=1e-5)
    weights = put((4, 4))
    slope = fxflow.grad(lambda w: ((b @ w - c) ** 2).mean())(weights)
    assert str(typeof(slope)) == "f32[4,4]"
    expected = 2 / 32 * b.__array__().T @ (b.__array__() @ weights.__array__() - c)
    np.testing.assert_allclose(slope, expected, rtol=1e-5)


def test_vmap_keeps_the_layout_of_the_mapped_axis(operands):
    b, d = operands["b"], operands["d"]
    assert str(typeof(fxflow.vmap(lambda r: r.sum())(b))) == "f32[8@x]"
    assert str(typeof(fxflow.vmap(fxflow.jit(lambda r: r * 2))(b))) == "f32[8@x,4]"
    assert str(typeof(fxflow.vmap(lambda r: reshard(r, P("y")))(b))) == "f32[8@x,4@y]"
    slope = fxflow.vmap(fxflow.grad(lambda r: (r * r).sum()))(b)
    assert str(typeof(slope)) == "f32[8@x,4]"
    with pytest.raises(ShardingTypeError, match="mapped axes of add are divided diff"):
        fxflow.vmap(fnp.add)(b, d)


def test_loops_and_branches(operands):
    a, b = operands["a"], operands["b"]
    assert str(typeof(lax.fori_loop(0, 3, lambda i, x: x * 2, a))) == "f32[8@x,4@y]"
    xs = put((8, 4), None, "y")
    ys = lax.scan(lambda c, x: (c + x, c), put((4,), "y"), xs)[1]
    assert str(typeof(ys)) == "f32[8,4@y]"
    with pytest.raises(ShardingTypeError, match="whole along their leading axis"):
        lax.scan(lambda c, x: (c + x, c), put((4,)), b)
    with pytest.raises(ShardingTypeError, match="is divided as it comes in"):
        lax.scan(lambda c, x: (reshard(c, P("y")), c), put((4,), "x"), None, length=2)
    with pytest.raises(ShardingTypeError, match="branches must return one type"):
        lax.cond(a.sum() > 0, lambda x: x, lambda x: reshard(x, P("y")), a)
    # What is not divided goes with what is.
    wider = lax.scan(lambda c, x: (reshard(c, P("y")), c), put((4,)), None, length=2)
    assert str(typeof(wider[0])) == "f32[4@y]"
    either = lax.cond(a.sum() > 0, lambda x: x, lambda x: reshard(x, P()), a)
    assert str(typeof(either)) == "f32[8@x,4@y]"


def test_shard_map(operands):
    a = operands["a"]
    double = fxflow.shard_map(
        lambda x: lax.psum(x, "x"), in_specs=P("x", "y"), out_specs=P(None, "y")
    )
    assert str(typeof(double(a))) == "f32[2,4@y]"
    # As the types say.
    local = fxflow.shard_map(lambda x: x * 2, out_specs=P("x", "y"))
    out = fxflow.jit(lambda x: local(x) + x)(a)
    assert str(typeof(out)) == "f32[8@x,4@y]"
    np.testing.assert_array_equal(out, 3 * a.__array__())


def test_constraints_do_not_change_types(operands):
    a = operands["a"]
    assert typeof(lax.with_sharding_constraint(a, P("x", "y"))) == typeof(a)
    with pytest.raises(ShardingTypeError, match=r"change it with fxflow\.sharding"):
        lax.with_sharding_constraint(a, P("y"))


def test_what_a_type_says_of_its_sharding(operands, mesh):
    sharding = typeof(operands["a"]).sharding
    assert sharding.spec == P("x", "y") and sharding.mesh == mesh.abstract_mesh
    assert typeof(operands["c"]).sharding.spec == P(None, None)
    assert str(typeof(reshard(operands["c"], sharding))) == "f32[8@x,4@y]"
    with fxflow.set_mesh(None):
        assert typeof(fnp.ones(3)).sharding is None
    mixed = fxflow.make_mesh(
        (4, 2), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto)
    )
    array = fxflow.device_put(np.ones((8, 4)), NamedSharding(mixed, P("x", "y")))
    assert str(typeof(array)) == "f32[8@x,4]"
    assert str(typeof(fnp.sin(array) @ array.T.sum(1))) == "f32[8@x]"
    struct = fxflow.ShapeDtypeStruct((8,), "f4", sharding=operands["v"].sharding)
    assert str(struct) == "ShapeDtypeStruct(f32[8@x])"


def test_meshes_do_not_mix(operands):
    other = fxflow.make_mesh((8,), ("x",), axis_types=AxisType.Explicit)
    there = fxflow.device_put(np.ones(8, "f4"), NamedSharding(other, P("x")))
    with pytest.raises(ShardingTypeError, match="over different meshes"):
        there + operands["v"]


# -- sums that are put off -------------------------------------------------------------

X = frozenset({"x"})


def _product(a, b, names=X):
    numbers = (((1,), (0,)), ((), ()))
    return lax.dot_general(a, b, numbers, out_sharding=P(None, None, unreduced=names))


def _whole(a, b):
    return lax.dot_general(a, b, (((1,), (0,)), ((), ())), out_sharding=P("x"))


@pytest.fixture
def sums(operands):
    """`u`: a product whose sum over `x` is put off; `r`: reduced over `x`."""
    s, t = operands["s"], operands["t"]
    found = {"u": _product(s, t), "r": reshard(put((8, 8)), P(reduced=X))}
    return {**operands, **found, "whole": np.asarray(s) @ np.asarray(t)}


SUMS = """
u: f32[8,8]{U:x}
r: f32[8,8]{R:x}
u + u: f32[8,8]{U:x}
u - u: f32[8,8]{U:x}
-u.T: f32[8,8]{U:x}
u * 2 / 3: f32[8,8]{U:x}
r * u: f32[8,8]{U:x}
u.sum(0): f32[8]{U:x}
u.sum(): f32[]{U:x}
u.reshape(64): f32[64]{U:x}
u.astype("bfloat16"): bf16[8,8]{U:x}
fnp.concatenate([u, u]): f32[16,8]{U:x}
lax.broadcast(u, (2,)): f32[2,8,8]{U:x}
lax.optimization_barrier((u, r))[0]: f32[8,8]{U:x}
fnp.einsum("ij,jk->ik", s, t, out_sharding=P(unreduced={"x"})): f32[8,8]{U:x}
fnp.matmul(s, t, out_sharding=P(unreduced={"x"})): f32[8,8]{U:x}
fxflow.vmap(lambda row: row + row)(u): f32[8,8]{U:x}
fxflow.sharding.reshard(u, P("x")): f32[8@x,8]
fxflow.sharding.reshard(u, P("y", unreduced={"x"})): f32[8@y,8]{U:x}
fxflow.sharding.reshard(u, P(unreduced={"y"})): f32[8,8]{U:y}
r + 1: f32[8,8]{R:x}
fnp.sin(r): f32[8,8]{R:x}
put((8, 8), "x") @ r: f32[8@x,8]
"""


@pytest.mark.parametrize("line", SUMS.strip().splitlines())
def test_sums_are_put_off_by_types(sums, line):
    source, kind = line.rsplit(": ", 1)
    assert str(typeof(eval(source, sums))) == kind


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("u * u", "mul of .*an operand is unreduced over {'x'}, and the operation on"),
        ("u + 1", "one operand is unreduced over {'x'}, and another one not: sum up"),
        ("u + r", "one operand is unreduced over {'x'}, and another one not"),
        ("u * c[:, :1]", "other one has to be reduced over it, or a number: reshard"),
        ("1 / u", "div of .*an operand is unreduced"),
        ("fnp.exp(u)", r"exp of f32\[8,8\]{U:x}: an operand is unreduced"),
        ("u.astype('i4')", "convert_element_type of .*an operand is unreduced"),
        ("u @ c", "dot_general of .*an operand is unreduced"),
        ("u[0]", "slice of .*an operand is unreduced"),
        ("fnp.pad(u, 1)", "pad of .*an operand is unreduced"),
        (
            "r + fxflow.sharding.reshard(r, P(reduced={'y'}))",
            "one operand is reduced over {'x'} and another one over {'y'}",
        ),
    ],
)
def test_what_is_not_linear_refuses_parts_of_a_sum(sums, source, message):
    with pytest.raises(ShardingTypeError, match=message):
        eval(source, sums)


def _all_reduces(function, *args):
    return fxflow.jit(function).lower(*args).compile().as_text().count(" all-reduce(")


def test_sums_are_made_once_and_right(sums):
    s, t, r = sums["s"], sums["t"], sums["r"]

    def twice(s, t, r):
        scaled = _product(s, t) * r / 2
        return reshard(_product(fnp.sin(s), t) - scaled.T.T, P("x"))

    got = fxflow.jit(twice)(s, t, r)
    want = np.sin(s) @ np.asarray(t) - sums["whole"] * np.asarray(r) / 2
    np.testing.assert_allclose(got, want, rtol=1e-4)
    assert str(typeof(got)) == "f32[8@x,8]" and _all_reduces(twice, s, t, r) == 1
    with pytest.raises(PlacementError, match="there are no sums of key"):
        reshard(sums["keys"], P(unreduced=X))


@pytest.mark.parametrize(
    "function",
    [
        lambda s, t: _product(s, t) * 3,
        lambda s, t: reshard(_product(s, t), P()) + reshard(_product(s, t) * 2, P()),
        lambda s, t: (
            lax.scan(lambda c, _: (c + c, None), _product(s, t), None, 2)[0]
            - _product(s, t)
        ),
        lambda s, t: lax.fori_loop(
            0, 2, lambda i, c: c + _product(s, t), _product(s, t)
        ),
        lambda s, t: lax.cond(True, lambda u: u * 3, lambda u: u, _product(s, t)),
        lambda s, t: fxflow.jit(_product)(s, t) * 3,
        lambda s, t: fxflow.checkpoint(lambda u: u * 3)(_product(s, t)),
        lambda s, t: fxflow.vmap(_product, (0, None))(s[None], t)[None][0].sum(0) * 3,
        lambda s, t: reshard(_product(s, t), P(unreduced={"y"})) * 3,
        lambda s, t: _product(s, t, {"y"}) * 3,
        lambda s, t: reshard(_product(s, t), P("x")) + 2 * _whole(s, t),
        lambda s, t: _product(reshard(s, P()), reshard(t, P())) * 3,
        lambda s, t: reshard(reshard(_product(s, t), P()), P(unreduced=X)) * 3,
    ],
)
def test_whatever_types_say_an_array_is_the_sum(sums, function):
    s, t = sums["s"], sums["t"]
    np.testing.assert_allclose(fxflow.jit(function)(s, t), 3 * sums["whole"], rtol=1e-5)


def test_an_array_outside_is_the_sum(sums):
    u = sums["u"]
    np.testing.assert_allclose(u, sums["whole"])
    np.testing.assert_allclose(u.addressable_shards[5].data, sums["whole"])
    assert u.sharding.spec == P(unreduced=X) and u.sharding.is_fully_replicated
    again = fxflow.jit(lambda u: u + u, donate_argnums=0)(u)
    np.testing.assert_allclose(again, 2 * sums["whole"])
    np.testing.assert_allclose(fxflow.device_put(again, P("y")), 2 * sums["whole"])


def test_cotangents_of_what_is_reduced_are_unreduced(sums):
    x, w = put((8, 8), "x") / 64, reshard(put((8, 4)) / 32, P(reduced=X))

    def loss(w):
        return fnp.sin(x @ w).sum()

    def steps(w):
        first, second = fxflow.grad(loss)(w), fxflow.grad(loss)(w)
        return reshard(first + second, P())

    want = np.asarray(x).T @ np.cos(np.asarray(x) @ np.asarray(w))
    for grad in (fxflow.grad(loss), fxflow.jit(fxflow.grad(loss))):
        got = grad(w)
        assert str(typeof(got)) == "f32[8,4]{U:x}"
        np.testing.assert_allclose(got, want, rtol=1e-4)
    np.testing.assert_allclose(fxflow.jit(steps)(w), 2 * want, rtol=1e-4)
    assert _all_reduces(steps, w) == 1
    elementwise = fxflow.jit(fxflow.grad(lambda w: fnp.sin(w).sum()))(w)
    assert str(typeof(elementwise)) == "f32[8,4]{U:x}"
    np.testing.assert_allclose(elementwise, np.cos(w), rtol=1e-5)

    def through(w):
        return loss(reshard(w, P(reduced=X)))

    for spec, kind in [(P(), "f32[8,4]"), (P(None, "x"), "f32[8,4@x]")]:
        got = fxflow.jit(fxflow.grad(through))(reshard(w, spec))
        assert str(typeof(got)) == kind
        np.testing.assert_allclose(got, want, rtol=1e-4)


def test_sums_are_put_off_in_a_loop_by_its_carry(sums):
    s, t = sums["s"], sums["t"]

    def accumulated(s, t):
        start = reshard(fnp.zeros((8, 8)), P(unreduced=X))
        return lax.scan(lambda c, _: (c + _product(s, t), None), start, None, 3)[0]

    got = fxflow.jit(accumulated)(s, t)
    assert str(typeof(got)) == "f32[8,8]{U:x}"
    np.testing.assert_allclose(got, 3 * sums["whole"], rtol=1e-5)


def test_the_cotangent_of_what_is_unreduced_is_reduced(sums):
    s, t = sums["s"], sums["t"]
    grad = fxflow.jit(fxflow.grad(lambda s: (reshard(_product(s, t), P()) ** 2).sum()))
    got = grad(s)
    assert str(typeof(got)) == "f32[8,4@x]"
    np.testing.assert_allclose(got, 2 * sums["whole"] @ np.asarray(t).T, rtol=1e-4)
