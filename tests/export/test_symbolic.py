"""Exporting with symbolic sizes: one program for all shapes."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import export, lax, nn, random
from fxflow.errors import (
    ArgumentError,
    ExportError,
    InconclusiveSizeError,
    PlacementError,
    ShapeError,
)

SIZES = [{"b": 3, "t": 5}, {"b": 1, "t": 1}]


def exported(function, *specs, constraints=()):
    scope = export.SymbolicScope(constraints)
    structs = [
        fxflow.ShapeDtypeStruct(export.symbolic_shape(s, scope=scope), "float32")
        for s in specs
    ]
    return export.export(fxflow.jit(function))(*structs)


def arguments(specs, sizes, rng):
    shapes = [[eval(n, {}, sizes) for n in spec.split(",")] for spec in specs]
    return [rng.normal(size=shape).astype("f4") for shape in shapes]


def check(function, *specs, sizes=SIZES, tolerance=1e-5):
    """Compares one artifact at several sizes with the function itself."""
    rng = np.random.default_rng(0)
    made = exported(function, *specs)
    loaded = export.deserialize(made.serialize())
    for known in sizes:
        args = arguments(specs, known, rng)
        wanted = fxflow.tree.leaves(function(*map(fnp.asarray, args)))
        found = fxflow.tree.leaves(loaded.call(*args))
        for got, want in zip(found, wanted, strict=True):
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


SCAN = lambda x: lax.scan(lambda c, row: (c + row, c * row), fnp.zeros(4), x)
WHILE = lambda x: lax.while_loop(lambda c: c.sum() < 99, lambda c: c * c + 2, x)
COND = lambda x: lax.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, x)
CASES = {
    "broadcast": (lambda x, y: x[:, None] * y[None, :], "b", "t"),
    "mean, var": (lambda x: (x.mean(), fnp.var(x, axis=0)), "b,t"),
    "reshape": (lambda x: (x.reshape(x.shape[0], 2, -1), x.ravel()), "b,4"),
    "half": (lambda x: x.reshape(-1, 2), "b,2*t"),
    "dot": (lambda x, y: (x @ y, y.T @ x.T), "b,t", "t,b"),
    "join": (lambda x, y: fnp.concatenate([x, y]), "b,4", "t,4"),
    "slices": (lambda x: (x[1:], x[:-1], x[::2], x[::-1], x[: x.shape[0] // 2]), "b,4"),
    "slices that may be empty": (
        lambda x: (x[1::3], x[1::2, 1:-1:2], x[-3:], x.at[1::2].add(x[1::2] * 2)),
        "b,t + 1",
    ),
    "update of slices": (
        lambda x: x.at[1 : x.shape[0] // 2].set(3.0).at[::3].mul(x[::3]),
        "b",
    ),
    "index": (lambda x: (x[0], x[-1]), "b,4"),
    "pad": (lambda x, y: fnp.pad(x, ((0, y.shape[0]), (1, 2))), "b,4", "t"),
    "reductions": (lambda x: (x.max(1), x.argmax(0), fnp.cumsum(x, 0)), "b,t"),
    "softmax": (lambda x: (nn.softmax(x), nn.log_softmax(x, 0)), "b,t"),
    "arange": (lambda x: fnp.arange(x.shape[0]) * x, "b"),
    "eye": (lambda x: fnp.tril(fnp.eye(x.shape[0]) + 1), "b"),
    "sort": (lambda x: (fnp.sort(x, 0), fnp.argsort(x, 0)), "b,4"),
    "take": (lambda w, i: w[(i * 4).astype(int) % 4], "4,3", "b,t"),
    "scatter": (lambda x, i: x.at[(i * 9).astype(int) % 4].add(1.0), "4,t", "b"),
    "update": (lambda x: x.at[:, 1].set(2.0).at[0].add(1.0), "b,4"),
    "scan": (SCAN, "b,4"),
    "fori": (lambda x: lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], 0.0), "b"),
    "while": (
        lambda x: lax.while_loop(lambda c: c.sum() < 99, lambda c: c * c + 2, x),
        "b",
    ),
    "cond": (
        lambda x: lax.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, x),
        "b,t",
    ),
    "vmap": (fxflow.vmap(lambda r, i: r[(i * 4).astype(int) % 4]), "b,4", "b"),
    "grad": (fxflow.grad(lambda x: (x[1:] ** 2).sum() + nn.softmax(x, 0).max()), "b,t"),
    "grad scan": (fxflow.grad(lambda x: (SCAN(x)[1] ** 2).sum()), "b,4"),
    "random": (lambda x: random.normal(random.key(1), x.shape), "b,t"),
    "jit": (fxflow.jit(lambda x: fxflow.jit(lambda y: y * y.shape[0])(x)), "b,t"),
    "decompositions": (lambda x: decompositions(x), "b,3,2"),
    "decompositions of any size": (lambda x: decompositions(x), "b + 1,t"),
    "systems": (lambda x, y: systems(x, y), "b,3,3", "b,3,2"),
    "systems of any size": (lambda x, y: systems(x, y), "t,t", "t,b"),
    "grad of systems": (
        fxflow.grad(lambda x, y: (systems(x, y)[0] ** 2).sum()),
        *("b,3,3", "b,3,2"),
    ),
    "any length of scans": (lambda x: lax.associative_scan(fnp.matmul, x), "b,2,2"),
    "windows": (lambda x: windows(x), "b,t"),
    "grad of windows": (fxflow.grad(lambda x: sum(map(fnp.sum, windows(x)))), "b,t"),
    "convolution that may not fit": (
        lambda x, w: lax.conv_general_dilated(x, w, (2,), "VALID"),
        *("1,2,b", "3,2,3"),
    ),
    "convolution of sequences": (lambda x, y: fnp.convolve(x, y), "b", "t"),
    "bits of other widths": (lambda x: widths(x), "b,2*t"),
    "random bits": (lambda x: drawn(x), "b"),
    "composites": (lambda x: composites(x), "b,2"),
    "pad with its own": (lambda x: padded(x), "b,t"),
    "diagonals": (lambda x: (fnp.trace(x), fnp.diagonal(x, 1), fnp.diag(x, -1)), "b,t"),
    "ranges": (lambda x: ranges(x), "b"),
    "delete": (lambda x: (fnp.delete(x, 0, 0), fnp.delete(x, -1, 1)), "b,t"),
    "parts": (lambda x: (fnp.array_split(x, 2), fnp.array_split(x, 3, 1)), "b,t"),
    "the largest": (lambda x: lax.top_k(x, (x.shape[1] + 1) // 2), "b,t"),
    "lengths": (lambda x: lengths(x), "b,t"),
    "jacobian": (
        lambda x: (fxflow.hessian(lambda y: (y**3).sum() * y[0])(x), jacobian(x)),
        "b",
    ),
    "fft": (lambda x: fnp.fft.irfft2(fnp.fft.rfft2(x) * 2), "b,4,6"),
}


def windows(x):
    most = lax.reduce_window(x, -fnp.inf, lax.max, (1, 3), (1, 2), "SAME")
    total = lax.reduce_window(x, 0.0, lax.add, (1, x.shape[1]), (1, 1), "VALID")
    wide = lax.reduce_window(x, 0.0, lax.add, (20, 1), (3, 1), "SAME")
    return most, total, wide


def widths(x):
    halves = x.view("uint16")
    pairs = lax.bitcast_convert_type(x.astype("bfloat16").reshape(-1, 2), "int32")
    return halves, pairs, lax.bitcast_convert_type(x, "uint4").astype("int32")


def drawn(x):
    key, other = random.key(0), random.key(1, impl="rbg")
    order = random.permutation(key, x.shape[0])
    some = random.choice(key, x, (3,)), random.randint(key, (2,), 0, x.size)
    return order, *some, random.bits(other, x.shape)


def composites(x):
    inner = lax.composite(lambda y: y * x.shape[0], "my.inner")
    outer = lax.composite(lambda y, *, k: (inner(y) + k, y), "my.outer", 2)
    return outer(x, k=3.0), inner(fnp.ones(3))


def padded(x):
    widths = (2, 3), (1, 0)
    modes = "edge", "reflect", "symmetric", "wrap"
    return [fnp.pad(x, widths, mode=mode) for mode in modes]


def ranges(x):
    count = x.shape[0]
    return (
        fnp.linspace(x, x + 1, count),
        fnp.linspace(0, 1, count, endpoint=False),
        fnp.linspace(0, 1, count, retstep=True)[1],
    )


def lengths(x):
    b, t = x.shape
    number = x.astype(int)
    twice = fxflow.image.resize(x, (b, 2 * t + 1), "nearest")
    counted = fnp.bincount(number.ravel(), length=b), nn.one_hot(number, t)
    scanned = lax.scan(lambda c, _: (c + 1, c), x[0], None, length=b)
    return twice, counted, scanned, fnp.isin(number, number[:, 0]), x.at[-1].add(1.0)


def jacobian(x):
    return fxflow.jacrev(lambda y: (fnp.sin(y), y[0] * fnp.ones(2)))(x)


def decompositions(x):
    factors, pivots, order = lax.linalg.lu(x)
    full = fnp.linalg.svd(x)
    symmetric = x @ x.mT
    values = fnp.linalg.eigvalsh(symmetric)
    return factors, pivots, order, *fnp.linalg.qr(x), full[1], abs(full[0]), values


def systems(x, y):
    positive = x @ x.mT + 3 * fnp.eye(x.shape[-1])
    factor = fnp.linalg.cholesky(positive)
    found = lax.linalg.triangular_solve(factor, y, left_side=True, lower=True)
    solved = fnp.linalg.solve(positive, y)
    return solved, found, fnp.linalg.inv(positive), fnp.linalg.slogdet(x)[1]


#: These compile long.
SLOW = {"decompositions of any size", "systems of any size", "grad of systems"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in CASES],
)
def test_operations_agree_at_every_size(name):
    function, *specs = CASES[name]
    check(function, *specs)


def test_sorting_many_elements():
    """At least 1626 elements are sorted twice, which the call decides."""
    made = exported(lambda x: random.permutation(random.key(0), x), "b")
    for count in (1625, 1626):
        x = np.arange(count, dtype="f4")
        want = random.permutation(random.key(0), x)
        np.testing.assert_array_equal(made.call(x), want)


def test_random_choices_by_probability():
    choose = lambda x: random.choice(random.key(0), x, (9,), p=nn.softmax(x))
    made = exported(choose, "b", constraints=["b <= 4"])
    for count in (1, 4):
        x = np.arange(count, dtype="f4")
        np.testing.assert_array_equal(made.call(x), choose(x))


def test_symbolic_sizes_over_several_devices():
    mesh = fxflow.make_mesh((4,), ("d",))
    where = fxflow.NamedSharding(mesh, fxflow.P("d"))

    def struct(size, constraints=()):
        shape = export.symbolic_shape(f"{size}, 3", constraints=constraints)
        return fxflow.ShapeDtypeStruct(shape, "float32", sharding=where)

    f = fxflow.jit(lambda x: fnp.tanh(x - x.mean(0)))
    for spec in (struct("4*b"), struct("b", ["mod(b, 4) == 0"])):
        loaded = export.deserialize(export.export(f)(spec).serialize())
        assert loaded.nr_devices == 4
        for count in (4, 12):
            x = np.random.default_rng(0).normal(size=(count, 3)).astype("f4")
            found = loaded.call(fxflow.device_put(x, where))
            np.testing.assert_allclose(found, np.tanh(x - x.mean(0)), atol=1e-6)
            assert found.sharding.shard_shape(found.shape) == (count // 4, 3)
    with pytest.raises(PlacementError, match=r"constraints=\['mod\(b, 4\) == 0'\]"):
        export.export(f)(struct("b"))
    spec = fxflow.P("d")
    parts = fxflow.shard_map(lambda x: x * 2, mesh=mesh, in_specs=spec, out_specs=spec)
    with pytest.raises(ExportError, match=r"shard_map has no form .* \(4\*b\)"):
        export.export(fxflow.jit(parts))(struct("4*b"))


def test_operations_at_composite_sizes():
    """Sizes that are products and quotients."""

    def f(x):
        x = x.reshape(-1, 3)[: x.shape[0] * 2]
        return fnp.stack([x, x]).reshape(4, -1)

    check(f, "b,6*t", sizes=[{"b": 2, "t": 1}, {"b": 3, "t": 4}])


# -- models ----------------------------------------------------------------------------


def mlp(x, a, b):
    return nn.log_softmax(nn.relu(x @ a + 0.5) @ b)


def cnn(x, kernel, weights):
    x = lax.conv_general_dilated(x, kernel, (1, 1), "SAME")
    x = lax.reduce_window(
        nn.relu(x), -fnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"
    )
    return x.reshape(x.shape[0], -1) @ weights


def layer_norm(x):
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def transformer_block(x, qkv, out, up, down):
    b, t, d = x.shape
    q, k, v = fnp.split((layer_norm(x) @ qkv).reshape(b, t, 2, -1), 3, axis=-1)
    x = x + nn.dot_product_attention(q, k, v, is_causal=True).reshape(b, t, d) @ out
    return x + nn.gelu(layer_norm(x) @ up) @ down


MODELS = {
    "mlp": (mlp, "b,4", "4,8", "8,3"),
    "cnn": (cnn, "b,1,6,6", "2,1,3,3", "18,5"),
    "block": (transformer_block, "b,t,8", "8,24", "8,8", "8,16", "16,8"),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_agree_at_every_size(name):
    function, *specs = MODELS[name]
    check(function, *specs, tolerance=1e-4)


def test_the_derivative_of_a_model_for_all_batches():
    function, *specs = MODELS["mlp"]
    loss = lambda x, a, b: -function(x, a, b)[:, 0].mean()
    loaded = export.deserialize(exported(loss, *specs).serialize(vjp_order=1))
    for known in SIZES:
        args = arguments(specs, known, np.random.default_rng(1))
        found = fxflow.grad(loaded.call, argnums=(1, 2))(*args)
        wanted = fxflow.grad(loss, argnums=(1, 2))(*args)
        for got, want in zip(found, wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


# -- calls -----------------------------------------------------------------------------


def test_a_call_is_checked():
    made = exported(lambda x, y: x @ y, "b,2*t", "2*t,3", constraints=["b >= 4"])
    assert repr(made) == "<Exported <lambda>(f32[b,2*t], f32[2*t,3]) -> (f32[b,3])>"
    assert made.call(np.ones((4, 6), "f4"), np.ones((6, 3), "f4")).shape == (4, 3)
    with pytest.raises(ShapeError, match=r"axis 1 of args\[0\], .* is 5, .* no t ≥ 1"):
        made.call(np.ones((4, 5), "f4"), np.ones((5, 3), "f4"))
    with pytest.raises(
        ShapeError,
        match=r"axis 0 of args\[1\], .* is 8, but 2\*t is 6 for b = 4, t = 3",
    ):
        made.call(np.ones((4, 6), "f4"), np.ones((8, 3), "f4"))
    with pytest.raises(ShapeError, match=r"b >= 4, .* does not hold for b = 2"):
        made.call(np.ones((2, 6), "f4"), np.ones((6, 3), "f4"))


def test_loaded_functions_check_constraints():
    made = exported(lambda x: x + x.shape[0], "b", constraints=["mod(b, 2) == 0"])
    loaded = export.deserialize(made.serialize())
    assert loaded.call(np.ones(4, "f4")).tolist() == [5.0] * 4
    with pytest.raises(ValueError, match=r"mod\(b, 2\) == 0 does not hold for b = 3"):
        loaded.call(np.ones(3, "f4"))


def test_an_argument_used_only_for_its_size():
    made = exported(lambda x, y: fnp.arange(y.shape[0]) + x, "1", "b")
    assert made.call(np.zeros(1, "f4"), np.zeros(3, "f4")).tolist() == [0.0, 1.0, 2.0]


def test_symbolic_calls_under_transformations():
    made = exported(lambda x: (x * x).sum(0), "b,2")
    x = np.arange(12, dtype="f4").reshape(2, 3, 2)
    assert fxflow.vmap(made.call)(x).tolist() == (x * x).sum(1).tolist()
    assert fxflow.jit(made.call)(x[0]).tolist() == (x[0] * x[0]).sum(0).tolist()
    gradient = fxflow.grad(lambda x: made.call(x).sum())(x[0])
    np.testing.assert_array_equal(gradient, 2 * x[0])


def test_symbolic_calls_within_an_exported_function():
    inner = exported(lambda x: x.sum(1) + fnp.arange(x.shape[0]), "b,3")
    outer = exported(
        lambda x: inner.call(x) + inner.call(fnp.ones((2, 3))).sum(), "n,3"
    )
    assert repr(outer) == "<Exported <lambda>(f32[n,3]) -> (f32[n])>"
    assert outer.call(np.ones((3, 3), "f4")).tolist() == [10.0, 11.0, 12.0]


def test_iree_refuses_symbolic_sizes():
    made = exported(lambda x: x + 1, "b,3")
    with pytest.raises(ArgumentError, match=r"symbolic sizes \(f32\[b,3\]\)"):
        export.iree(made)


def test_comparisons_that_a_constraint_decides():
    f = lambda x: x[3]
    with pytest.raises(InconclusiveSizeError, match=r"constraints=\['b >= 4'\]"):
        exported(f, "b")
    made = exported(f, "b", constraints=["b >= 4"])
    assert float(made.call(np.arange(5, dtype="f4"))) == 3.0


# -- shapes ----------------------------------------------------------------------------


def test_symbolic_shape():
    b, two, t = export.symbolic_shape("b, 2, b*t + 1")
    assert (str(b), two, str(t)) == ("b", 2, "b*t + 1")
    assert export.is_symbolic_dim(b) and not export.is_symbolic_dim(two)
    assert export.symbolic_shape("") == ()
    assert export.symbolic_shape("(3, 4,)") == (3, 4)
    assert str(export.symbolic_shape("max(b, 2), c")) == "(max(2, b), c)"
    like = (7, 8, 9)
    assert str(export.symbolic_shape("b, ...", like=like)) == "(b, 8, 9)"
    assert str(export.symbolic_shape("_, b, _", like=like)) == "(7, b, 9)"
    assert export.symbolic_shape(None, like=like) == like


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shape_spec": "b, !"}, "in 'b, !', '!' is not a size"),
        ({"shape_spec": 3}, "a string such as 'b, 4', got 3"),
        ({"shape_spec": "b, ..."}, "'...' in 'b, ...' stands for the axes of like="),
        ({"shape_spec": "_"}, "'_' in '_' is the length of that axis of like="),
        ({"shape_spec": "b", "constraints": "b >= 2"}, "a sequence of strings"),
        ({"shape_spec": "b", "constraints": ["b > 2"]}, "'b > 2'"),
        ({"shape_spec": "b", "constraints": ["2 >= 3"]}, "no size satisfies"),
        ({"shape_spec": "b", "constraints": ["b >= 3", "b <= 2"]}, "contradicts"),
        ({"shape_spec": "b", "constraints": ["b >= ?"]}, "is not a size"),
        ({"shape_spec": "b", "scope": "b"}, "scope must be a SymbolicScope"),
    ],
    ids=range(10),
)
def test_invalid_shapes_are_refused(options, message):
    with pytest.raises(ArgumentError, match=message.replace("?", r"\?")):
        export.symbolic_shape(**options)


def test_mismatching_lengths_are_refused():
    with pytest.raises(ShapeError, match="negative"):
        export.symbolic_shape("b - b - 1")
    with pytest.raises(ShapeError, match="has 2 axes, but like="):
        export.symbolic_shape("b, c", like=(1, 2, 3))
    scope = export.SymbolicScope()
    with pytest.raises(ArgumentError, match="belong to the scope"):
        export.symbolic_shape("b", scope=scope, constraints=["b >= 2"])


def test_scopes():
    scope = export.SymbolicScope(["b >= 4"])
    (b,) = export.symbolic_shape("b", scope=scope)
    (same,) = export.symbolic_shape("b", scope=scope)
    (other,) = export.symbolic_shape("b")
    assert b == same and b != other
    assert repr(scope) == "SymbolicScope(['b >= 4'])"


def test_symbolic_args_specs():
    args = ({"w": fnp.ones((3, 2)), "n": 1}, np.ones((8, 3), "f4"))
    params, x = export.symbolic_args_specs(args, (None, "b, ..."), ["b >= 2"])
    assert str(params["w"]) == "ShapeDtypeStruct(f32[3,2])"
    assert str(x) == "ShapeDtypeStruct(f32[b,3])"
    made = export.export(fxflow.jit(lambda p, x: x @ p["w"] * p["n"]))(params, x)
    assert made.call(*args).shape == (8, 2)
    both = export.symbolic_args_specs((x, x), "_, c", scope=x.shape[0].scope)
    assert [str(s) for s in both] == ["ShapeDtypeStruct(f32[b,c])"] * 2
