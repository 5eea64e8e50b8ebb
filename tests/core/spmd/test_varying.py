"""Derivatives inside `shard_map`, where types tell what devices share."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import fxflow
import fxflow.numpy as fnp
from fxflow import P, lax, shard_map
from fxflow.errors import ArgumentError
from tests.sweeps.sampling import sample

MESH = fxflow.make_mesh((2, 4), ("a", "b"))
BOTH = ("a", "b")
RNG = np.random.default_rng(0)
W = RNG.standard_normal(3).astype(np.float32)
X = RNG.standard_normal((8, 3)).astype(np.float32)


def close(got, want, tol=2e-5):
    for g, w in zip(fxflow.tree.leaves(got), fxflow.tree.leaves(want), strict=True):
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=tol, atol=tol)


SHARED, OWN = P(), P(BOTH)


def mapped(f, in_specs=(SHARED, OWN), out_specs=SHARED):
    return shard_map(f, mesh=MESH, in_specs=in_specs, out_specs=out_specs)


def total(f, check=False):
    """The sum of what all devices compute, as a function of whole arrays."""
    each = shard_map(
        lambda w, x: fnp.reshape(f(w, x), (1,)),
        mesh=MESH,
        in_specs=(SHARED, OWN),
        out_specs=OWN,
        check=check,
    )
    return lambda w, x: fnp.sum(each(w, x))


def of_the_whole(f, check=False):
    """The derivative of the sum of what all devices compute, taken from outside."""
    return fxflow.grad(total(f, check), (0, 1))


@fxflow.custom_jvp
def doubled(w, x):
    return fnp.sum(w * x)


@doubled.defjvp
def _(primals, tangents):
    (w, x), (dw, dx) = primals, tangents
    return fnp.sum(w * x), fnp.sum(dw * x) + fnp.sum(w * dx)


@fxflow.custom_vjp
def own(w, x):
    return fnp.sum(w * x)


own.defvjp(
    lambda w, x: (own(w, x), (w, x)), lambda r, ct: (ct * r[1][0], ct * r[0] + 0 * r[1])
)


def scanned(w, x):
    def body(carry, row):
        shared, mixed = carry
        return (fnp.sin(shared * w), fnp.cos(mixed * shared + row)), mixed

    (shared, mixed), ys = lax.scan(body, (w, fnp.ones(3)), fnp.stack([x[0]] * 3))
    return fnp.sum(shared) + fnp.sum(mixed) + fnp.sum(ys)


def chosen(w, x):
    square = fnp.sin(w)  # shared, and captured by a branch that only some take
    return lax.cond(
        fnp.sum(x) > 0, lambda v: fnp.sum(v * x * square), lambda v: fnp.sum(v**2), w
    )


# Functions of what all share, `w`, and of what is a device's own, `x`.
FUNCTIONS = {
    "product": lambda w, x: fnp.sum(fnp.sin(w * x)),
    "sum": lambda w, x: fnp.sum(w + x),
    "shared only": lambda w, x: fnp.sum(w**2) + 0 * fnp.sum(x),
    "gather": lambda w, x: fnp.sum(fnp.sin(w * lax.all_gather(x, BOTH, tiled=True))),
    "gather of shared": lambda w, x: fnp.sum(lax.all_gather(w, "a") * x),
    "permutation": lambda w, x: fnp.sum(x * lax.ppermute(w * x, "b", [(0, 1), (1, 2)])),
    "permutation of shared": lambda w, x: fnp.sum(x * lax.pshuffle(w, "a", [1, 0])),
    "scatter": lambda w, x: fnp.sum(
        fnp.sin(lax.psum_scatter(fnp.concatenate([w * x[0]] * 4), "b", tiled=True))
    ),
    "exchange": lambda w, x: fnp.sum(
        x * lax.all_to_all(fnp.stack([w * x[0]] * 4), "b", 0, 0)
    ),
    "broadcast": lambda w, x: fnp.sum(x * lax.pbroadcast(w * x, "b", 2)),
    "groups": lambda w, x: fnp.sum(
        x * lax.psum(w, "b", axis_index_groups=[[0, 1], [2, 3]])
    ),
    "place": lambda w, x: fnp.sum(w[lax.axis_index("b") % 3] * x),
    "jit": lambda w, x: fxflow.jit(lambda w: fnp.sum(fnp.cos(w)) * fnp.sum(w * x))(w),
    "checkpoint": fxflow.checkpoint(
        lambda w, x: fnp.sum(w**3) * fnp.sum(fnp.cos(w) * x)
    ),
    "scan": scanned,
    "cond": chosen,
    "vmap": lambda w, x: fnp.sum(fxflow.vmap(lambda r: fnp.sin(w * r))(x)),
    "custom_jvp": doubled,
    "custom_vjp": own,
    "library": lambda w, x: fnp.sum(fxflow.nn.softmax(w * x)[:, 0]) + fnp.max(w * x),
    "sorted": lambda w, x: fnp.sort(w + x)[0, 0],
    "matmul": lambda w, x: fnp.sum(fnp.sin(x @ fnp.outer(w, w))),
    "keys": lambda w, x: fnp.sum(
        w
        * fxflow.random.normal(
            fxflow.random.fold_in(fxflow.random.key(0), lax.axis_index("a")), (3,)
        )
        * x
    ),
}


@pytest.mark.parametrize("name", sample([*FUNCTIONS], 10, of="varying"))
def test_the_gradient_by_what_is_shared_is_summed(name):
    f = FUNCTIONS[name]
    inside = mapped(fxflow.grad(f, (0, 1)), out_specs=(SHARED, OWN))
    want = of_the_whole(f)(W, X)
    close(inside(W, X), want)
    close(of_the_whole(f, check=True)(W, X), want)


@pytest.mark.parametrize("name", ["product", "scan", "gather of shared", "groups"])
def test_second_derivatives_of_the_whole(name):
    f = FUNCTIONS[name]
    shared = lambda w, x: f(lax.psum(w, "a"), x) * fnp.sum(fnp.cos(w))
    want = fxflow.hessian(total(shared))(W, X)
    close(fxflow.hessian(total(shared, check=True))(W, X), want, 1e-4)


@pytest.mark.parametrize("reduce", [lax.psum, lax.pmean])
@pytest.mark.parametrize("name", ["product", "scan", "cond", "jit", "shared only"])
def test_a_shared_loss(name, reduce):
    """Its gradient is the same inside and outside."""

    def loss(w, x):
        return reduce(FUNCTIONS[name](w, x), BOTH)

    inside = mapped(fxflow.grad(loss, (0, 1)), out_specs=(SHARED, OWN))
    close(inside(W, X), fxflow.grad(mapped(loss), (0, 1))(W, X))
    factor = 1 if reduce is lax.psum else 8
    whole = of_the_whole(FUNCTIONS[name])(W, X)
    close(inside(W, X), fxflow.tree.map(lambda g: g / factor, whole))


def test_values_shared_and_own_in_one_sum():
    def loss(w, x):
        return fnp.sum(w**2) + lax.psum(fnp.sum(w * x + w), BOTH)

    want = 2 * W + X.sum(0) + 8
    close(mapped(fxflow.grad(loss))(W, X), want)
    # Shared along one axis of two.
    part = mapped(fxflow.grad(lambda w, x: fnp.sum(w * x)), in_specs=(SHARED, P("b")))
    close(part(W, X), X.sum(0))


def test_a_sum_of_what_is_shared():
    got = mapped(fxflow.grad(lambda w, x: fnp.sum(lax.psum(w, "a")) + 0 * x.sum()))
    close(got(W, X), np.full(3, 8 * 2.0))  # 8 devices' losses, each with 2 w
    close(
        mapped(fxflow.grad(lambda w, x: lax.psum(w, "a").sum()))(W, X), np.full(3, 2.0)
    )


def test_second_derivatives():
    def f(w, x):
        return fnp.sum(fnp.sin(w * x)) * fnp.sum(w**2)

    def everywhere(w):
        return sum(f(w, X[i : i + 1]) for i in range(8))

    want = fxflow.hessian(everywhere)(W)
    close(mapped(fxflow.hessian(f))(W, X), want)
    close(mapped(fxflow.jacfwd(fxflow.grad(f)))(W, X), want)
    v = np.ones(3, np.float32)
    close(
        mapped(
            lambda w, x: fxflow.grad(
                lambda w: fxflow.jvp(lambda w: f(w, x), (w,), (v,))[1]
            )(w)
        )(W, X),
        want @ v,
    )
    inner = mapped(fxflow.grad(f))  # the derivative of a gradient taken inside
    close(fxflow.grad(lambda w: fnp.sum(inner(w, X)))(W), want @ v)


def test_pcast_makes_a_copy_for_each_device():
    def gradient(w, x):
        w = lax.pcast({"w": w}, BOTH, to="varying")["w"]
        return fxflow.grad(lambda w: lax.psum(fnp.sum(fnp.sin(w * x)), BOTH))(w)[None]

    close(mapped(gradient, out_specs=OWN)(W, X), X * np.cos(W * X))
    for _, off in [("pmap", fxflow.pmap), ("vmap", fxflow.vmap)]:
        out = off(lambda x: lax.pcast(x, "i", to="varying"), axis_name="i")(X)
        close(out, X)


def test_what_is_gathered_to_be_shared():
    def loss(w, x):
        every = lax.all_gather(x, BOTH, tiled=True, to="invarying")
        assert not fxflow.typeof(every).vma
        return fnp.sum(fnp.sin(w * every))

    inside = mapped(fxflow.grad(loss, (0, 1)), out_specs=(SHARED, OWN))
    close(inside(W, X), fxflow.grad(lambda w, x: fnp.sum(fnp.sin(w * x)), (0, 1))(W, X))
    close(inside(W, X), fxflow.grad(mapped(loss), (0, 1))(W, X))
    every = fxflow.vmap(lambda x: lax.all_gather(x, "i", to="invarying"), axis_name="i")
    close(every(X)[3], X)
    with pytest.raises(ArgumentError, match="'invarying', got 'shared'"):
        fxflow.vmap(lambda x: lax.all_gather(x, "i", to="shared"), axis_name="i")(X)


def test_linear_transpose():
    def back(w, x):
        linear = fxflow.linear_transpose(lambda w: (w * 2, lax.psum(w * x[0], BOTH)), w)
        return linear((fnp.ones(3), fnp.ones(3)))[0]

    close(mapped(back)(W, X), 2 + X.sum(0))


def test_vjp_of_shared_results_takes_what_devices_give():
    def back(w, x):
        _, pull = fxflow.vjp(lambda w: w * 3, w)
        return pull(x[0])[0]

    close(mapped(back)(W, X), 3 * X.sum(0))


def test_without_check_derivatives_are_of_one_device():
    def gradient(w, x):
        return fxflow.grad(lambda w: lax.psum(fnp.sum(w * x), BOTH))(w)[None]

    each = shard_map(
        gradient, mesh=MESH, in_specs=(SHARED, OWN), out_specs=OWN, check=False
    )
    close(each(W, X), 8 * X)


def test_types_inside():
    seen = {}

    def f(w, x):
        seen["shared"], seen["own"] = fxflow.typeof(w).vma, fxflow.typeof(x).vma
        seen["mixed"] = fxflow.typeof(w * x).vma
        seen["summed"] = fxflow.typeof(lax.psum(x, "a")).vma
        seen["gathered"] = fxflow.typeof(lax.all_gather(x, "a")).vma
        seen["place"] = fxflow.typeof(lax.axis_index("b")).vma
        carried = lax.fori_loop(0, 2, lambda i, c: c + x[0, 0], fnp.float32(0))
        seen["carried"] = fxflow.typeof(carried).vma
        stopped = lax.while_loop(lambda c: c < x[0, 0], lambda c: c + 1.0, w[0])
        seen["stopped"] = fxflow.typeof(stopped).vma
        kept, _ = lax.scan(lambda c, v: (c * 2.0, v), w, x)
        seen["kept"] = fxflow.typeof(kept).vma
        return kept

    result = mapped(f)(W, X)
    close(result, W * 2)
    assert fxflow.typeof(result).vma == frozenset()
    both, none = frozenset(BOTH), frozenset()
    assert seen == {
        "shared": none,
        "own": both,
        "mixed": both,
        "summed": frozenset("b"),
        "gathered": both,
        "place": frozenset("b"),
        "carried": both,
        "stopped": both,
        "kept": none,
    }


def test_nested():
    """A `shard_map` over one axis within one over the other."""

    def outer(w, x):
        def inner(w, x):
            return fxflow.grad(lambda w: fnp.sum(fnp.sin(w * x)))(w)

        near = shard_map(
            inner,
            mesh=MESH,
            in_specs=(SHARED, P("b")),
            out_specs=SHARED,
            axis_names={"b"},
        )
        return near(w, x)

    far = shard_map(
        outer,  # the gradient is summed over both axes
        mesh=MESH,
        in_specs=(SHARED, P("a")),
        out_specs=SHARED,
        axis_names={"a"},
    )
    close(far(W, X), (X * np.cos(W * X)).sum(0))


OPERATIONS = st.sampled_from(
    ["w*", "x*", "+w", "+x", "sin", "psum a", "psum b", "gather", "keep"]
)


@given(st.lists(OPERATIONS, min_size=1, max_size=5), st.booleans())
@settings(max_examples=15, deadline=None)
def test_compositions(operations, jitted):
    def f(w, x):
        v = w + 0.5
        for name in operations:
            match name:
                case "w*":
                    v = v * w
                case "x*":
                    v = v * x[0]
                case "+w":
                    v = v + w
                case "+x":
                    v = v + x[0]
                case "sin":
                    v = fnp.sin(v)
                case "psum a":
                    v = lax.psum(v, "a") / 2
                case "psum b":
                    v = lax.psum(v, "b") / 4
                case "gather":
                    v = fnp.mean(lax.all_gather(v, "b"), 0)
        return fnp.sum(v)

    def own(w, x):  # every device's own: what the sum over devices is taken of
        return lax.pcast(f(w, x), BOTH, to="varying")

    inside = mapped(
        fxflow.grad(fxflow.jit(own) if jitted else own, (0, 1)),
        out_specs=(SHARED, OWN),
    )
    close(inside(W, X), of_the_whole(f)(W, X), 2e-4)


def test_devices_add_up_cotangents_of_what_was_broadcast_not_of_the_broadcast():
    f = mapped(lambda w, x: lax.psum(fnp.sum(fnp.sin(x * w)), BOTH))
    text = fxflow.make_graph(fxflow.grad(f))(W, X).to_text()
    sums = [line for line in text.splitlines() if " = psum[" in line]
    assert [line.split(":")[1].split(" = ")[0].strip() for line in sums] == ["f32[3]"]
    close(fxflow.grad(f)(W, X), fxflow.grad(lambda w: fnp.sum(fnp.sin(X * w)))(W))
